"""Refreshes from plan to view, one after another, as runs of dbt make them."""

from typing import Any

import pytest
from fake_shop import Shop, said, small_shop

from spark_dynamic.errors import EngineError

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
NAMED = "select c.name, t.total from shop.totals t join shop.customers c on c.id = t.customer"
BIG = "select name from shop.named where total > 10"
PLAIN = "select id, amount from shop.orders"


def totals_shop(**raw: Any) -> Shop:
    """Return a shop with one table that is built."""
    shop = small_shop(totals=TOTALS)
    shop.configs["totals"] = raw
    shop.run()
    return shop


def chain() -> Shop:
    shop = small_shop(totals=TOTALS, named=NAMED, big=BIG)
    shop.run()
    return shop


def test_a_table_is_built_and_stays_until_something_changes() -> None:
    shop = small_shop(totals=TOTALS)
    assert shop.run() == {"totals": "FULL/INITIAL_BUILD"}
    assert shop.is_right("totals")
    version = shop.storage("totals").version
    assert shop.run() == {"totals": "NO_DATA"}
    assert shop.storage("totals").version == version
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert shop.run() == {"totals": "FULL/LIMIT"}
    assert shop.is_right("totals")
    assert shop.run() == {"totals": "NO_DATA"}


def test_an_unchanged_table_costs_a_few_looks_and_no_query() -> None:
    shop = totals_shop()
    shop.spark.log.clear()
    outcome = shop.refresh("totals")
    assert outcome.statements == []
    kinds = {sql.split("`")[0].strip() for sql in shop.spark.log}
    assert kinds == {"SHOW TABLES IN", "DESCRIBE HISTORY", "DESCRIBE TABLE EXTENDED"}


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w.optimize(),
        lambda w: w.overwrite((2, 10, 7), (1, 10, 5), (3, 20, 9)),
        lambda w: [w.delete((1, 10, 5)), w.append((1, 10, 5))],
        lambda w: [w.append((9, 9, 9)), w.restore(0)],
        lambda w: w.comment_column("id", "the number"),
    ],
)
def test_what_changes_no_row_is_no_change(change: Any) -> None:
    shop = totals_shop()
    change(shop.spark.write("shop.orders"))
    assert shop.run() == {"totals": "NO_DATA"}
    assert shop.is_right("totals")


def test_the_counts_are_those_of_the_rows() -> None:
    shop = small_shop(totals=TOTALS)
    outcome = shop.refresh("totals")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (2, 0)
    shop.spark.write("shop.orders").append((4, 30, 1))
    outcome = shop.refresh("totals")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (3, 2)
    shop.spark.write("shop.totals__dyn").delete((10, 12))
    outcome = shop.refresh("totals")
    assert (said(outcome), outcome.rows_deleted) == ("REINITIALIZE/FOREIGN_COMMIT", 2)


def test_a_chain_is_refreshed_in_one_cut() -> None:
    shop = chain()
    assert all(shop.is_right(name) for name in shop.models)
    assert set(shop.run().values()) == {"NO_DATA"}
    shop.spark.write("shop.orders").append((4, 20, 90))
    assert set(shop.run().values()) == {"FULL/LIMIT"}
    assert all(shop.is_right(name) for name in shop.models)
    moments = {shop.record(name).data_timestamp for name in shop.models}
    assert len(moments) == 1
    pins = {str(pin.table): pin.version for pin in shop.record("big").frontier}
    assert pins == {"shop.orders": 1, "shop.customers": 0}
    assert shop.record("big").upstreams.keys() == {"shop.named__dyn"}


def test_a_change_that_stops_half_way_moves_only_the_record() -> None:
    """The rows of `totals` stay, but its readers must see that they are right for the new cut."""
    shop = chain()
    write = shop.spark.write("shop.orders")
    write.delete((1, 10, 5))
    write.append((7, 10, 5))
    versions = {name: shop.storage(name).version for name in shop.models}
    assert shop.run() == {
        "totals": "FULL/LIMIT",
        "named": "NO_DATA",
        "big": "NO_DATA",
    }
    assert shop.storage("named").version == versions["named"] + 1
    record = shop.record("named")
    assert record.action == "NO_DATA" and record.refresh_number == 2
    pins = {str(pin.table): pin.version for pin in record.frontier}
    assert pins == {"shop.orders": 2, "shop.customers": 0}
    assert set(shop.run().values()) == {"NO_DATA"}
    assert shop.storage("named").version == versions["named"] + 1


def test_a_moved_record_keeps_the_incarnation() -> None:
    shop = chain()
    before = shop.record("named").incarnation
    write = shop.spark.write("shop.orders")
    write.delete((1, 10, 5))
    write.append((7, 10, 5))
    shop.run()
    assert shop.record("named").incarnation == before
    shop.spark.write("shop.customers").append((30, "c"))
    shop.run()
    assert shop.record("named").incarnation != before


