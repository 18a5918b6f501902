"""Tables to which nothing has happened cost no statement of their own, and are still right."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from fake_dbt import DbtShop, dbt_shop
from fake_warehouse import FakeWarehouse

from spark_dynamic import catalog
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.logs import look_at_logs
from spark_dynamic.frontier.state import read_state
from spark_dynamic.names import TableName

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
REPORT = "select max(total) as best from shop.totals"
STATE = "shop.dynamic_table_refreshes"


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[DbtShop]:
    with dbt_shop(monkeypatch) as made:
        made.spark.create_view("shop.large", "select * from shop.orders where amount > 5")
        made.model("totals", TOTALS)
        made.model("report", REPORT)
        made.model("through", "select id from shop.large")
        yield made


def settled_run(shop: DbtShop) -> dict[str, str]:
    """Build everything, let it settle, and run once more."""
    shop.run(after=120)
    shop.run(after=120)
    return shop.run()


def of_their_own(shop: DbtShop) -> list[str]:
    """Return the statements about single tables; the look of the cycle is shared."""
    shared = (
        "SHOW TABLE EXTENDED",
        "SELECT path, ",
        f"DESCRIBE HISTORY `{STATE[:4]}`.`{STATE[5:]}",
    )
    found = (sql for statements in shop.statements.values() for sql in statements)
    return [sql for sql in found if not sql.startswith(shared)]


def test_a_due_table_without_changes_costs_no_statement_of_its_own(shop: DbtShop) -> None:
    assert set(settled_run(shop).values()) == {"NO_DATA"}
    assert of_their_own(shop) == []
    shared = [sql for statements in shop.statements.values() for sql in statements]
    # The state, the sources' schema, the logs: however many tables there are.
    assert len(shared) == 3
    # And one append at the end, with its summary.
    begin = len(shop.spark.log)
    shop.run()
    assert [sql.split()[0] for sql in shop.spark.log[begin + 3 :]] == ["SET", "INSERT", "RESET"]


def test_what_is_written_down_is_the_same_as_after_a_plan(shop: DbtShop) -> None:
    shop.run()
    shop.run(after=120)
    planned = {row.relation: row for row in shop.rows[-3:]}
    shop.run()
    for row in shop.rows[-3:]:
        before = planned[row.relation]
        for column in ("incarnation", "refresh_number", "version", "fingerprint", "frontier",
                       "guard_verdict", "settings", "refresh_mode", "refresh_trigger", "state",
                       "rows_inserted", "rows_deleted", "statements", "marks"):  # fmt: skip
            assert getattr(row, column) == getattr(before, column), column
        assert row.data_timestamp and before.data_timestamp
        assert row.data_timestamp > before.data_timestamp


def source_appended(shop: DbtShop) -> None:
    shop.spark.write("shop.orders").append((4, 20, 100))


def source_made_anew(shop: DbtShop) -> None:
    columns = {"id": "bigint", "customer": "bigint", "amount": "bigint"}
    shop.spark.drop("shop.orders")
    shop.spark.create("shop.orders", columns, (1, 10, 5))


def source_elsewhere(shop: DbtShop) -> None:
    """The log is still there, with the same commits, but the name means another table."""
    table = shop.spark.table("shop.orders")
    shop.spark.create("shop.others", {c.name: c.type for c in table.newest.columns}, (9, 10, 6))
    shop.spark.entries[table.name] = shop.spark.table("shop.others")


def storage_written_by_others(shop: DbtShop) -> None:
    for name in ("totals", "through"):
        shop.spark.write(f"shop.{name}__dyn").append(
            *shop.spark.table(f"shop.{name}__dyn").newest.rows
        )


def view_changed(shop: DbtShop) -> None:
    shop.spark.create_view("shop.large", "select * from shop.orders where amount > 6")


def model_edited(shop: DbtShop) -> None:
    shop.shop.models["totals"] = TOTALS.replace("sum(amount)", "max(amount)")
    shop.shop.models["through"] = "select id + 1 as id from shop.large"


CHANGES: list[tuple[Callable[[DbtShop], None], set[str]]] = [
    (source_appended, {"totals", "report", "through"}),
    (source_made_anew, {"totals", "report", "through"}),
    (source_elsewhere, {"totals", "report", "through"}),
    (storage_written_by_others, {"totals", "through"}),
    (view_changed, {"through"}),
    (model_edited, {"totals", "report", "through"}),
]


@pytest.mark.parametrize(("change", "touched"), CHANGES, ids=lambda c: getattr(c, "__name__", ""))
def test_whatever_happens_is_seen(
    shop: DbtShop, change: Callable[[DbtShop], None], touched: set[str]
) -> None:
    settled_run(shop)
    change(shop)
    found = shop.run()
    assert {name for name, line in found.items() if line != "NO_DATA"} == touched
    assert all(shop.shop.is_right(name) for name in found)
    # And then all is quiet again.
    assert set(settled_run(shop).values()) == {"NO_DATA"}
    assert of_their_own(shop) == []


def test_a_view_that_somebody_changed_is_repaired(shop: DbtShop) -> None:
    settled_run(shop)
    other = replace(shop.spark.view("shop.report"), text="select 1 as best")
    shop.spark.entries[other.name] = other
    assert shop.run()["report"] == "NO_DATA"
    assert shop.shop.is_right("report")
    shop.spark.drop("shop.report")
    assert shop.run()["report"] == "NO_DATA"
    assert shop.shop.is_right("report")


def test_a_record_is_written_again_before_it_ages_out(shop: DbtShop) -> None:
    settled_run(shop)
    versions = shop.spark.table("shop.totals__dyn").version
    assert shop.run(after=timedelta(days=16).total_seconds())["totals"] == "NO_DATA"
    assert shop.spark.table("shop.totals__dyn").version == versions + 1


def test_other_settings_are_seen(shop: DbtShop) -> None:
    settled_run(shop)
    shop.shop.settings["spark.sql.session.timeZone"] = "Europe/Lisbon"
    assert "SETTINGS_CHANGED" in shop.run()["totals"]


def test_where_files_cannot_be_read_every_table_is_asked_for(
    shop: DbtShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled_run(shop)
    answer = FakeWarehouse._answer

    def refused(session: FakeWarehouse, sql: str) -> Any:
        if "binaryFile" in sql:
            raise WarehouseError("UNSUPPORTED_FEATURE", "no files here")
        return answer(session, sql)

    monkeypatch.setattr(FakeWarehouse, "_answer", refused)
    assert set(shop.run().values()) == {"NO_DATA"}
    assert "DESCRIBE HISTORY `shop`.`totals__dyn`" in of_their_own(shop)
    source_appended(shop)
    assert shop.run()["totals"].startswith("FULL")


def test_a_failure_unsettles_a_table(shop: DbtShop) -> None:
    settled_run(shop)
    state = shop.spark.table(STATE)
    assert read_state(state.history(1)).tables["shop.totals"].settled is not None
    shop.shop.models["totals"] = "select customer, sum(nothing) as total from shop.orders"
    with pytest.raises(Exception, match="nothing"):
        shop.run("totals")


def test_a_source_that_is_written_while_the_cycle_looks_around_is_seen(
    shop: DbtShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled_run(shop)

    def look_slowly(*arguments: Any) -> Any:
        found = look_at_logs(*arguments)
        # Another thread of the run is done with a model.
        source_appended(shop)
        [tables] = shop.running
        tables.note_written(TableName("shop", "orders"))
        return found

    monkeypatch.setattr(catalog, "look_at_logs", look_slowly)
    assert shop.run()["totals"].startswith("FULL")
    assert shop.shop.is_right("report")


def test_another_value_of_a_variable_in_the_text_is_seen(shop: DbtShop) -> None:
    shop.shop.settings["least"] = "0"
    shop.model("some", "select id from shop.orders where amount > ${least}")
    settled_run(shop)
    shop.shop.settings["other"] = "not in the text"
    assert shop.run()["some"] == "NO_DATA"
    shop.shop.settings["least"] = "6"
    assert "SETTINGS_CHANGED" in shop.run()["some"]
    assert "least was 0 and is 6" in shop.rows[-1].reason
    assert shop.spark.read("select * from shop.some") == [(2,), (3,)]
