"""Windows of changes: what they hold, what a run does with them, what may be asked for."""

from dataclasses import replace
from datetime import timedelta

import pytest
from fake_shop import said
from fake_windows import (
    DEAR,
    HOUR,
    NAMED,
    TOTALS,
    WindowWarehouse,
    built,
    window_shop,
    with_rows,
)

from spark_dynamic.changes.asked import ChangeRead, Mode
from spark_dynamic.changes.window import window_of
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName
from spark_dynamic.refresh.verify import verify
from spark_dynamic.refresh.windows import Windows

DAY = timedelta(days=1)


def test_a_window_is_a_table_of_its_own() -> None:
    shop = with_rows()
    assert [row[0] for row in shop.rows("shop.recent")] == [3, 1]
    assert shop.is_kept_right()
    assert shop.record(shop.name().removeprefix("shop.")).model == "model.shop.recent"


def test_new_changes_are_appended() -> None:
    shop = built()
    shop.spark.write("shop.orders").append((3, 20, 9))
    assert shop.actions()[0] == "INCREMENTAL"
    assert shop.storage(shop.name()[5:]).commits[-1].operation == "WRITE"
    assert shop.is_kept_right()


def test_old_changes_go_with_the_clock_alone() -> None:
    shop = with_rows()
    shop.spark.tick(1200)
    [outcome, _] = shop.go()
    assert said(outcome) == "INCREMENTAL"
    assert (outcome.rows_inserted, outcome.rows_deleted) == (0, 1)
    assert [row[0] for row in shop.rows("shop.recent")] == [1]
    assert shop.is_kept_right()


def test_what_comes_and_what_goes_is_one_commit() -> None:
    shop = with_rows()
    before = shop.storage(shop.name()[5:]).version
    shop.spark.tick(1200)
    shop.spark.write("shop.orders").append((7, 20, 50))
    [outcome, _] = shop.go()
    assert (outcome.rows_inserted, outcome.rows_deleted) == (1, 1)
    assert shop.storage(shop.name()[5:]).version == before + 1
    assert shop.is_kept_right()


def test_as_long_as_no_row_is_too_old_nothing_is_written() -> None:
    shop = with_rows()
    begin = len(shop.spark.log)
    assert shop.actions() == ["NO_DATA", "NO_DATA"]
    written = ("INSERT", "MERGE", "CREATE", "ALTER", "SET `spark.databricks")
    assert not [sql for sql in shop.spark.log[begin:] if sql.startswith(written)]


def test_an_empty_window_does_not_depend_on_the_clock() -> None:
    shop = with_rows()
    shop.spark.tick(2 * 3600)
    shop.go()
    assert shop.record(shop.name()[5:]).clock is None
    shop.spark.tick(2 * 3600)
    assert shop.actions() == ["NO_DATA", "NO_DATA"]


def test_a_commit_that_no_row_shows_moves_only_the_record() -> None:
    shop = with_rows()
    shop.spark.write("shop.orders").append((9, 20, 1))
    outcomes = shop.go()
    assert outcomes[0].rows_inserted == 0
    assert said(outcomes[1]) == "NO_DATA" and outcomes[1].plan.moves_record
    assert shop.is_kept_right()


def test_maintenance_of_a_source_moves_only_the_records() -> None:
    shop = with_rows()
    shop.spark.write("shop.orders").optimize()
    outcomes = shop.go()
    assert [said(outcome) for outcome in outcomes] == ["NO_DATA", "NO_DATA"]
    assert all(outcome.plan.moves_record for outcome in outcomes)
    assert shop.is_kept_right()


def test_a_direct_read_beside_it_sees_the_same_cut() -> None:
    shop = built()
    shop.text = "select count(*) as n, (select count(*) from shop.orders) as all_rows from {0}"
    cycle = shop.open_cycle()
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.go(cycle)
    assert list(shop.rows("shop.recent")) == [(0, 2)]
    shop.go()
    assert list(shop.rows("shop.recent")) == [(1, 3)]


def test_what_was_changed_and_changed_back_are_two_changes() -> None:
    shop = with_rows()
    shop.models["known"] = "select id from shop.recent"
    shop.refresh("known")
    write = shop.spark.write("shop.orders")
    write.append((7, 20, 50))
    write.delete((7, 20, 50))
    # Its rows are as they were, but not its changes.
    assert said(shop.refresh("known")).startswith("WAITING")
    cycle = shop.open_cycle()
    [outcome, _] = shop.go(cycle)
    assert outcome.rows_inserted == 2 and shop.is_kept_right()
    shop.refresh("known", cycle)
    assert shop.rows("shop.known")[(7,)] == 2


def test_two_windows_of_one_model_have_their_own_bounds() -> None:
    shop = window_shop(
        text="select 'long' as w, id from {0} union all select 'short', id from {1}"
    )
    shop.keep(DEAR)
    shop.keep(DEAR, timedelta(minutes=10))
    shop.go()
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.spark.tick(1200)
    shop.spark.write("shop.orders").append((4, 20, 9))
    shop.go()
    assert sorted(shop.rows("shop.recent")) == [("long", 3), ("long", 4), ("short", 4)]
    assert shop.is_kept_right()


