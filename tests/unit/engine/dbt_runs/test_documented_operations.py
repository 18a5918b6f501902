"""The examples of docs/operations.md are what the operations show of the same tables."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_dbt import DbtShop, dbt_shop
from fake_operations import operations, rows

from dbt.adapters.spark_dynamic import operations as module
from spark_dynamic.refresh import cost
from spark_dynamic.refresh.verify import Verification

DOCUMENT = (Path(__file__).parents[4] / "docs" / "operations.md").read_text()
EXAMPLE = r"^dbt run-operation {} --args [^\n]*\n```\n.*?^```text\n(.*?)^```$"


@pytest.fixture
def shop(maintained: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[DbtShop]:
    """The shop of the README, with a reader of `revenue` behind a view; one order is new."""
    monkeypatch.setattr(cost, "SMALL", 1)
    with dbt_shop(monkeypatch) as made:
        made.model(
            "revenue", "select region, sum(amount) as revenue from shop.orders group by region"
        )
        made.model("regions", "select region, revenue from shop.revenue", materialized="view")
        made.model("best_region", "select max(revenue) as revenue from shop.regions")
        columns = {"order_id": "int", "region": "string", "amount": "int"}
        made.spark.create("shop.orders", columns, (1, "north", 20))
        made.spark.table("shop.orders").properties["delta.enableChangeDataFeed"] = "true"
        made.spark.write("shop.orders").append((2, "north", 5))
        made.spark.write("shop.orders").append((3, "south", 12))
        made.run()
        made.spark.write("shop.orders").append((4, "east", 7))
        yield made


def example(operation: str) -> list[str]:
    """Return the lines that the document shows after the command of an operation."""
    found = re.search(EXAMPLE.format(operation), DOCUMENT, re.DOTALL | re.MULTILINE)
    assert found, f"operations.md has no example of {operation}"
    return counted(found[1].replace("my_shop", "shop")).splitlines()


def shown(table: Any) -> list[str]:
    """Return what the macros print of a table."""
    lines = [" | ".join(line) for line in [list(table.column_names), *rows(table)]]
    return counted("\n".join(lines)).splitlines()


def counted(text: str) -> str:
    """Return a text without the number of orders, of which the document has more."""
    return re.sub(r"\d+ of \d+ rows", "some rows", text)


def test_the_plan(shop: DbtShop) -> None:
    found = shown(operations(shop).forecast(["revenue", "regions", "best_region"], None))
    assert found == example("dynamic_table_plan")


def test_the_explanation(shop: DbtShop) -> None:
    left = iter(shown(operations(shop).explain("revenue")))
    lines = iter(example("explain"))
    for line in lines:
        if line == "…":
            after = next(lines)
            assert after in left, after
        else:
            assert next(left) == line
    assert list(left) == []


def test_the_verification(shop: DbtShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake cannot compare rows; what is shown of the answer is real."""
    equal = Verification(("region", "revenue"), (), shop.spark.clock)
    monkeypatch.setattr(module, "verify", lambda *_: equal)
    *table, last = example("verify")
    assert table == shown(operations(shop).verify("revenue"))
    macro = Path(__file__).parents[4] / "macros" / "operations" / "dynamic_table_verify.sql"
    assert f'print(model ~ "{last.removeprefix("revenue")}")' in macro.read_text()
