"""The unique_key of a dynamic table: where it is kept, and what it does for readers of changes."""

from dataclasses import replace
from typing import Any

import pytest
from fake_shop import SETTINGS, Shop, config, small_shop
from fake_streams import StreamWarehouse

from spark_dynamic.apply.rows import Rows
from spark_dynamic.apply.storage import narrowing_columns
from spark_dynamic.apply.unique_key import UNIQUE_KEY_PROPERTY, read_key, write_key
from spark_dynamic.changes.build_stream import BuiltStream, StreamRequest, build_stream
from spark_dynamic.changes.question import ask
from spark_dynamic.changes.read import ChangeRead, Mode, change_select, position_now
from spark_dynamic.changes.stream import read_stream
from spark_dynamic.changes.stream_config import StreamConfig
from spark_dynamic.changes.upstream_keys import with_upstream_keys
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Relation

KEPT = TableName("shop", "kept")
ALL = "select * from shop.kept"


@pytest.fixture
def shop() -> Shop:
    shop = small_shop(kept="select id, customer, amount as `the amount` from orders")
    shop.configs["kept"] = {"unique_key": "ID"}
    shop.run()
    return shop


def cycle_of(shop: Shop) -> Cycle:
    return shop.open_cycle()


def read_of(sql: str = ALL, mode: str = "min_delta", **more: Any) -> ChangeRead:
    return ChangeRead(sql, "shop", dict(SETTINGS), Mode(mode), **more)


def taken(shop: Shop, read: ChangeRead) -> ChangeRead:
    return with_upstream_keys(read, cycle_of(shop), shop.session)


def key_of(shop: Shop) -> tuple[str, ...]:
    properties = ", ".join(f"{k}={v}" for k, v in shop.storage("kept").properties.items())
    return read_key(Relation(KEPT, (), "delta", "", f"[{properties}]"))


def test_a_key_is_kept_with_the_storage_and_follows_the_config(shop: Shop) -> None:
    assert key_of(shop) == ("ID",)
    shop.configs["kept"] = {"unique_key": ["customer", "the amount"]}
    assert shop.run() == {"kept": "NO_DATA"}
    assert key_of(shop) == ("customer", "the amount")
    shop.configs["kept"] = {}
    assert shop.run() == {"kept": "NO_DATA"}
    assert key_of(shop) == () and UNIQUE_KEY_PROPERTY not in shop.storage("kept").properties
    shop.configs["kept"] = {"unique_key": "id", "on_configuration_change": "continue"}
    shop.run()
    assert key_of(shop) == ()


def test_no_word_in_a_key_makes_spark_hide_it() -> None:
    [value] = write_key(["secret token", "a, b=c]"]).values()
    assert set(value) <= set("0123456789abcdef")
    properties = f"[a=b,{UNIQUE_KEY_PROPERTY}={value},z=1]"
    assert read_key(Relation(KEPT, (), "delta", "", properties)) == ("secret token", "a, b=c]")


def test_the_key_of_a_dynamic_table_names_the_rows_of_its_changes(shop: Shop) -> None:
    read = taken(shop, read_of())
    assert read.upstream_keys == {KEPT: ("ID",)}
    question = ask(read, cycle_of(shop), shop.session)
    assert question.layout.is_named
    assert question.layout.declared == "unique_key of shop.kept (ID)"
    # The key column need not be shown.
    assert taken(shop, read_of("select customer from shop.kept where id > 1")).upstream_keys


def test_a_column_with_another_name_in_storage_is_found(shop: Shop) -> None:
    shop.configs["kept"] = {"unique_key": "the amount"}
    shop.run()
    for read in (taken(shop, read_of()), read_of(row_keys={KEPT: ("the amount",)})):
        question = ask(read, cycle_of(shop), shop.session)
        assert question.layout.has_ids and "shop.kept" in question.layout.declared


