"""A writer whose clock is ahead: its rows are read all the same, and the run says so."""

from datetime import timedelta

from fake_shop import Shop, small_shop

from spark_dynamic.clock import SKEW
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle

DAY = timedelta(days=1)
ORDERS = TableName("shop", "orders")
TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
PAIRS = "select t.total, c.name from shop.totals t join shop.customers c on c.id = t.customer"


def append(shop: Shop, table: str, row: tuple[object, ...], ahead: timedelta = DAY) -> None:
    """Commit a row with a clock that is ahead; the world's own goes on as before."""
    now = shop.spark.clock
    shop.spark.clock = now + ahead
    shop.spark.write(f"shop.{table}").append(row)
    shop.spark.clock = now


def version(shop: Shop, cycle: Cycle) -> int:
    return cycle.pin(shop.session, ORDERS, cycle.data_timestamp).version


def test_rows_from_the_future_are_refreshed_now() -> None:
    shop = small_shop(totals=TOTALS)
    shop.run()
    append(shop, "orders", (4, 20, 90))
    assert shop.run() != {"totals": "NO_DATA"}
    assert shop.is_right("totals")
    # Delta dates what others commit afterwards a millisecond later, each time.
    append(shop, "orders", (5, 20, 90), DAY + timedelta(milliseconds=1))
    shop.run()
    assert shop.is_right("totals")
    assert shop.run() == {"totals": "NO_DATA"}


def test_the_warning_names_the_table_and_how_far_it_is_ahead() -> None:
    shop = small_shop(totals=TOTALS)
    append(shop, "orders", (4, 20, 90))
    cycle = shop.open_cycle()
    shop.refresh("totals", cycle)
    [warning] = cycle.take_warnings()
    assert warning.startswith("shop.orders has commits from the future: version 1 is dated ")
    assert "23h 59m ahead" in warning
    # It is said once in a run.
    cycle.catalog.forget(ORDERS)
    shop.refresh("totals", cycle)
    assert cycle.take_warnings() == []


def test_an_older_cut_that_lacks_rows_from_the_future_says_so() -> None:
    shop = small_shop(totals=TOTALS, pairs=PAIRS)
    shop.run("totals")
    append(shop, "customers", (20, "late"))
    shop.spark.write("shop.orders").append((4, 20, 90))
    cycle = shop.open_cycle()
    shop.refresh("pairs", cycle)
    assert shop.record("pairs").data_timestamp == shop.record("totals").data_timestamp
    assert [text.split()[0] for text in cycle.take_warnings()] == ["shop.customers"]


def test_a_commit_that_lands_during_a_long_run_is_none_from_the_future() -> None:
    shop = small_shop(totals=TOTALS)
    cycle = shop.open_cycle()
    shop.spark.tick(7200)
    shop.spark.write("shop.orders").append((4, 20, 90))
    assert version(shop, cycle) == 0
    assert cycle.take_warnings() == []


def test_clocks_that_differ_a_little_still_give_one_cut() -> None:
    """Both tables are dated by one clock: what it says of the cycle's beginning is one instant."""
    shop = small_shop()
    little = SKEW / 2
    cycle = shop.open_cycle()
    append(shop, "orders", (4, 20, 90), little)
    assert version(shop, cycle) == 0
    shop.spark.tick(little.total_seconds())
    assert version(shop, shop.open_cycle()) == 1


def test_pins_of_the_future_are_reused_at_their_moment_and_never_go_back() -> None:
    shop = small_shop(copy="select id from shop.orders", totals=TOTALS)
    append(shop, "orders", (4, 20, 90))
    shop.run("copy")
    then = shop.record("copy").data_timestamp
    append(shop, "orders", (5, 20, 90))
    shop.run("copy")
    cycle = shop.open_cycle()
    assert cycle.pin(shop.session, ORDERS, then).version == 1
    # A moment in between, of which no pin is known.
    later = then + timedelta(milliseconds=1)
    assert cycle.pin(shop.session, ORDERS, later).version == 1
    assert version(shop, cycle) == 2


def test_tables_that_are_read_together_agree_on_rows_from_the_future() -> None:
    shop = small_shop(
        totals=TOTALS,
        both="select t.total, o.id from shop.totals t join shop.orders o on o.id > t.total",
    )
    shop.run()
    append(shop, "orders", (4, 20, 90))
    cycle = shop.open_cycle()
    shop.refresh("totals", cycle)
    # Whatever is dated like that and lands after the first look is left to the next run.
    append(shop, "orders", (5, 20, 90))
    shop.refresh("both", cycle)
    versions = {shop.record(name).frontier[0].version for name in shop.models}
    assert versions == {1}
