"""Change queries before any row is read: what is refused, where points lie, what is written."""

import re
from datetime import timedelta
from typing import Any

import pytest
from fake_shop import SETTINGS, Shop, small_shop

from spark_dynamic.changes import states
from spark_dynamic.changes.points import Asking, position_of
from spark_dynamic.changes.question import ask
from spark_dynamic.changes.read import ChangeRead, Mode, change_select, position_now
from spark_dynamic.changes.states import span
from spark_dynamic.changes.steps import steps_of
from spark_dynamic.clock import stamp
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle

ORDERS = TableName("shop", "orders")
ALL = "select * from shop.orders"


def cycle_of(shop: Shop) -> Cycle:
    return Cycle("invocation", shop.session.now(), KnownState())


def read_of(sql: str = ALL, mode: str = "min_delta", **more: Any) -> ChangeRead:
    return ChangeRead(sql, "shop", dict(SETTINGS), Mode(mode), **more)


def at(shop: Shop, value: Any, bound: str = "strict", sql: str = ALL) -> dict[str, int]:
    asking = Asking("since", value, bound)
    found = position_of(asking, read_of(sql), cycle_of(shop), shop.session)
    return {table.name: pin.version for table, pin in found.items()}


def select(shop: Shop, read: ChangeRead, since: int = 0) -> str:
    cycle = cycle_of(shop)
    start = position_of(Asking("since", since), read, cycle, shop.session)
    return change_select(read, start, position_now(read, cycle, shop.session), cycle, shop.session)


@pytest.fixture
def shop() -> Shop:
    found = small_shop()
    found.spark.table("shop.orders").properties["delta.enableChangeDataFeed"] = "true"
    return found


def test_a_change_column_of_the_users_own_is_refused(shop: Shop) -> None:
    with pytest.raises(EngineError, match="CHANGE_COLUMN_TAKEN.*change_action"):
        select(shop, read_of("select id as change_action from shop.orders"))


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("select id, rand() as r from shop.orders", "VOLATILE_FUNCTION"),
        ("select id, current_date as d from shop.orders", "CLOCK_FUNCTION"),
        ("select * from shop.files", "SOURCE_NOT_DELTA"),
    ],
)
def test_what_cannot_be_pinned_is_refused_with_the_reason(shop: Shop, sql: str, why: str) -> None:
    shop.spark.create_parquet("shop.files", {"id": "int"}, (1,))
    with pytest.raises(EngineError, match=f"CHANGES_NOT_KNOWN.*{why}"):
        ask(read_of(sql), cycle_of(shop), shop.session)


def test_keys_have_to_be_columns_and_sources(shop: Shop) -> None:
    for more, why in (
        ({"unique_key": ("nothing",)}, "COLUMN_UNKNOWN.*unique_key names nothing"),
        ({"row_keys": {ORDERS: ("nothing",)}}, "COLUMN_UNKNOWN.*row_keys names nothing"),
        ({"row_keys": {TableName("shop", "other"): ("id",)}}, "ROW_KEYS_NOT_USABLE.*shop.other"),
    ):
        with pytest.raises(EngineError, match=why):
            ask(read_of(**more), cycle_of(shop), shop.session)
    joined = "select o.id from shop.orders o join shop.customers c on o.customer = c.id"
    with pytest.raises(EngineError, match="ROW_KEYS_NOT_USABLE.*shop.customers"):
        ask(read_of(joined, row_keys={ORDERS: ("id",)}), cycle_of(shop), shop.session)
    with pytest.raises(EngineError, match="ROW_KEYS_NOT_USABLE.*LIMIT"):
        limited = read_of(ALL + " limit 1", row_keys={ORDERS: ("id",)})
        ask(limited, cycle_of(shop), shop.session)


def test_a_version_is_a_point_of_one_table(shop: Shop) -> None:
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert at(shop, 0) == {"orders": 0}
    with pytest.raises(EngineError, match="POINT_NOT_KNOWN.*newest version of shop.orders is 1"):
        at(shop, 7)
    with pytest.raises(EngineError, match="POINT_NOT_KNOWN.*shop.customers, shop.orders"):
        at(
            shop,
            0,
            sql="select o.id from shop.orders o join shop.customers c on o.customer = c.id",
        )


