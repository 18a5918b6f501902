"""What `changes()` and `upserts()` make of relations and points that name other models."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fake_dbt import DbtShop, StateWarehouse, dbt_shop
from fake_shop import SETTINGS
from fake_streams import StreamWarehouse

from dbt.adapters.spark_dynamic import change_queries, dynamic_tables
from dbt.adapters.spark_dynamic.change_queries import ChangeQueries
from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.errors import ChangesError
from spark_dynamic.changes.read import ChangeRead, Mode
from spark_dynamic.changes.stream import Stream, write_stream
from spark_dynamic.frontier.record import Pin
from spark_dynamic.names import TableName

ORDERS = TableName("shop", "orders")
QUERY = "select id from shop.orders"


class Session(StreamWarehouse, StateWarehouse):
    """A session for everything that a run asks."""


def relation(name: str) -> Any:
    return SimpleNamespace(schema="shop", identifier=name, is_cte=False)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[DbtShop]:
    with dbt_shop(monkeypatch) as made:
        for module in (dynamic_tables, change_queries):
            monkeypatch.setattr(module, "DbtWarehouse", lambda adapter: Session(adapter.spark))
        made.spark.table("shop.orders").properties["delta.enableChangeDataFeed"] = "true"
        yield made


def make_stream(shop: DbtShop) -> None:
    """Make a log with a key that starts at version 1 of its table."""
    shop.model("orders_stream", QUERY, materialized="changes_stream")
    commit = shop.spark.table("shop.orders").commits[1]
    start = Pin(ORDERS, "file:/warehouse/shop.orders", 1, commit.timestamp)
    stream = Stream(
        model="model.shop.orders_stream",
        view=TableName("shop", "orders_stream"),
        read=ChangeRead(QUERY, "shop", dict(SETTINGS), Mode.REDO_LOG, unique_key=("id",)),
        fingerprint="f",
        text_hash="t",
        start={ORDERS: start},
        started_at=shop.spark.clock,
        initial_rows=False,
        has_chosen_start=True,
        at="1",
    )
    shop.spark.create_view("shop.orders_stream", QUERY)
    shop.spark.view("shop.orders_stream").properties.update(write_stream(stream))


def changes(shop: DbtShop, what: Any, since: Any, **more: Any) -> str:
    shop.spark.tick(60)
    adapter = shop.adapter()
    return ChangeQueries(adapter, DynamicTables(adapter)).changes(what, since, **more)


def test_a_stream_stands_for_its_query(shop: DbtShop) -> None:
    for number in (4, 5, 6):
        shop.spark.write("shop.orders").append((number, 20, 1))
    make_stream(shop)
    stream = relation("orders_stream")
    for point in ({"stream": "orders_stream"}, {"stream": stream}):
        sql = changes(shop, stream, point)
        # From its start, as the log that it is, and with its key.
        assert "table_changes_by_path('file:/warehouse/shop.orders', 2, 3)" in sql
        assert "change_diff" in sql and "OVER (" not in sql
    net = changes(shop, stream, 2, mode="min_delta")
    assert "change_diff" not in net and "orders', 3, 3)" in net
    assert "WHERE NOT (" in changes(shop, stream, "0", as_upserts=True)
    # A table is no stream.
    assert "change_diff" not in changes(shop, relation("orders"), {"stream": "orders_stream"})


def test_a_dynamic_table_is_a_point(shop: DbtShop) -> None:
    shop.model("totals", "select customer, amount from shop.orders")
    shop.run("totals")
    shop.spark.write("shop.orders").append((4, 20, 1))
    totals = relation("totals")
    for point in (totals, {"dynamic_table": totals}, {"dynamic_table": "totals"}):
        assert "shop.orders', 1, 1)" in changes(shop, QUERY, point, until="now")
    with pytest.raises(Exception, match="'orders' is no model with materialized='dynamic_table'"):
        changes(shop, QUERY, {"dynamic_table": "orders"})
    with pytest.raises(ChangesError, match="POINT_NOT_KNOWN: since is {'table': 'totals'}"):
        changes(shop, QUERY, {"table": "totals"})


def test_every_point_ends_an_interval(shop: DbtShop) -> None:
    """Version 1 by its number, its time, an interval, a stream's start, a table's cut, or now."""
    shop.spark.write("shop.orders").append((4, 20, 1))
    moment = shop.spark.clock
    shop.model("totals", "select customer, amount from shop.orders")
    shop.run("totals")
    make_stream(shop)
    last = "shop.orders', 1, 1)"
    assert last in changes(shop, QUERY, 0, until="now")
    shop.spark.tick(7200)
    shop.spark.write("shop.orders").append((5, 20, 1))
    assert last not in changes(shop, QUERY, 0)
    points = (
        1,
        "1",
        str(moment),
        "1 hour",
        {"stream": "orders_stream"},
        {"dynamic_table": "totals"},
    )
    for point in (*points, relation("totals")):
        assert last in changes(shop, QUERY, 0, until=point), point
    # As long as it is not before the beginning.
    with pytest.raises(ChangesError, match="POINTS_REVERSED"):
        changes(shop, QUERY, 2, until="1 hour")
    with pytest.raises(ChangesError, match="POINT_NOT_KNOWN: until is 'soon'"):
        changes(shop, QUERY, 0, until="soon")


def test_everything_since_before_the_first_change(shop: DbtShop) -> None:
    shop.spark.write("shop.orders").append((4, 20, 1))
    log = changes(shop, QUERY, "before the first change", mode="redo_log")
    # The table was made with rows.
    assert "INITIAL_ROWS" in log and "shop.orders', 1, 1)" in log
    net = changes(shop, QUERY, "before the first change")
    assert "INITIAL_ROWS" in net and "table_changes" not in net


def test_the_key_of_a_dynamic_table_names_its_changes(shop: DbtShop) -> None:
    shop.model("kept", "select id, amount from shop.orders", unique_key="id")
    shop.run("kept")
    kept = relation("kept")
    told = "unique_key of shop.kept (id)"
    shop.spark.write("shop.orders").delete((1, 10, 5))
    shop.run("kept")
    assert told in changes(shop, kept, 0)
    assert "WHERE NOT (" in changes(shop, kept, 0, as_upserts=True)
    named = changes(shop, kept, 0, unique_key="amount")
    assert told not in named and "unique_key (amount)" in named
    # Declared for somebody else's rows: groups have their own keys.
    grouped = "select amount, count(*) as n from shop.kept group by amount"
    assert told not in changes(shop, grouped, 0)