def test_a_key_of_the_readers_own_comes_first(shop: Shop) -> None:
    for more in ({"unique_key": ("customer",)}, {"row_keys": {KEPT: ("customer",)}}):
        assert not taken(shop, read_of(**more)).upstream_keys
    joined = f"select k.id, o.amount from ({ALL}) k join shop.orders o on k.id = o.id"
    named = read_of(joined, row_keys={TableName("shop", "orders"): ("id",)})
    assert taken(shop, named).upstream_keys == {KEPT: ("ID",)}
    declared = ask(taken(shop, named), cycle_of(shop), shop.session).layout.declared
    assert declared == "row_keys (shop.orders) and unique_key of shop.kept (ID)"


@pytest.mark.parametrize(
    "sql",
    [
        # Groups have keys of their own.
        "select customer, count(*) as n from shop.kept group by customer",
        # The other source has no key, so that no id is whole.
        "select k.id, o.amount from shop.kept k join shop.orders o on k.id = o.id",
        # Ids do not travel through it.
        "select distinct customer from shop.kept",
        "select id from shop.orders",
    ],
)
def test_a_key_that_names_no_row_of_the_result_is_left_alone(shop: Shop, sql: str) -> None:
    assert not taken(shop, read_of(sql)).upstream_keys
    ask(read_of(sql), cycle_of(shop), shop.session)


def test_updates_are_told_from_deletes_and_inserts_by_it(shop: Shop) -> None:
    read = taken(shop, read_of())
    cycle = cycle_of(shop)
    start = position_now(read, cycle, shop.session)
    shop.spark.write("shop.orders").delete((1, 10, 5))
    shop.run()
    cycle = cycle_of(shop)
    end = position_now(read, cycle, shop.session)
    sql = change_select(read, start, end, cycle, shop.session)
    assert "ROW_KEY_NOT_UNIQUE" in sql and "unique_key of shop.kept (ID)" in sql


def test_a_key_that_is_gone_is_not_replaced_silently(shop: Shop) -> None:
    read = replace(read_of(), upstream_keys={KEPT: ("number",)})
    with pytest.raises(EngineError, match="ROW_KEYS_NOT_USABLE.*shop.kept so far, number"):
        ask(read, cycle_of(shop), shop.session)


def build(shop: Shop, sql: str = ALL) -> BuiltStream:
    session, cycle = StreamWarehouse(shop.spark), shop.open_cycle()
    view = TableName("shop", "kept_stream")
    request = StreamRequest("model.shop.kept_stream", view, read_of(sql), StreamConfig())
    return build_stream(
        request, cycle, session, lambda one: position_now(one, cycle, session), Any
    )


def test_the_key_is_part_of_a_streams_definition(shop: Shop) -> None:
    first = build(shop)
    known = read_stream(StreamWarehouse(shop.spark), first.stream.view)
    assert known is not None and known.read.upstream_keys == {KEPT: ("ID",)}
    again = build(shop)
    assert not again.is_started and again.stream == known
    shop.configs["kept"] = {"unique_key": "customer"}
    shop.run()
    # Its consumers fail with STREAM_CHANGED, rather than see other rows updated.
    changed = build(shop)
    assert changed.is_started and changed.stream.fingerprint != first.stream.fingerprint


def test_a_stream_that_does_not_use_the_key_does_not_change_with_it(shop: Shop) -> None:
    groups = "select customer, count(*) as n from shop.kept group by customer"
    first = build(shop, groups)
    shop.configs["kept"] = {"unique_key": "customer"}
    shop.run()
    assert build(shop, groups).stream.fingerprint == first.stream.fingerprint


def test_deleted_rows_are_bounded_by_the_key_and_the_layout() -> None:
    columns = tuple(
        StoredColumn(name, name, type)
        for name, type in (("Id", "int"), ("day", "date"), ("x", "double"), ("t", "string"))
    )

    def bounded(**raw: Any) -> list[str]:
        found = Rows(columns, narrowing_columns(config(**raw))).narrowing
        return [column.name for column in found]

    every = [column.name for column in columns]
    assert bounded() == bounded(partition_by="day") == every
    assert bounded(unique_key="id") == ["Id"]
    assert bounded(unique_key=["id", "x"], partition_by="day") == ["Id", "day"]
    assert bounded(unique_key="t", clustered_by=["day"]) == ["day", "t"]
    # A number that may be NaN has no bounds, so others may help.
    assert bounded(unique_key="x") == every