def test_a_moment_is_the_newest_version_by_then(shop: Shop) -> None:
    before = shop.spark.tick()
    shop.spark.tick(3600)
    shop.spark.write("shop.orders").append((4, 20, 1))
    after = shop.spark.tick()
    assert at(shop, stamp(before)) == {"orders": 0}
    assert at(shop, stamp(after)) == {"orders": 1}
    assert at(shop, "1 hour") == {"orders": 0}
    assert at(shop, "1 second") == {"orders": 1}
    with pytest.raises(EngineError, match="POINT_NOT_KNOWN.*since is 'noon'"):
        at(shop, "noon")


def test_a_point_before_the_first_version_is_too_old_or_clamped(shop: Shop) -> None:
    shop.spark.write("shop.orders").append((4, 20, 1))
    earliest = shop.spark.table("shop.orders").commits[0].timestamp
    told = f"POINT_TOO_OLD: since is '2001-01-01'.*{re.escape(stamp(earliest))}.*shop.orders"
    with pytest.raises(EngineError, match=told):
        at(shop, "2001-01-01")
    assert at(shop, "2001-01-01", "at_least") == {"orders": 0}
    with pytest.raises(EngineError, match="Expected 'strict' or 'at_least'"):
        at(shop, 0, "loose")


def test_a_point_whose_files_may_be_gone_is_too_old(shop: Shop) -> None:
    for seconds in (0, 3600, timedelta(days=8).total_seconds()):
        shop.spark.tick(seconds)
        shop.spark.write("shop.orders").append((4, 20, 1))
    shop.spark.tick(60)
    # Version 2 stood eight days long, and was replaced just now.
    with pytest.raises(EngineError, match="POINT_TOO_OLD.*version 2 of shop.orders"):
        at(shop, 1)
    assert at(shop, 1, "at_least") == {"orders": 2}
    assert at(shop, "6 days") == at(shop, "8 days") == {"orders": 2}
    earlier = f"{8 * 24 * 60 + 30} minutes"
    with pytest.raises(EngineError, match="POINT_TOO_OLD"):
        at(shop, earlier)
    kept = {"delta.deletedFileRetentionDuration": "interval 30 days"}
    shop.spark.table("shop.orders").properties.update(kept)
    assert at(shop, 1) == at(shop, earlier) == {"orders": 1}
    assert at(shop, "8 days") == {"orders": 2}


def test_inserts_only_are_neither_consolidated_nor_numbered_by_key(shop: Shop) -> None:
    shop.spark.write("shop.orders").append((4, 20, 1))
    added = select(shop, read_of(unique_key=("id",)))
    assert "/* ADDED_ONLY */" in added
    # Nothing that would take a shuffle, also not for the ids.
    assert "GROUP BY" not in added and "OVER (" not in added
    assert "table_changes_by_path('file:/warehouse/shop.orders', 1, 1)" in added
    shop.spark.write("shop.orders").delete((4, 20, 1))
    assert "/* MINIMIZE */" in select(shop, read_of())
    assert "/* DIFFERENCE */" in select(shop, read_of("select distinct id from shop.orders"))


def test_deletes_only_are_shown_as_they_are(shop: Shop) -> None:
    shop.spark.write("shop.orders").delete((1, 10, 5))
    shop.spark.write("shop.orders").delete((2, 10, 7))
    for mode in ("min_delta", "redo_log"):
        removed = select(shop, read_of(mode=mode, unique_key=("id",)))
        assert "/* REMOVED_ONLY */" in removed and "'DELETE' AS change_action" in removed
        assert "GROUP BY" not in removed and "OVER (" not in removed
    joined = "select a.id from shop.orders a join shop.orders b on a.customer = b.customer"
    assert "/* REMOVED_ONLY */" in select(shop, read_of(joined))
    # A group that lost rows may have got another value.
    grouped = "select customer, count(*) as n from shop.orders group by customer"
    assert "/* MINIMIZE */" in select(shop, read_of(grouped))
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert "/* MINIMIZE */" in select(shop, read_of(joined))


