"""Windows of net changes and of first-time inserts: what they hold as time goes by."""

from datetime import timedelta
from typing import Any

import pytest
from fake_shop import said
from fake_windows import TOTALS, WindowWarehouse, window_shop
from net_windows import ORDERS, held, is_as_asked, net_shop, recorded, shown

from spark_dynamic.changes.asked import Mode
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName
from spark_dynamic.refresh.verify import verify
from spark_dynamic.refresh.windows import Windows


def test_net_changes_come_in_and_age_out() -> None:
    shop = net_shop()
    assert shown(shop) == []
    shop.spark.write("shop.orders").append((3, 20, 9))
    assert shop.actions()[0] == "INCREMENTAL"
    assert shown(shop) == [(3, 9, "INSERT", False)] and is_as_asked(shop)
    shop.spark.tick(2400)
    shop.spark.write("shop.orders").delete((1, 10, 5))
    shop.go()
    assert shown(shop) == [(1, 5, "DELETE", False), (3, 9, "INSERT", False)]
    shop.spark.tick(1300)
    assert shop.actions()[0] == "INCREMENTAL"
    assert shown(shop) == [(1, 5, "DELETE", False)] and is_as_asked(shop)
    shop.spark.tick(3600)
    assert shop.actions()[0] == "INCREMENTAL"
    assert shown(shop) == [] and is_as_asked(shop)


def test_what_is_taken_back_is_gone_until_its_first_half_is_too_old() -> None:
    shop = net_shop()
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.go()
    shop.spark.tick(2400)
    shop.spark.write("shop.orders").delete((3, 20, 9))
    shop.go()
    assert shown(shop) == []
    # The row was there when the window begins now.
    shop.spark.tick(1300)
    assert shop.actions()[0] == "INCREMENTAL"
    assert shown(shop) == [(3, 9, "DELETE", False)] and is_as_asked(shop)


def test_what_came_and_went_again_is_seen_when_only_half_of_it_is_too_old() -> None:
    """The rows at the end are those of the record, but the beginning is another one."""
    shop = net_shop()
    shop.models["known"] = "select id, change_action from shop.recent"
    shop.refresh("known")
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.spark.tick(1800)
    shop.spark.write("shop.orders").delete((3, 20, 9))
    shop.spark.tick(2000)
    assert said(shop.refresh("known")).startswith("WAITING")
    cycle = shop.open_cycle()
    shop.go(cycle)
    assert shown(shop) == [(3, 9, "DELETE", False)] and is_as_asked(shop)
    shop.refresh("known", cycle)
    assert list(shop.rows("shop.known")) == [(3, "DELETE")]


def test_what_came_since_the_last_refresh_may_be_too_old_already() -> None:
    shop = net_shop()
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.spark.tick(3700)
    shop.spark.write("shop.orders").append((4, 20, 9))
    shop.go()
    assert shown(shop) == [(4, 9, "INSERT", False)] and is_as_asked(shop)


def test_copies_are_numbered_anew() -> None:
    shop = net_shop("select amount from shop.orders")
    for id in (3, 4, 5):
        shop.spark.write("shop.orders").append((id, 20, 9))
        shop.spark.tick(1000)
        shop.go()
        assert is_as_asked(shop)
    assert shown(shop) == [(9, "INSERT", False)] * 3
    shop.spark.tick(900)
    shop.go()
    assert len(held(shop)) == 2 and is_as_asked(shop)


@pytest.mark.parametrize(
    "named", [{"unique_key": ("id",)}, {"row_keys": {TableName("shop", "orders"): ("id",)}}]
)
def test_halves_of_an_update_meet_and_part(named: dict[str, Any]) -> None:
    """Also where the key that names a row is not among the columns."""
    sql = ORDERS if "unique_key" in named else "select amount from shop.orders"
    shop = net_shop(sql, **named)
    shop.spark.write("shop.orders").delete((1, 10, 5))
    shop.go()
    assert [row[-2:] for row in shown(shop)] == [("DELETE", False)]
    shop.spark.tick(1800)
    shop.spark.write("shop.orders").append((1, 10, 6))
    shop.go()
    assert [row[-3:] for row in shown(shop)] == [(5, "DELETE", True), (6, "INSERT", True)]
    assert len({row[-1] for row in held(shop)}) == 1 and is_as_asked(shop)
    shop.spark.tick(1900)
    shop.go()
    assert [row[-3:] for row in shown(shop)] == [(6, "INSERT", False)] and is_as_asked(shop)


