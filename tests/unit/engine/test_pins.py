"""A pin is made once, never goes backwards, and reads what the same invocation wrote."""

import threading
from datetime import timedelta

import pytest
from fake_shop import Shop, small_shop
from fake_warehouse import FakeWarehouse

from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import Pin
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle

ORDERS = TableName("shop", "orders")
SECOND = timedelta(seconds=1)


def cycle_of(shop: Shop, known: KnownState | None = None) -> Cycle:
    return Cycle("i", shop.spark.clock, known or KnownState())


def version(cycle: Cycle, shop: Shop) -> int:
    return cycle.pin(FakeWarehouse(shop.spark), ORDERS, cycle.data_timestamp).version


def same(cycle: Cycle, shop: Shop, old: Pin, new: Pin) -> bool:
    return cycle.same_rows(FakeWarehouse(shop.spark), old, new)


def pin(shop: Shop, version: int) -> Pin:
    table = shop.spark.table("shop.orders")
    [commit] = [commit for commit in table.commits if commit.version == version]
    return Pin(ORDERS, table.location, version, commit.timestamp)


def test_the_newest_version_by_the_clock_is_pinned() -> None:
    shop = small_shop()
    shop.spark.write("shop.orders").append((4, 1, 1))
    cycle = cycle_of(shop)
    shop.spark.write("shop.orders").append((5, 1, 1))
    assert version(cycle, shop) == 1
    assert version(cycle_of(shop), shop) == 2


def test_the_first_pin_stands_for_the_whole_cycle() -> None:
    shop = small_shop()
    cycle = cycle_of(shop)
    first = cycle.pin(FakeWarehouse(shop.spark), ORDERS, cycle.data_timestamp)
    shop.spark.write("shop.orders").append((5, 1, 1))
    cycle.catalog.forget(ORDERS)
    assert cycle.pin(FakeWarehouse(shop.spark), ORDERS, cycle.data_timestamp) is first


def test_threads_share_one_pin_and_one_look() -> None:
    shop = small_shop()
    cycle = cycle_of(shop)
    found: list[Pin] = []

    def ask() -> None:
        found.append(cycle.pin(FakeWarehouse(shop.spark), ORDERS, cycle.data_timestamp))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len({id(pin) for pin in found}) == 1
    assert len([sql for sql in shop.spark.log if "HISTORY" in sql]) == 1


def test_the_clock_never_goes_back() -> None:
    shop = small_shop()
    later = shop.spark.clock + timedelta(minutes=4)
    cycle = cycle_of(shop, KnownState(newest_timestamp=later))
    assert cycle.data_timestamp == later + timedelta(milliseconds=1)
    earlier = shop.spark.clock - SECOND
    assert cycle_of(shop, KnownState(newest_timestamp=earlier)).data_timestamp == shop.spark.clock


def test_a_pin_never_goes_back_though_clocks_differ() -> None:
    """Somebody whose clock is ahead has already used a version that is in our future."""
    shop = small_shop()
    now = shop.spark.clock
    for number in range(3):
        shop.spark.write("shop.orders").append((4 + number, 1, 1))
    location = shop.spark.table("shop.orders").location
    known = KnownState(pins={("shop.orders", location): 2})
    assert version(Cycle("i", now, known), shop) == 2
    assert version(Cycle("i", now, KnownState()), shop) == 0


def test_pins_of_another_log_do_not_count() -> None:
    shop = small_shop()
    now = shop.spark.clock
    shop.spark.write("shop.orders").append((4, 1, 1))
    assert version(Cycle("i", now, KnownState(pins={("shop.orders", "/other"): 1})), shop) == 0


def test_what_a_node_of_this_invocation_wrote_is_read() -> None:
    shop = small_shop()
    cycle = cycle_of(shop)
    shop.spark.write("shop.orders").append((4, 1, 1))
    cycle.note_written(ORDERS, shop.spark.clock)
    assert version(cycle, shop) == 1


def test_what_a_node_wrote_counts_only_at_the_cycles_own_moment() -> None:
    shop = small_shop()
    before = shop.spark.clock
    cycle = Cycle("i", before + SECOND, KnownState())
    shop.spark.write("shop.orders").append((4, 1, 1))
    shop.spark.tick(5)
    cycle.note_written(ORDERS, shop.spark.clock)
    assert cycle.pin(FakeWarehouse(shop.spark), ORDERS, before).version == 0