def test_an_upstream_that_was_not_selected_is_waited_for() -> None:
    shop = chain()
    shop.spark.write("shop.orders").append((4, 20, 90))
    assert shop.run("named") == {"named": "WAITING/shop.totals"}
    assert shop.run("totals", "named", "big").keys() == {"totals", "named", "big"}
    assert shop.is_right("big")


def test_a_model_catches_up_with_an_older_cut() -> None:
    shop = chain()
    shop.spark.write("shop.orders").append((4, 20, 90))
    shop.run("totals")
    moment = shop.record("totals").data_timestamp
    shop.spark.write("shop.orders").append((5, 10, 1))
    shop.spark.write("shop.customers").append((30, "c"))
    assert shop.run("named") == {"named": "FULL/LIMIT"}
    record = shop.record("named")
    assert record.data_timestamp == moment
    pins = {str(pin.table): pin.version for pin in record.frontier}
    assert pins == {"shop.orders": 1, "shop.customers": 0}
    assert shop.spark.read("select total from shop.named") == [(12,), (99,)]


def test_a_first_build_can_use_an_older_cut() -> None:
    shop = small_shop(totals=TOTALS, named=NAMED)
    shop.run("totals")
    shop.spark.write("shop.orders").append((4, 20, 90))
    assert shop.run("named") == {"named": "FULL/INITIAL_BUILD"}
    assert shop.spark.read("select total from shop.named") == [(12,), (9,)]


def test_an_edited_query_is_built_anew() -> None:
    shop = totals_shop()
    before = shop.record("totals")
    shop.models["totals"] = TOTALS.replace("sum", "max")
    assert shop.run() == {"totals": "REINITIALIZE/DEFINITION_CHANGED"}
    assert shop.is_right("totals")
    after = shop.record("totals")
    assert after.incarnation != before.incarnation
    assert after.refresh_number == before.refresh_number + 1
    assert after.generation == 1


def test_a_new_column_of_a_source_reaches_a_star() -> None:
    shop = small_shop(copy="select * from shop.orders")
    shop.run()
    shop.spark.write("shop.orders").add_column("note", "string")
    assert shop.run() == {"copy": "REINITIALIZE/COLUMNS_CHANGED"}
    assert shop.is_right("copy")
    assert "note" in shop.record("copy").reason


def test_a_changed_view_is_a_changed_definition() -> None:
    shop = small_shop(copy="select id from shop.v")
    shop.spark.create_view("shop.w", PLAIN)
    shop.spark.create_view("shop.v", "select id from shop.w where amount > 6")
    shop.run()
    assert shop.is_right("copy")
    assert shop.run() == {"copy": "NO_DATA"}
    shop.spark.create_view("shop.w", f"{PLAIN} where id > 2")
    assert shop.run() == {"copy": "REINITIALIZE/DEFINITION_CHANGED"}
    assert shop.is_right("copy")


def test_rows_that_come_through_a_view_are_a_change() -> None:
    shop = small_shop(copy="select number from shop.v")
    shop.spark.create_view("shop.v", PLAIN, ["number", "amount"])
    shop.run()
    shop.spark.write("shop.orders").append((4, 1, 1))
    assert shop.run() == {"copy": "FULL/LIMIT"}
    assert shop.is_right("copy")


def test_other_settings_are_named_with_both_values() -> None:
    shop = totals_shop()
    shop.settings["spark.sql.session.timeZone"] = "Europe/Berlin"
    assert shop.run() == {"totals": "REINITIALIZE/SETTINGS_CHANGED"}
    assert "timeZone was UTC and is Europe/Berlin" in shop.record("totals").reason
    assert shop.run() == {"totals": "NO_DATA"}


def test_a_source_at_another_place_was_replaced() -> None:
    shop = totals_shop()
    shop.spark.table("shop.orders").location = "file:/elsewhere"
    assert shop.run() == {"totals": "REINITIALIZE/SOURCE_REPLACED"}


def test_a_source_that_was_created_again_was_replaced() -> None:
    shop = totals_shop()
    columns = {"id": "bigint", "customer": "bigint", "amount": "bigint"}
    shop.spark.create("shop.orders", columns, (1, 10, 5))
    assert shop.run() == {"totals": "REINITIALIZE/SOURCE_REPLACED"}
    assert shop.is_right("totals")