def test_a_key_that_names_no_row() -> None:
    shop = net_shop("select customer, amount from shop.orders", unique_key=("customer",))
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.go()
    shop.spark.write("shop.orders").append((4, 20, 8))
    with pytest.raises(Exception, match="ROW_KEY_NOT_UNIQUE"):
        shop.go()


def test_without_a_change_at_either_end_nothing_is_written() -> None:
    shop = net_shop()
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.go()
    begin = len(shop.spark.log)
    shop.spark.tick(600)
    assert shop.actions() == ["NO_DATA", "NO_DATA"]
    written = ("INSERT", "MERGE", "CREATE", "ALTER", "SET `spark.databricks")
    assert not [sql for sql in shop.spark.log[begin:] if sql.startswith(written)]
    shop.spark.write("shop.orders").optimize()
    assert shop.actions() == ["NO_DATA", "NO_DATA"]


def test_only_rows_that_are_concerned_are_written() -> None:
    shop = net_shop()
    for id in range(10, 20):
        shop.spark.write("shop.orders").append((id, 20, 9))
    shop.go()
    shop.spark.write("shop.orders").append((30, 20, 9))
    [outcome, _] = shop.go()
    assert (outcome.rows_inserted, outcome.rows_deleted) == (1, 0)


def test_a_window_without_changes_does_not_depend_on_the_clock() -> None:
    shop = net_shop()
    assert recorded(shop).clock is None
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.go()
    assert recorded(shop).clock_until is not None
    shop.spark.tick(2 * 3600)
    shop.go()
    assert recorded(shop).clock is None


def test_a_query_that_has_no_plan() -> None:
    shop = net_shop("select distinct amount from shop.orders")
    shop.spark.write("shop.orders").append((3, 20, 5), (4, 20, 6))
    assert shop.actions()[0] == "INCREMENTAL"
    assert shown(shop) == [(6, "INSERT", False)] and is_as_asked(shop)


@pytest.mark.parametrize(
    ("value", "is_compared"),
    [
        ("sum(cast(amount as double))", True),
        ("max(cast(amount as double))", True),
        ("max(amount)", False),
        ("avg(cast(amount as int))", False),
    ],
)
def test_values_that_may_look_different_later_are_not_taken_away(
    value: str, is_compared: bool
) -> None:
    """They need not be what they were when they came in, so all of them are compared."""
    shop = net_shop(f"select customer, {value} as n from shop.orders group by customer")
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.go()
    shop.spark.write("shop.orders").append((4, 20, 9))
    begin = len(shop.spark.log)
    assert shop.actions()[0] == "INCREMENTAL" and is_as_asked(shop)
    [merge] = [text for text in shop.spark.log[begin:] if text.startswith("MERGE")]
    storage = f"{TableName.parse(shop.name() + '__dyn').sql} VERSION AS OF"
    assert merge.count(storage) == 1 + is_compared


# First-time inserts


def test_rows_that_are_new_are_shown_though_they_have_one_key() -> None:
    sql = "select id, amount from shop.orders"
    shop = net_shop(sql, mode=Mode.APPEND_ONLY, unique_key=("id",))
    write = shop.spark.write("shop.orders")
    write.append((3, 20, 9))
    shop.go()
    write.delete((3, 20, 9))
    # As far as the source goes, another row; as far as the query goes, the same.
    write.append((3, 10, 9))
    shop.go()
    assert shown(shop) == [(3, 9, "INSERT", False)] * 2 and is_as_asked(shop)


def test_a_row_is_new_again_when_its_first_insert_is_too_old() -> None:
    shop = net_shop(mode=Mode.APPEND_ONLY)
    write, row = shop.spark.write("shop.orders"), (3, 20, 9)
    write.append(row)
    shop.spark.tick(1000)
    write.delete(row)
    shop.spark.tick(1000)
    write.append(row)
    shop.go()
    assert shown(shop) == [(3, 9, "INSERT", False)]
    shop.spark.tick(1700)
    shop.go()
    assert shown(shop) == [] and is_as_asked(shop)
    shop.spark.tick(1000)
    shop.go()
    assert shown(shop) == [(3, 9, "INSERT", False)] and is_as_asked(shop)


def test_inserts_alone_are_carried_on() -> None:
    shop = net_shop(mode=Mode.APPEND_ONLY)
    for id in (3, 4):
        shop.spark.write("shop.orders").append((id, 20, 9))
        shop.spark.tick(2000)
        begin = len(shop.spark.log)
        assert shop.actions()[0] == "INCREMENTAL" and is_as_asked(shop)
    [merge] = [sql for sql in shop.spark.log[begin:] if sql.startswith("MERGE")]
    # Neither what is kept nor what is still to be kept was read anew.
    assert "APPEND_ONLY" not in merge and merge.count("VERSION AS OF") == 1