def test_upserts_need_a_key_unless_rows_were_only_added(shop: Shop) -> None:
    shop.spark.write("shop.orders").append((4, 20, 1))
    left_out = "WHERE NOT (change_action = 'DELETE' AND change_is_update)"
    for mode in ("min_delta", "redo_log"):
        assert left_out in select(shop, read_of(mode=mode, upserts=True))
    grouped = "select customer, count(*) as n from shop.orders group by customer"
    assert left_out in select(shop, read_of(grouped, upserts=True))
    with pytest.raises(EngineError, match="UPSERTS_NEED_A_KEY"):
        select(shop, read_of("select distinct id from shop.orders", upserts=True))
    shop.spark.write("shop.orders").delete((4, 20, 1))
    for mode in ("min_delta", "redo_log"):
        assert left_out in select(shop, read_of(mode=mode, upserts=True, unique_key=("id",)))
        with pytest.raises(EngineError, match="UPSERTS_NEED_A_KEY"):
            select(shop, read_of(mode=mode, upserts=True))
    assert left_out in select(shop, read_of(mode="append_only", upserts=True))


def test_few_changes_are_sent_to_every_task(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert "/*+ BROADCAST(feed) */" in select(shop, read_of())
    monkeypatch.setattr(states, "_SMALL", 0)
    assert "BROADCAST" not in select(shop, read_of())


def test_columns_are_group_keys_beside_the_hash_so_that_predicates_pass(shop: Shop) -> None:
    shop.spark.write("shop.orders").delete((1, 10, 5))
    shop.spark.write("shop.orders").append((4, 20, 1))
    sql = select(shop, read_of())
    assert "GROUP BY __dyn_hash_1, __dyn_hash_2, c0, c1, c2 HAVING" in sql


def test_a_feed_that_begins_within_the_interval_is_not_read(shop: Shop) -> None:
    table = shop.spark.table("shop.orders")
    shop.spark.write("shop.orders").append((4, 20, 1))
    properties = {"properties": '{"delta.enableChangeDataFeed":"true"}'}
    table.commit(shop.spark.tick(), "SET TBLPROPERTIES", table.newest, {}, properties)
    assert "table_changes" not in select(shop, read_of())
    shop.spark.write("shop.orders").append((5, 20, 1))
    assert "table_changes_by_path('file:/warehouse/shop.orders', 3, 3)" in select(
        shop, read_of(), since=2
    )


def test_commits_are_in_the_order_of_time_then_of_tables(shop: Shop) -> None:
    sql = "select o.id from shop.orders o join shop.customers c on o.customer = c.id"
    cycle = cycle_of(shop)
    start = position_now(read_of(sql), cycle, shop.session)
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.spark.write("shop.customers").append((30, "z"))
    shop.spark.write("shop.orders").optimize()
    shop.spark.write("shop.orders").delete((4, 20, 1))
    cycle = cycle_of(shop)
    question = ask(read_of(sql), cycle, shop.session)
    found = span(
        question, start, position_now(question.read, cycle, shop.session), cycle, shop.session
    )
    assert [(s.table.name, s.version) for s in steps_of(found, cycle, shop.session)] == [
        ("orders", 1), ("customers", 1), ("orders", 3),
    ]  # fmt: skip


def test_a_redo_log_of_too_many_commits_is_refused(shop: Shop) -> None:
    sql = "select customer, count(*) as n from shop.orders group by customer"
    for number in range(201):
        shop.spark.write("shop.orders").append((100 + number, 20, 1))
    with pytest.raises(EngineError, match="TOO_MANY_COMMITS.*has 201"):
        select(shop, read_of(sql, "redo_log"))
    once = select(shop, read_of(ALL, "redo_log"))
    assert once.count("table_changes") == 1


def test_a_source_that_was_made_anew_is_no_change(shop: Shop) -> None:
    cycle = cycle_of(shop)
    start = position_now(read_of(), cycle, shop.session)
    shop.spark.drop("shop.orders")
    shop.spark.create("shop.orders", {"id": "int", "customer": "int", "amount": "int"}, (1, 1, 1))
    cycle = cycle_of(shop)
    end = position_now(read_of(), cycle, shop.session)
    with pytest.raises(EngineError, match="SOURCE_REPLACED"):
        change_select(read_of(), start, end, cycle, shop.session)


def test_points_in_the_wrong_order_are_refused(shop: Shop) -> None:
    cycle = cycle_of(shop)
    start = position_now(read_of(), cycle, shop.session)
    shop.spark.write("shop.orders").append((4, 20, 1))
    cycle = cycle_of(shop)
    end = position_now(read_of(), cycle, shop.session)
    with pytest.raises(EngineError, match="POINTS_REVERSED.*version 1 back to 0"):
        change_select(read_of(), end, start, cycle, shop.session)


def test_texts_with_line_breaks_in_quotes_are_left_alone(shop: Shop) -> None:
    shop.spark.write("shop.orders").delete((1, 10, 5))
    sql = select(shop, read_of("select distinct id, 'a\n  b\nc' as text from shop.orders"))
    assert sql.count("'a\n  b\nc'") == 2


def test_a_column_with_the_name_of_a_function_is_not_taken_for_it(shop: Shop) -> None:
    # Inside EXISTS, Spark takes `user` for the current user before it looks outside.
    columns = {"user": "string", "url": "string"}
    table = shop.spark.create("shop.clicks", columns, ("a", "x"))
    table.properties["delta.enableChangeDataFeed"] = "true"
    shop.spark.write("shop.clicks").append(("b", "y"))
    sql = select(shop, read_of("select user, count(*) as n from shop.clicks group by user"))
    assert "EXISTS" in sql
    assert not re.search(r"WHERE\s+`user` IS NOT DISTINCT", sql)
    assert re.search(r"WHERE\s+`user_\d+` IS NOT DISTINCT", sql)


def test_an_interval_with_other_columns_is_refused(shop: Shop) -> None:
    shop.spark.write("shop.orders").comment_column("id", "a number")
    assert "/* ADDED_ONLY */" in select(shop, read_of())
    shop.spark.write("shop.orders").add_column("note", "string")
    with pytest.raises(EngineError, match="COLUMNS_CHANGED.*shop.orders"):
        select(shop, read_of())
    shop.spark.write("shop.orders").append((4, 20, 1, "x"))
    assert "/* ADDED_ONLY */" in select(shop, read_of(), since=2)


def test_a_dynamic_table_is_read_at_its_refreshes(shop: Shop) -> None:
    shop.models["totals"] = "select customer, amount from shop.orders"
    shop.run()
    first = shop.recorded("totals")
    read = read_of("select * from shop.totals")
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.run()
    second = shop.recorded("totals")
    assert first.commit.version < second.commit.version
    for taken in (first, second):
        found = at(shop, stamp(taken.record.data_timestamp), sql=read.sql)
        assert found == {"totals__dyn": taken.commit.version}


def test_generations_of_a_dynamic_table_are_compared(shop: Shop) -> None:
    shop.models["totals"] = "select customer, amount from shop.orders"
    shop.run()
    read = read_of("select customer from shop.totals")
    start = position_now(read, cycle_of(shop), shop.session)
    shop.models["totals"] = "select customer, amount, id from shop.orders"
    shop.run()
    cycle = cycle_of(shop)
    end = position_now(read, cycle, shop.session)
    sql = change_select(read, start, end, cycle, shop.session)
    assert "`shop`.`totals__dyn` VERSION AS OF 0" in sql
    assert "`shop`.`totals__dyn_2` VERSION AS OF 0" in sql
    with pytest.raises(EngineError, match="UPSTREAM_REBUILT"):
        distinct = read_of("select distinct customer from shop.totals")
        change_select(distinct, start, end, cycle, shop.session)