def test_a_history_that_no_longer_reaches_back_is_lost() -> None:
    shop = totals_shop()
    for _ in range(3):
        shop.spark.write("shop.orders").optimize()
    shop.spark.table("shop.orders").forget_before(2)
    assert shop.run() == {"totals": "REINITIALIZE/HISTORY_LOST"}
    assert shop.run() == {"totals": "NO_DATA"}


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("select id, current_timestamp() as t from shop.orders", "CLOCK_FUNCTION"),
        ("select id, rand() as r from shop.orders", "VOLATILE_FUNCTION"),
        ("select id from shop.files", "SOURCE_NOT_DELTA"),
        ("select o.id from shop.orders o join shop.files f on f.id = o.id", "SOURCE_NOT_DELTA"),
    ],
)
def test_what_can_change_unseen_is_refreshed_every_time(sql: str, why: str) -> None:
    shop = small_shop(model=sql)
    shop.spark.create_parquet("shop.files", {"id": "bigint"}, (1,))
    if "rand" in sql:
        shop.spark.explain = lambda sql, text: text.replace("RAND()", "rand(7)")
        shop.models["model"] = sql.replace("rand()", "random()")
    assert shop.run() == {"model": "FULL/INITIAL_BUILD"}
    assert shop.run() == {"model": f"FULL/{why}"}
    assert shop.record("model").clock == shop.record("model").data_timestamp


def test_a_query_that_spark_reads_differently_runs_as_written() -> None:
    shop = small_shop(copy=PLAIN)
    shop.spark.explain = lambda sql, text: text.replace("Project", f"Project {len(sql)}")
    shop.run()
    assert shop.run() == {"copy": "FULL/PLANS_DIFFER"}
    assert shop.record("copy").verdict.code == "PLANS_DIFFER"
    assert f"FROM (\n{PLAIN}\n)" in shop.spark.log[-6] or any(
        sql.startswith("INSERT OVERWRITE") and f"FROM (\n{PLAIN}\n)" in sql
        for sql in shop.spark.log
    )
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.run()
    assert shop.is_right("copy")


def test_a_table_that_only_spark_sees_makes_the_query_full() -> None:
    shop = small_shop(copy=PLAIN)
    hidden = "\n+- Relation spark_catalog.shop.customers[id#1] parquet\n\n== Optimized"
    shop.spark.explain = lambda sql, text: text.replace("\n\n== Optimized", hidden)
    shop.run()
    assert shop.run() == {"copy": "FULL/PLANS_DIFFER"}
    assert "it also reads shop.customers" in shop.record("copy").reason


def test_the_verdict_is_asked_for_once() -> None:
    shop = totals_shop()
    shop.spark.log.clear()
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.run()
    assert not [sql for sql in shop.spark.log if sql.startswith("EXPLAIN")]
    shop.models["totals"] = TOTALS.replace("sum", "max")
    shop.run()
    assert len([sql for sql in shop.spark.log if sql.startswith("EXPLAIN")]) == 2


def test_a_query_that_reads_itself_is_refused() -> None:
    shop = totals_shop()
    for sql in ("select * from shop.totals", "select * from shop.totals__dyn"):
        shop.models["totals"] = sql
        with pytest.raises(EngineError, match=r"READS_ITSELF: The query of shop\.totals"):
            shop.run()


def test_a_query_that_reads_itself_through_a_view_is_refused() -> None:
    shop = totals_shop()
    shop.spark.create_view("shop.v", "select customer, total from shop.totals")
    shop.models["totals"] = "select * from shop.v"
    with pytest.raises(EngineError, match="READS_ITSELF"):
        shop.run()


def test_a_missing_source_is_named_and_nothing_is_built() -> None:
    shop = small_shop(copy="select * from shop.nothing")
    with pytest.raises(EngineError, match=r"SOURCE_MISSING: The table shop\.nothing"):
        shop.run()
    assert not shop.spark.exists("shop.copy__dyn")


def test_losing_the_state_table_loses_nothing() -> None:
    from spark_dynamic.frontier.state import KnownState

    shop = chain()
    shop.spark.write("shop.orders").append((4, 20, 90))
    cycle = shop.open_cycle(KnownState())
    found = [said(shop.refresh(name, cycle)) for name in shop.models]
    assert set(found) == {"FULL/LIMIT"}
    assert all(shop.is_right(name) for name in shop.models)
    assert shop.record("totals").refresh_number == 2


def test_a_setting_that_older_records_do_not_name_was_sparks_default() -> None:
    shop = small_shop(copy="select id from shop.orders")
    shop.run()
    shop.settings["spark.sql.caseSensitive"] = "false"
    assert shop.run() == {"copy": "NO_DATA"}
    shop.settings["spark.sql.caseSensitive"] = "true"
    assert shop.run() == {"copy": "REINITIALIZE/SETTINGS_CHANGED"}
    assert "caseSensitive was false and is true" in shop.record("copy").reason