@pytest.mark.parametrize("commits", [9, 10, 11, 35, 200])
def test_a_long_history_is_read_as_far_as_needed(commits: int) -> None:
    shop = small_shop()
    cycle = cycle_of(shop)
    for number in range(commits):
        shop.spark.write("shop.orders").append((4 + number, 1, 1))
    assert version(cycle, shop) == 0


def test_a_table_without_a_version_by_then_is_named() -> None:
    shop = small_shop()
    cycle = cycle_of(shop)
    shop.spark.write("shop.orders").append((4, 1, 1))
    shop.spark.table("shop.orders").forget_before(1)
    with pytest.raises(EngineError, match=r"SOURCE_MISSING: shop\.orders has no version as old"):
        version(cycle, shop)


def test_a_missing_table_is_named() -> None:
    shop = small_shop()
    shop.spark.drop("shop.orders")
    with pytest.raises(EngineError, match=r"SOURCE_MISSING: The table shop\.orders does not"):
        version(cycle_of(shop), shop)


@pytest.mark.parametrize(
    ("change", "expected", "compares"),
    [
        (lambda w: w.optimize(), True, False),
        (lambda w: w.append((4, 1, 1)), False, False),
        (lambda w: w.delete((1, 10, 5)), False, False),
        (lambda w: w.overwrite((3, 20, 9), (2, 10, 7), (1, 10, 5)), True, True),
        (lambda w: w.overwrite((3, 20, 9), (2, 10, 7), (1, 10, 6)), False, True),
        (lambda w: w.overwrite((3, 20, 9), (2, 10, 7)), False, False),
        (lambda w: [w.append((4, 1, 1)), w.delete((4, 1, 1))], True, True),
        (lambda w: [w.append((4, 1, 1)), w.restore(0)], True, True),
        (lambda w: w.comment_column("id", "text"), True, False),
    ],
)
def test_versions_with_the_same_rows_are_the_same(
    change: object, expected: bool, compares: bool
) -> None:
    shop = small_shop()
    change(shop.spark.write("shop.orders"))  # type: ignore[operator]
    cycle = cycle_of(shop)
    old, new = pin(shop, 0), pin(shop, shop.spark.table("shop.orders").version)
    assert same(cycle, shop, old, new) is expected
    assert same(cycle, shop, new, old) is expected
    compared = [sql for sql in shop.spark.log if sql.startswith("SELECT 1")]
    assert len(compared) == (1 if compares else 0)


def test_another_log_is_never_the_same() -> None:
    shop = small_shop()
    old = pin(shop, 0)
    shop.spark.drop("shop.orders")
    shop.spark.create("shop.orders", {"id": "bigint"}, (1,))
    cycle = cycle_of(shop)
    assert not same(cycle, shop, old, pin(shop, 0))


def test_another_log_is_never_the_same_whichever_comes_first() -> None:
    shop = small_shop()
    old = pin(shop, 0)
    shop.spark.drop("shop.orders")
    shop.spark.create("shop.orders", {"id": "bigint"}, (1,))
    assert not same(cycle_of(shop), shop, pin(shop, 0), old)


def test_a_history_with_a_hole_proves_nothing() -> None:
    shop = small_shop()
    for _ in range(3):
        shop.spark.write("shop.orders").optimize()
    old = pin(shop, 0)
    new = pin(shop, 3)
    table = shop.spark.table("shop.orders")
    table.commits = [commit for commit in table.commits if commit.version != 1]
    assert not same(cycle_of(shop), shop, old, new)


def test_commits_that_land_meanwhile_do_not_hide_older_ones() -> None:
    shop = small_shop()
    for _ in range(20):
        shop.spark.write("shop.orders").optimize()
    cycle = cycle_of(shop)
    warehouse = FakeWarehouse(shop.spark)
    cycle.catalog.history(warehouse, ORDERS)
    for _ in range(5):
        shop.spark.write("shop.orders").optimize()
    assert cycle.commit_at(warehouse, ORDERS, 2) is not None


def test_what_a_node_wrote_is_read_though_the_storages_clock_is_ahead() -> None:
    shop = small_shop()
    cycle = cycle_of(shop)
    written_at = shop.spark.clock
    shop.spark.write("shop.orders").append((4, 1, 1))
    cycle.note_written(ORDERS, written_at)
    assert version(cycle, shop) == 1