def test_the_windows_of_a_former_definition_are_dropped() -> None:
    shop = with_rows()
    old = shop.name()
    shop.windows.clear()
    shop.keep(DEAR, 2 * HOUR)
    assert shop.actions() == ["FULL/INITIAL_BUILD", "REINITIALIZE/DEFINITION_CHANGED"]
    assert not shop.spark.exists(old) and not shop.spark.exists(f"{old}__dyn")
    assert shop.is_kept_right()


def test_what_only_looks_like_a_window_is_left_alone() -> None:
    shop = with_rows()
    shop.spark.create("shop.recent__changes_00000000", {"a": "bigint"})
    shop.go()
    assert shop.spark.exists("shop.recent__changes_00000000")


def test_a_reader_further_down_goes_with_the_clock() -> None:
    shop = with_rows()
    shop.models["known"] = "select id from shop.recent"
    assert said(shop.refresh("known")) == "FULL/INITIAL_BUILD"
    cycle = shop.open_cycle()
    shop.go(cycle)
    assert said(shop.refresh("known", cycle)) == "NO_DATA"
    shop.spark.tick(1200)
    # The model was not refreshed, and is right no longer.
    assert said(shop.refresh("known")).startswith("WAITING")
    cycle = shop.open_cycle()
    shop.go(cycle)
    assert said(shop.refresh("known", cycle)).startswith("FULL/")
    assert list(shop.rows("shop.known")) == [(1,)]


def test_an_upstream_beside_it_that_is_not_refreshed_sets_the_cut() -> None:
    shop = window_shop(text="select id, total from {0} join shop.totals on true")
    shop.models["totals"] = "select sum(amount) as total from shop.orders"
    shop.keep(DEAR)
    cycle = shop.open_cycle()
    shop.refresh("totals", cycle)
    shop.spark.write("shop.orders").append((3, 20, 9))
    assert shop.actions() == ["FULL/INITIAL_BUILD", "FULL/INITIAL_BUILD"]
    assert shop.record("recent").data_timestamp == cycle.data_timestamp
    assert shop.actions() == ["NO_DATA", f"WAITING/{shop.name()}, shop.totals"]
    cycle = shop.open_cycle()
    shop.refresh("totals", cycle)
    shop.go(cycle)
    assert list(shop.rows("shop.recent")) == [(3, 21)]


def test_a_window_over_a_dynamic_table() -> None:
    shop = window_shop()
    shop.models["totals"] = TOTALS
    shop.refresh("totals")
    shop.spark.tick(2 * 3600)
    shop.keep("select customer, total from shop.totals")
    shop.go()
    shop.spark.write("shop.orders").append((3, 20, 9))
    cycle = shop.open_cycle()
    shop.refresh("totals", cycle)
    assert said(shop.go(cycle)[0]) == "INCREMENTAL"
    rows = [(row[0], row[1], row[2]) for row in shop.rows("shop.recent")]
    assert rows == [(20, 9, "INSERT")]


# What cannot be carried on


def test_history_that_does_not_reach() -> None:
    shop = window_shop()
    shop.keep(DEAR, DAY)
    with pytest.raises(EngineError, match="POINT_TOO_OLD: since is '1d'.*shop.orders.*at_least"):
        shop.go()
    assert not shop.spark.exists("shop.recent")
    shop.windows.clear()
    shop.keep(DEAR, DAY, bound="at_least")
    shop.go()
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.go()
    assert [row[0] for row in shop.rows("shop.recent")] == [3]


def test_history_that_is_gone() -> None:
    shop = with_rows()
    shop.spark.tick(600)
    write = shop.spark.write("shop.orders")
    write.append((4, 20, 9))
    write.append((5, 20, 9))
    shop.spark.table("shop.orders").forget_before(4)
    with pytest.raises(EngineError, match="POINT_TOO_OLD"):
        shop.go()
    shop.spark.tick(2 * 3600)
    assert shop.actions()[0] == "REINITIALIZE/HISTORY_LOST"
    assert shop.rows(shop.name()) == {}


def test_a_window_that_somebody_wrote_to_is_built_anew() -> None:
    shop = with_rows()
    storage = shop.storage(shop.name()[5:])
    shop.spark.write(str(storage.name)).append(storage.newest.rows[0])
    assert shop.actions()[0] == "REINITIALIZE/FOREIGN_COMMIT"
    assert shop.is_kept_right()


def test_verify_compares_a_window_with_the_histories() -> None:
    shop = with_rows()
    storage = shop.storage(shop.name()[5:])
    [asked] = Windows(shop.request("recent"), tuple(shop.windows)).requests()
    assert verify(asked, shop.open_cycle(), WindowWarehouse(shop.spark)).is_equal
    shop.spark.write(str(storage.name)).append(storage.newest.rows[0])
    found = verify(asked, shop.open_cycle(), WindowWarehouse(shop.spark))
    assert [(copies, row[0]) for copies, row in found.differing] == [(1, 3)]


