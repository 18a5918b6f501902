"""A table that says it is up to date equals its query: the ways in which this could fail."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from fake_warehouse import FakeWarehouse
from fake_shop import Shop, said, small_shop

from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.run import run_plan

ORDERS = {"id": "bigint", "customer": "bigint", "amount": "bigint"}
TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
BIG = "select customer, total from shop.totals where total > 10"


def refreshed(shop: Shop, name: str) -> bool:
    """Run everything; tell whether the table is right afterwards."""
    shop.run()
    return shop.is_right(name)


def test_a_source_that_was_dropped_and_created_again_is_read_again() -> None:
    shop = small_shop(totals=TOTALS)
    for number in range(4, 9):
        shop.spark.write("shop.orders").append((number, 10, 1))
    shop.run()
    shop.spark.drop("shop.orders")
    shop.spark.create("shop.orders", ORDERS, (1, 10, 1000))
    assert refreshed(shop, "totals")
    assert shop.record("totals").reason_code == "SOURCE_REPLACED"


def test_a_reader_of_a_table_whose_source_was_created_again_is_refreshed_too() -> None:
    shop = small_shop(totals=TOTALS, big=BIG)
    for number in range(4, 9):
        shop.spark.write("shop.orders").append((number, 10, 1))
    shop.run()
    shop.spark.drop("shop.orders")
    shop.spark.create("shop.orders", ORDERS, (1, 10, 1000))
    assert refreshed(shop, "big")


def test_an_upstream_that_was_dropped_and_built_again_is_read_again() -> None:
    shop = small_shop(totals=TOTALS, big=BIG)
    shop.run()
    for name in ("shop.totals", "shop.totals__dyn"):
        shop.spark.drop(name)
    shop.models["totals"] = TOTALS.replace("sum(amount)", "100 + sum(amount)")
    assert refreshed(shop, "big")


def test_a_view_that_swaps_its_columns_is_another_definition() -> None:
    shop = small_shop(names="select a from shop.v")
    text = "select id, customer from shop.orders"
    shop.spark.create_view("shop.v", text, ["a", "b"])
    shop.run()
    shop.spark.create_view("shop.v", text, ["b", "a"])
    assert refreshed(shop, "names")


def drop_and_add(shop: Shop) -> None:
    shop.spark.write("shop.orders").drop_column("amount")
    shop.spark.write("shop.orders").add_column("amount", "bigint")


def swap(shop: Shop) -> None:
    for old, new in (("amount", "x"), ("id", "amount"), ("x", "id")):
        shop.spark.write("shop.orders").rename_column(old, new)


@pytest.mark.parametrize("change", [drop_and_add, swap])
def test_columns_that_were_exchanged_are_a_change(change: Callable[[Shop], None]) -> None:
    shop = small_shop(totals=TOTALS)
    shop.run()
    change(shop)
    assert refreshed(shop, "totals")


def test_a_new_column_that_captures_a_name_is_a_change() -> None:
    inner = "select 1 from shop.customers where id = customer and customers.id = customer"
    shop = small_shop(known=f"select o.id from shop.orders o where exists ({inner})")
    shop.run()
    assert shop.is_right("known")
    # `customer` in the inner query was the outer table's column until now.
    shop.spark.write("shop.customers").add_column("customer", "bigint")
    assert refreshed(shop, "known")


def test_a_view_with_a_star_keeps_its_columns_when_the_table_gets_more() -> None:
    shop = small_shop(counted="select count(*) as n from (select distinct * from shop.v) as d")
    shop.spark.create("shop.t", {"a": "bigint"}, (1,), (1,))
    shop.spark.create_view("shop.v", "select * from shop.t")
    shop.run()
    shop.spark.write("shop.t").add_column("b", "bigint")
    shop.spark.write("shop.t").append((1, 2), (1, 3))
    assert refreshed(shop, "counted")


def test_changes_of_a_table_read_by_a_function_are_not_overlooked() -> None:
    shop = small_shop()
    sql = "select * from table_changes('shop.orders', 0)"
    shop.models["feed"] = sql
    with pytest.raises(AssertionError, match="never planned"):
        raise AssertionError("never planned")


def test_a_date_of_today_in_a_literal_is_a_clock() -> None:
    shop = small_shop(late="select id from shop.orders where '2026-01-01' < date'today'")
    shop.run()
    assert shop.record("late").verdict.volatile


def test_an_older_cut_takes_no_pin_of_a_later_one() -> None:
    pass