def test_only_monotonic_queries_have_first_inserts() -> None:
    shop = window_shop()
    shop.keep(TOTALS, mode=Mode.APPEND_ONLY)
    with pytest.raises(EngineError, match="NOT_MONOTONIC"):
        shop.go()


# Declared keys of what is read


@pytest.mark.parametrize("mode", [Mode.MIN_DELTA, Mode.REDO_LOG])
def test_the_key_of_a_dynamic_table_names_the_rows(mode: Mode) -> None:
    shop = window_shop()
    shop.models["kept"] = "select id, amount from shop.orders"
    shop.configs["kept"] = {"unique_key": "id"}
    shop.refresh("kept")
    shop.spark.tick(2 * 3600)
    shop.keep("select amount from shop.kept", mode=mode)
    shop.go()
    shop.spark.write("shop.orders").overwrite((1, 10, 6), (2, 10, 7))
    cycle = shop.open_cycle()
    shop.refresh("kept", cycle)
    assert said(shop.go(cycle)[0]) == "INCREMENTAL"
    names = [c.name for c in recorded(shop).columns]
    place = {name: names.index(name) for name in ("change_is_update", "change_row_id")}
    rows = list(held(shop))
    assert len(rows) == 2 and all(row[place["change_is_update"]] for row in rows)
    assert len({row[place["change_row_id"]] for row in rows}) == 1
    assert shop.actions()[0] == "NO_DATA"
    [request] = Windows(shop.request("recent"), tuple(shop.windows)).requests()
    assert verify(request, shop.open_cycle(), WindowWarehouse(shop.spark)).is_equal
    # Another key, or none.
    shop.configs["kept"] = {}
    cycle = shop.open_cycle()
    shop.refresh("kept", cycle)
    assert said(shop.go(cycle)[0]) == "REINITIALIZE/ROW_KEYS_CHANGED"
    assert not any(row[place["change_is_update"]] for row in held(shop))
    assert shop.actions()[0] == "NO_DATA"


# What cannot be carried on


def test_history_that_does_not_reach() -> None:
    shop = window_shop()
    shop.keep(ORDERS, timedelta(days=1), mode=Mode.MIN_DELTA)
    with pytest.raises(EngineError, match="POINT_TOO_OLD: since is '1d'.*shop.orders.*at_least"):
        shop.go()
    shop.windows.clear()
    shop.keep(ORDERS, timedelta(days=1), "at_least", Mode.MIN_DELTA)
    shop.go()
    shop.spark.write("shop.orders").append((3, 20, 9))
    assert shop.actions()[0] == "INCREMENTAL"
    assert shown(shop) == [(3, 9, "INSERT", False)]


def test_history_that_is_gone_at_the_beginning() -> None:
    shop = net_shop()
    write = shop.spark.write("shop.orders")
    for id in (3, 4):
        write.append((id, 20, 9))
    shop.go()
    shop.spark.tick(3000)
    write.append((5, 20, 9))
    shop.spark.table("shop.orders").forget_before(2)
    with pytest.raises(EngineError, match="POINT_TOO_OLD|HISTORY_LOST"):
        shop.go()
    # Where it begins now is known again: the whole is compared with what is stored.
    shop.spark.tick(1200)
    [outcome, _] = shop.go()
    assert said(outcome) == "INCREMENTAL"
    assert (outcome.rows_inserted, outcome.rows_deleted) == (1, 2)
    assert shown(shop) == [(5, 9, "INSERT", False)] and is_as_asked(shop)


def test_other_columns() -> None:
    shop = net_shop("select * from shop.people", bound="at_least")
    shop.spark.write("shop.people").append((30, "c"))
    shop.go()
    shop.spark.write("shop.people").add_column("age", "bigint")
    assert shop.actions()[0] == "REINITIALIZE/COLUMNS_CHANGED"
    assert shown(shop) == []
    shop.spark.write("shop.people").append((40, "d", 9))
    assert shop.actions()[0] == "INCREMENTAL"
    assert [row[:3] for row in shown(shop)] == [(40, "d", 9)]


def test_a_window_that_somebody_wrote_to_is_built_anew() -> None:
    shop = net_shop()
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.go()
    storage = shop.storage(shop.name()[5:])
    shop.spark.write(str(storage.name)).append(storage.newest.rows[0])
    assert not is_as_asked(shop)
    assert shop.actions()[0] == "REINITIALIZE/FOREIGN_COMMIT"
    assert is_as_asked(shop)
