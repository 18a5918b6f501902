"""What `dynamic_table_plan` says, and what a run of the same selection then does."""

from collections.abc import Iterator

import pytest
from fake_dbt import DbtShop, dbt_shop
from fake_operations import operations, rows

BUILT = "FULL +{} -0 (INITIAL_BUILD)"


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[DbtShop]:
    """A staging table and a view, each between other tables."""
    with dbt_shop(monkeypatch) as made:
        made.model("stg", "select id, amount from shop.orders", materialized="table")
        made.model("staged", "select sum(amount) as total from shop.stg")
        made.model("sums", "select customer, sum(amount) as total from shop.orders group by 1")
        made.model("shown", "select total from shop.sums", materialized="view")
        made.model("report", "select max(total) as best from shop.shown")
        yield made


def forecast(shop: DbtShop, *names: str) -> dict[str, str]:
    """Return what is said of each dynamic table of a selection."""
    found = rows(operations(shop).forecast(names, None))
    return {name.removeprefix("shop."): f"{action} {why}" for name, action, why in found}


def test_a_new_project(shop: DbtShop) -> None:
    found = forecast(shop)
    assert found == {
        "staged": "DEPENDS on what stg will bring",
        "sums": "FULL INITIAL_BUILD: The table did not exist yet.",
        "report": "DEPENDS on what shown, sums will bring",
    }
    assert shop.run() == {
        "staged": BUILT.format(1),
        "sums": BUILT.format(2),
        "report": BUILT.format(1),
    }


def test_what_is_not_there_and_not_made_either_is_an_error(shop: DbtShop) -> None:
    found = forecast(shop, "staged", "sums", "report")
    missing = "ERROR SOURCE_MISSING: "
    assert found["staged"].startswith(missing) and found["report"].startswith(missing)
    done = shop.run("staged", "sums", "report")
    assert done["staged"].startswith("SOURCE_MISSING") and done["report"].startswith("SOURCE_M")


def test_changes_that_come_through_a_view_or_a_staging_table(shop: DbtShop) -> None:
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    # Its staging table is not selected, and has not changed.
    assert forecast(shop, "staged") == {"staged": "NO_DATA -"}
    found = forecast(shop, "stg", "staged", "sums", "report")
    assert found["staged"] == "DEPENDS on what stg will bring"
    assert found["sums"].startswith("FULL ")
    assert found["report"] == "DEPENDS on what sums will bring"
    assert {line.split()[0] for line in shop.run().values()} == {"FULL"}
    assert {line.split()[0] for line in shop.run().values()} == {"NO_DATA"}
    assert forecast(shop, "sums", "shown", "report") == dict.fromkeys(
        ["sums", "report"], "NO_DATA -"
    )


def test_who_reads_what_is_not_refreshed_waits(shop: DbtShop) -> None:
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    assert forecast(shop, "report", "stg", "shown") == {"report": "WAITING for shop.sums"}
    assert shop.run("report", "stg", "shown") == {"report": "WAITING for shop.sums"}


def test_a_view_with_another_text(shop: DbtShop) -> None:
    shop.run()
    shop.model("shown", "select total from shop.sums where total > 9", materialized="view")
    assert forecast(shop, "shown", "report") == {"report": "DEPENDS on what shown will bring"}
    assert forecast(shop, "report") == {"report": "NO_DATA -"}
    [line] = shop.run("shown", "report").values()
    assert line.endswith("(DEFINITION_CHANGED)")


def test_an_error_that_was_decided_before_is_none_of_those_that_may_pass(shop: DbtShop) -> None:
    shop.model("staged", shop.shop.models["staged"], refresh_mode="incremental")
    shop.run("stg")
    found = forecast(shop, "stg", "staged")
    # Every query has a LIMIT here.
    assert found["staged"].startswith("ERROR LIMIT: The query cannot be refreshed incrementally")
