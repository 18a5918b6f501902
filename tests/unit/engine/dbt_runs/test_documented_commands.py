"""The commands of docs/scheduling.md, run as they stand there by a real dbt on a fake Spark."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner
from fake_shop import Shop
from real_dbt import shop_below_dbt, write_project

pytestmark = pytest.mark.thorough

DOCUMENT = (Path(__file__).parents[4] / "docs" / "scheduling.md").read_text()
BLOCKS = re.findall(r"^```shell\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
# Those in blocks of their own, and those in the middle of a sentence.
SHOWN = [line for block in BLOCKS for line in block.splitlines()]
SHOWN += re.findall(r"`(dbt [a-z-]+ --[^`]+)`", DOCUMENT)

DAY = "{{ config(materialized='dynamic_table', target_lag='1 day') }}\n"
MODELS = {
    "spent": DAY + "select customer, sum(amount) as total from shop.orders group by 1",
    "revenue": DAY + "select sum(total) as total from {{ ref('spent') }}",
    "orders_by_day": DAY + "select max(amount) as most from shop.orders",
}


class Terminal:
    """Runs commands, and notes what each one did."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._patch = patch
        self.run: list[str] = []
        self.printed: list[str] = []

    def __call__(self, command: str) -> Any:
        self.run.append(command)
        self.printed.clear()
        words = shlex.split(command)
        with self._patch.context() as patch:
            while "=" in words[0]:
                patch.setenv(*words.pop(0).split("="))
            assert words.pop(0) == "dbt"
            places = [f"--project-dir={self._folder}", f"--profiles-dir={self._folder}"]
            options = ["--log-level=none", f"--log-path={self._folder}", *places]
            found = dbtRunner(callbacks=[lambda e: self.printed.append(e.info.msg)]).invoke(
                [words[0], *options, *words[1:]]
            )
        assert found.success, (command, found.exception)
        return found.result

    def actions(self, command: str) -> dict[str, str]:
        return {r.node.name: r.adapter_response["refresh_action"] for r in self(command)}


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with shop_below_dbt(monkeypatch) as made:
        yield made


def test_every_command_of_the_document_does_what_it_says(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path, MODELS, {})
    dbt = Terminal(tmp_path, monkeypatch)
    assert set(dbt.actions("dbt run").values()) == {"FULL"}
    assert set(dbt.actions("dbt run").values()) == {"NOT_DUE"}

    shop.spark.write("shop.orders").append((4, 20, 100))
    command = shop.spark.clock
    found = dbt.actions("SPARK_DYNAMIC_REFRESH=all dbt run --select +revenue")
    assert found == {"spent": "FULL", "revenue": "FULL"}
    assert {row.refresh_trigger for row in shop.spark.state_rows[-2:]} == {"MANUAL"}
    assert all(row.data_timestamp > command for row in shop.spark.state_rows[-2:])
    found = dbt.actions("dbt run --vars 'refresh: all'")
    assert found == {"spent": "NO_DATA", "revenue": "NO_DATA", "orders_by_day": "FULL"}
    shop.spark.write("shop.orders").append((5, 20, 200))
    dbt("dbt run-operation dynamic_table_refresh --args '{models: [revenue, orders_by_day]}'")
    assert shop.spark.read("select total from shop.revenue") == [(321,)]
    assert len({row.data_timestamp for row in shop.spark.state_rows[-3:]}) == 1

    shop.spark.drop("shop.orders_by_day")
    assert dbt("dbt ls --select tag:due") == ["shop.orders_by_day"]
    assert dbt.actions("dbt run --select tag:due") == {"orders_by_day": "NO_DATA"}
    assert not dbt("dbt ls --select tag:due")

    dbt("dbt run-operation dynamic_table_suspend --args '{models: revenue}'")
    assert dbt.actions("dbt run")["revenue"] == "SUSPENDED"
    dbt("dbt run-operation dynamic_table_resume --args '{models: [revenue, orders_by_day]}'")
    assert dbt.actions("dbt run")["revenue"] == "NOT_DUE"
    dbt("dbt run-operation dynamic_table_status")
    [table] = [text for text in dbt.printed if "within target" in text]
    assert all(f"shop.{name}" in table for name in MODELS)

    assert set(SHOWN) <= set(dbt.run)
