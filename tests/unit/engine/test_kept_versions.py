"""A version can be read for as long as its files are kept: from when it was replaced on."""

from datetime import timedelta
from typing import Any

import pytest
from fake_shop import SETTINGS, Shop, small_shop

from spark_dynamic.changes.kept import available
from spark_dynamic.changes.points import Asking, position_of
from spark_dynamic.changes.read import ChangeRead, Mode, Position, change_select, position_now
from spark_dynamic.changes.staleness import check_kept, stale_at
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName

ORDERS = TableName("shop", "orders")
DAY = timedelta(days=1).total_seconds()
GROUPED = "select customer, sum(amount) as total from shop.orders group by customer"
DISTINCT = "select distinct customer from shop.orders"
JOINED = "select o.id, c.name from shop.orders o join shop.customers c on o.customer = c.id"


@pytest.fixture
def shop() -> Shop:
    """Orders that stood for 20 days and were replaced just now."""
    found = small_shop()
    for name in ("orders", "customers"):
        found.spark.table(f"shop.{name}").properties["delta.enableChangeDataFeed"] = "true"
    found.spark.tick(20 * DAY)
    found.spark.write("shop.orders").delete((1, 10, 5))
    return found


def read_of(sql: str, mode: str = "min_delta") -> ChangeRead:
    return ChangeRead(sql, "shop", dict(SETTINGS), Mode(mode))


def select(shop: Shop, read: ChangeRead, since: Any = "1 hour", **more: Any) -> str:
    cycle = shop.open_cycle()
    start = position_of(Asking("since", since), read, cycle, shop.session)
    end = position_now(read, cycle, shop.session)
    return change_select(read, start, end, cycle, shop.session, **more)


def here(shop: Shop) -> Position:
    return position_now(read_of("select * from shop.orders"), shop.open_cycle(), shop.session)


@pytest.mark.parametrize("mode", ["min_delta", "redo_log"])
@pytest.mark.parametrize("sql", [GROUPED, DISTINCT, JOINED])
def test_an_old_version_that_was_replaced_just_now(shop: Shop, sql: str, mode: str) -> None:
    found = select(shop, read_of(sql, mode), initial_rows=True)
    assert "`shop`.`orders` VERSION AS OF 0" in found


def test_a_version_that_was_replaced_long_ago(shop: Shop) -> None:
    start = here(shop)
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.spark.tick(8 * DAY)
    shop.spark.write("shop.orders").append((5, 20, 1))
    cycle = shop.open_cycle()
    read = read_of(DISTINCT)
    with pytest.raises(EngineError, match="HISTORY_LOST: Version 1 of shop.orders"):
        end = position_now(read, cycle, shop.session)
        change_select(read, start, end, cycle, shop.session)
    with pytest.raises(EngineError, match="POINT_TOO_OLD.*version 2 of shop.orders"):
        select(shop, read, since=1)
    with pytest.raises(EngineError, match="STREAM_STALE.*after version 1"):
        check_kept("orders_stream", start, cycle, shop.session)
    assert "VERSION AS OF 2" in select(shop, read, since=2)


def test_files_that_are_written_anew_take_no_rows_away(shop: Shop) -> None:
    """The files of the old version may be gone, those of the last OPTIMIZE are there."""
    start = here(shop)
    for _ in range(2):
        shop.spark.write("shop.orders").optimize()
        shop.spark.tick(8 * DAY)
    cycle = shop.open_cycle()
    assert stale_at(start, cycle, shop.session) is None
    assert "VERSION AS OF 3" in select(shop, read_of(GROUPED), since=1, initial_rows=True)
    shop.spark.write("shop.orders").append((4, 20, 1))
    cycle = shop.open_cycle()
    check_kept("orders_stream", start, cycle, shop.session)
    left = stale_at(start, cycle, shop.session)
    assert left is not None and left > cycle.data_timestamp + timedelta(days=6)
    found = select(shop, read_of(DISTINCT), since=1, initial_rows=True)
    assert "VERSION AS OF 3" in found and "VERSION AS OF 1" not in found


def test_a_table_that_did_not_change_is_there_at_every_moment(shop: Shop) -> None:
    """Made 30 days ago, changed 10 days ago for the last time, and files are kept for 7."""
    shop.spark.tick(10 * DAY)
    cycle = shop.open_cycle()

    def version(since: Any, sql: str) -> int:
        [pin] = position_of(Asking("since", since), read_of(sql), cycle, shop.session).values()
        return pin.version

    for since in ("8 days", "29 days", 0):
        assert version(since, "select id from shop.customers") == 0
    assert version("9 days", "select id from shop.orders") == 1
    # What was before the change is gone.
    with pytest.raises(EngineError, match="POINT_TOO_OLD.*because of shop.orders"):
        version("11 days", "select id from shop.orders")


def test_the_earliest_point_is_the_oldest_version_that_is_kept(shop: Shop) -> None:
    cycle = shop.open_cycle()
    # Replaced today, so it is there from the day on which it was made.
    moment, commit = available(ORDERS, cycle, shop.session)
    assert commit.version == 0 and moment == commit.timestamp
    for _ in range(2):
        shop.spark.write("shop.orders").optimize()
    shop.spark.tick(8 * DAY)
    moment, commit = available(ORDERS, shop.open_cycle(), shop.session)
    assert commit.version == 1 and moment == commit.timestamp