def test_a_window_that_somebody_dropped_is_built_anew() -> None:
    shop = with_rows()
    shop.spark.drop(shop.name())
    shop.spark.drop(f"{shop.name()}__dyn")
    assert shop.actions()[0] == "FULL/INITIAL_BUILD"
    assert shop.is_kept_right()


def test_a_source_that_was_made_anew() -> None:
    shop = with_rows()
    shop.spark.drop("shop.orders")
    feed = {"delta.enableChangeDataFeed": "true"}
    columns = {"id": "bigint", "customer": "bigint", "amount": "bigint"}
    shop.spark.create("shop.orders", columns, (1, 10, 5), properties=feed)
    with pytest.raises(EngineError, match="POINT_TOO_OLD"):
        shop.go()
    shop.spark.tick(2 * 3600)
    assert shop.actions()[0] == "REINITIALIZE/SOURCE_REPLACED"
    assert shop.is_kept_right()


def test_a_commit_out_of_order_has_the_log_put_in_order() -> None:
    """A model of the run is pinned at what it left, beyond the cycle's moment."""
    shop = built(NAMED)
    cycle = shop.open_cycle()
    shop.spark.write("shop.people").append((30, "c"))
    shop.spark.write("shop.orders").append((3, 30, 9))
    cycle.note_written(TableName("shop", "orders"), shop.spark.clock)
    shop.go(cycle)
    assert shop.rows(shop.name()) == {}
    assert shop.actions()[0] == "REINITIALIZE/CHANGES_OUT_OF_ORDER"
    assert len(shop.rows(shop.name())) == 1 and shop.is_kept_right()


def test_other_columns() -> None:
    shop = built("select * from shop.people")
    shop.spark.write("shop.people").append((30, "c"))
    shop.go()
    shop.spark.write("shop.people").add_column("age", "bigint")
    with pytest.raises(EngineError, match="COLUMNS_CHANGED"):
        shop.go()
    shop.windows.clear()
    shop.keep("select * from shop.people", bound="at_least")
    assert shop.actions() == ["FULL/INITIAL_BUILD", "REINITIALIZE/DEFINITION_CHANGED"]
    assert shop.rows("shop.recent") == {}
    shop.spark.write("shop.people").append((40, "d", 9))
    shop.go()
    assert [row[:3] for row in shop.rows("shop.recent")] == [(40, "d", 9)]


def test_a_model_that_asks_for_its_own_changes() -> None:
    shop = with_rows()
    shop.windows.clear()
    shop.keep("select * from shop.recent")
    with pytest.raises(EngineError, match="READS_ITSELF"):
        shop.go()


def test_a_query_that_cannot_be_repeated() -> None:
    shop = window_shop()
    shop.keep("select id, current_date() as today from shop.orders")
    with pytest.raises(EngineError, match="CHANGES_NOT_KNOWN.*CLOCK_FUNCTION"):
        shop.go()


# What may be asked for


READ = ChangeRead(DEAR, "shop", {}, Mode.REDO_LOG)


@pytest.mark.parametrize(
    ("since", "more", "message"),
    [
        (5, {}, "CHANGES_POINT_FIXED: since is 5.*for ever"),
        ("2026-01-31 12:00:00", {}, "CHANGES_POINT_FIXED"),
        ({"stream": "s"}, {}, "CHANGES_POINT_FIXED"),
        ("2 hours", {"until": 9}, "CHANGES_NOT_MAINTAINED: until "),
        ("2 hours", {"initial_rows": True}, "CHANGES_NOT_MAINTAINED: initial_rows "),
        ("2 hours", {"bound": "lax"}, "POINT_NOT_KNOWN: Invalid bound 'lax'"),
        ("8 days", {}, "CHANGES_WINDOW_TOO_LONG: since is '8 days'.*allows 7d"),
    ],
)
def test_what_cannot_be_kept(since: object, more: dict, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        window_of(READ, since, timedelta(days=7), **more)


def test_upserts_are_not_kept() -> None:
    with pytest.raises(EngineError, match="CHANGES_NOT_MAINTAINED: upserts"):
        window_of(replace(READ, upserts=True), "2 hours", DAY)


def test_names_tell_definitions_and_models_apart() -> None:
    model = TableName("shop", "recent")
    one, other = (window_of(READ, since, DAY) for since in ("2 hours", "3 hours"))
    assert one.name_for(model) == window_of(READ, "120 minutes", DAY).name_for(model)
    assert one.name_for(model) != other.name_for(model)
    long = "x" * 200
    names = {one.name_for(TableName("shop", long + end)).name for end in "ab"}
    assert len(names) == 2 and all(len(name) < 120 for name in names)


def test_a_model_without_windows_asks_nothing() -> None:
    shop = window_shop()
    request = shop.request("recent", sql="select 1 as a")
    begin = len(shop.spark.log)
    assert list(Windows(request, ()).refresh(shop.open_cycle(), shop.session)) == []
    assert len(shop.spark.log) == begin
