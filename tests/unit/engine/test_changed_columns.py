"""Sources get other columns: who uses them notices, and nobody else."""

import pytest
from fake_shop import SETTINGS, Shop, small_shop
from fake_streams import StreamShop, StreamWarehouse
from fake_windows import built, with_rows

from spark_dynamic.changes.append_only import append_only
from spark_dynamic.changes.consume import Batch
from spark_dynamic.changes.consumer import ConsumerRequest
from spark_dynamic.changes.points import Asking, position_of
from spark_dynamic.changes.question import ask
from spark_dynamic.changes.read import ChangeRead, Mode, change_select, position_now
from spark_dynamic.changes.states import span
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName

NAMED = "select id, amount from shop.orders"
DISTINCT = "select distinct id from shop.orders"
EVERYTHING = "select * from shop.orders"


@pytest.fixture
def shop() -> Shop:
    found = small_shop()
    found.spark.table("shop.orders").properties["delta.enableChangeDataFeed"] = "true"
    return found


def read_of(sql: str, mode: str = "min_delta") -> ChangeRead:
    return ChangeRead(sql, "shop", dict(SETTINGS), Mode(mode))


def select(
    shop: Shop, sql: str, mode: str = "min_delta", until: int | None = None, since: int = 0
) -> str:
    read, cycle = read_of(sql, mode), shop.open_cycle()
    start = position_of(Asking("since", since), read, cycle, shop.session)
    end = position_now(read, cycle, shop.session)
    if until is not None:
        end = position_of(Asking("until", until), read, cycle, shop.session)
    return change_select(read, start, end, cycle, shop.session)


@pytest.mark.parametrize("mode", ["min_delta", "redo_log", "append_only"])
def test_a_new_column_is_no_matter_to_queries_that_do_not_use_it(shop: Shop, mode: str) -> None:
    shop.spark.write("shop.orders").add_column("note", "string")
    shop.spark.write("shop.orders").append((4, 20, 1, "x"))
    sql = select(shop, NAMED, mode)
    assert "/* ADDED_ONLY */" in sql and "note" not in sql
    shop.spark.write("shop.orders").delete((1, 10, 5, None))
    assert "table_changes" in select(shop, NAMED, mode)
    with pytest.raises(EngineError, match="COLUMNS_CHANGED.*uses note.*version 0 of shop.orders"):
        select(shop, EVERYTHING, mode)


def test_a_query_without_a_plan_goes_by_what_its_text_gives(shop: Shop) -> None:
    shop.spark.write("shop.orders").add_column("note", "string")
    shop.spark.write("shop.orders").append((4, 20, 1, "x"))
    assert "/* DIFFERENCE */" in select(shop, DISTINCT)
    with pytest.raises(EngineError, match="COLUMNS_CHANGED.*version 0 of shop.orders"):
        select(shop, "select distinct * from shop.orders")


def test_the_end_may_lack_columns_too(shop: Shop) -> None:
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.spark.write("shop.orders").add_column("note", "string")
    assert "/* ADDED_ONLY */" in select(shop, NAMED, until=1)
    with pytest.raises(EngineError, match="COLUMNS_CHANGED"):
        select(shop, EVERYTHING, until=1)


def test_the_feed_is_not_read_across_a_column_that_went(shop: Shop) -> None:
    """Delta refuses a feed whose columns were dropped or changed, whoever uses them."""
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.spark.write("shop.orders").drop_column("amount")
    shop.spark.write("shop.orders").append((5, 20))
    for sql in (
        select(shop, "select id from shop.orders"),
        # Also not before it: it would be read with the columns of today.
        select(shop, "select id from shop.orders", until=1),
    ):
        assert "table_changes" not in sql and "VERSION AS OF 0" in sql
    log = select(shop, "select id from shop.orders", "redo_log")
    assert log.count("table_changes") == 1
    assert "table_changes_by_path('file:/warehouse/shop.orders', 3, 3)" in log
    with pytest.raises(EngineError, match="COLUMNS_CHANGED.*uses amount"):
        ask_again = "select id, amount from shop.orders"
        shop.spark.write("shop.orders").add_column("amount", "string")
        select(shop, ask_again)


def test_append_only_tells_rows_apart_by_the_columns_of_both_ends(shop: Shop) -> None:
    shop.spark.write("shop.orders").overwrite((1, 10, 5), (7, 10, 5))
    shop.spark.write("shop.orders").add_column("note", "string")
    cycle = shop.open_cycle()
    question = ask(read_of(NAMED, "append_only"), cycle, shop.session)
    start = position_of(Asking("since", 0), question.read, cycle, shop.session)
    end = position_now(question.read, cycle, shop.session)
    between = span(question, start, end, cycle, shop.session)
    assert "note" not in append_only(question, between, cycle, shop.session)


def test_a_consumer_goes_on_behind_a_new_column() -> None:
    shop = StreamShop()
    shop.spark.table("shop.orders").properties["delta.enableChangeDataFeed"] = "true"
    orders = TableName("shop", "orders")
    session = StreamWarehouse(shop.spark)

    def take(sql: str) -> str:
        read, cycle = read_of(sql), shop.shop.open_cycle()
        stream = shop.stream(
            "orders", read=read, start=start, has_chosen_start=True, initial_rows=False
        )
        request = ConsumerRequest("model.shop.one", TableName("shop", "one"), "0.test")
        batch = Batch(request, cycle, session, lambda _: None)
        return batch.take(stream, position_now(read, cycle, session), session)

    cycle = shop.shop.open_cycle()
    start = {orders: cycle.pin(session, orders, cycle.data_timestamp)}
    shop.spark.write("shop.orders").add_column("note", "string")
    shop.spark.write("shop.orders").append((4, 20, 1, "x"))
    assert "/* ADDED_ONLY */" in take(NAMED)
    told = "STREAM_COLUMNS_CHANGED.*uses note.*--full-refresh.*changes_stream_move"
    with pytest.raises(EngineError, match=told):
        take(EVERYTHING)


def test_a_window_goes_on_behind_a_column_that_it_does_not_use() -> None:
    shop = with_rows()
    shop.spark.write("shop.orders").add_column("note", "string")
    shop.spark.write("shop.orders").append((7, 20, 9, "x"))
    assert shop.actions()[0] == "INCREMENTAL"
    assert [row[0] for row in shop.rows("shop.recent")] == [3, 1, 7]
    # Also a rebuild with strict bounds, whose interval begins before it.
    shop.go(full_refresh=True)
    assert sorted(row[0] for row in shop.rows("shop.recent")) == [1, 3, 7]


def test_a_window_begins_again_where_a_used_column_came_and_not_later() -> None:
    shop = built("select id, name from shop.people", bound="at_least")
    shop.spark.write("shop.people").append((30, "c"))
    shop.go()
    shop.spark.write("shop.people").add_column("age", "bigint")
    shop.windows.clear()
    shop.keep("select id, age from shop.people", bound="at_least")
    shop.spark.write("shop.people").append((40, "d", 9))
    shop.spark.write("shop.people").add_column("note", "string")
    shop.go()
    assert [row[:2] for row in shop.rows("shop.recent")] == [(40, 9)]
