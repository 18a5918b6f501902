"""A run on a machine whose clock is ahead: the runs after it find their way back by themselves."""

from datetime import timedelta

import pytest
from fake_records import pin_of
from fake_shop import Shop, said, small_shop
from fake_windows import with_rows

from spark_dynamic.changes.asked import ChangeRead
from spark_dynamic.changes.point import OtherPosition
from spark_dynamic.changes.points import Asking, position_of
from spark_dynamic.changes.position import Position, is_behind
from spark_dynamic.changes.read import position_now
from spark_dynamic.clock import SKEW
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle

MONTH = timedelta(days=30)
TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
PAIRS = "select t.total, c.name from shop.totals t join shop.customers c on c.id = t.customer"
DATED = "select id, current_date as d from shop.orders"


class Views:
    """Finds dynamic tables by name."""

    def position(self, point: OtherPosition) -> Position:
        raise NotImplementedError

    def dynamic_table(self, name: str) -> TableName:
        return TableName("shop", name)


def position(table: str, version: int) -> Position:
    pin = pin_of(table, version)
    return {pin.table: pin}


def run_ahead(shop: Shop, *names: str, storage_too: bool = True) -> Cycle:
    """Refresh with a clock that is a month ahead; the storage's may be right."""
    now = shop.spark.tick(60)
    cycle = Cycle("ahead", now + MONTH, shop.known())
    shop.spark.clock = now + MONTH if storage_too else now
    for name in names or shop.models:
        shop.refresh(name, cycle)
    shop.spark.clock = now
    return cycle


@pytest.mark.parametrize("storage_too", [True, False])
def test_the_next_run_is_dated_now_and_so_is_what_it_writes(storage_too: bool) -> None:
    shop = small_shop(totals=TOTALS, pairs=PAIRS, dated=DATED)
    shop.run()
    run_ahead(shop, storage_too=storage_too)
    shop.spark.write("shop.orders").append((4, 20, 90))
    cycle = shop.open_cycle()
    assert cycle.data_timestamp <= shop.spark.clock
    for name in shop.models:
        shop.refresh(name, cycle)
        assert name == "dated" or shop.is_right(name)
        assert shop.record(name).data_timestamp == cycle.data_timestamp
    assert {d for _, d in shop.spark.read("select * from shop.dated")} == {"2026-01-01"}
    assert set(shop.run("totals", "pairs").values()) == {"NO_DATA"}


def test_a_table_without_new_rows_gets_a_record_of_now() -> None:
    """Else its record would be kept for a month longer than the versions that it names."""
    shop = small_shop(totals=TOTALS)
    run_ahead(shop)
    cycle = shop.open_cycle()
    assert said(shop.refresh("totals", cycle)) == "NO_DATA"
    assert shop.record("totals").data_timestamp == cycle.data_timestamp
    commits = len(shop.storage("totals").commits)
    assert shop.run() == {"totals": "NO_DATA"}
    assert len(shop.storage("totals").commits) == commits


def test_the_warning_names_the_moment_and_comes_once() -> None:
    shop = small_shop(totals=TOTALS)
    ahead = run_ahead(shop)
    cycle = shop.open_cycle()
    [warning] = cycle.take_warnings()
    assert warning.startswith("The newest data timestamp is 2026-01-31T")
    assert cycle.take_warnings() == []
    assert ahead.take_warnings() == []


def test_a_reader_waits_for_an_upstream_that_only_has_a_moment_of_the_future() -> None:
    shop = small_shop(totals=TOTALS, pairs=PAIRS)
    shop.run()
    run_ahead(shop)
    shop.spark.write("shop.orders").append((4, 20, 90))
    shop.spark.write("shop.customers").append((20, "c"))
    assert shop.run("pairs") == {"pairs": "WAITING/shop.totals"}
    shop.run()
    assert shop.is_right("pairs")


def test_a_clock_of_the_future_does_not_hold_now() -> None:
    shop = small_shop(dated=DATED, copy="select d from shop.dated")
    run_ahead(shop)
    assert shop.run("copy") == {"copy": "WAITING/shop.dated"}
    shop.run()
    assert {d for (d,) in shop.spark.read("select * from shop.copy")} == {"2026-01-01"}


def test_clocks_that_differ_a_little_never_let_the_data_timestamp_go_back() -> None:
    shop = small_shop()
    later = shop.spark.clock + SKEW / 2
    cycle = Cycle("i", shop.spark.clock, KnownState(newest_timestamp=later))
    assert cycle.data_timestamp == later + timedelta(milliseconds=1)
    assert cycle.take_warnings() == []


def test_a_window_gets_back_what_has_left_it_too_early() -> None:
    shop = with_rows()
    now = shop.spark.clock
    shop.spark.clock = now + MONTH
    shop.go(shop.open_cycle())
    assert not shop.rows(shop.name())
    shop.spark.clock = now
    assert shop.actions()[0] == "REINITIALIZE/CLOCK_AHEAD"
    assert shop.is_kept_right() and shop.rows(shop.name())
    assert shop.actions()[0] == "NO_DATA"


def test_changes_up_to_now_are_those_of_the_newest_refresh_whatever_its_date() -> None:
    shop = small_shop(totals=TOTALS)
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    run_ahead(shop)
    read = ChangeRead("select * from shop.totals", "shop", dict(shop.settings))
    [pin] = position_now(read, shop.open_cycle(), shop.session).values()
    assert pin.version == shop.storage("totals").version == 1


def test_a_cut_of_the_future_is_no_point_in_time() -> None:
    shop = small_shop(totals=TOTALS)
    run_ahead(shop)
    read = ChangeRead("select * from shop.orders", "shop", dict(shop.settings))
    asking = Asking("since", {"dynamic_table": "totals"})
    with pytest.raises(EngineError, match="POINT_NOT_KNOWN: .* with a clock that was ahead"):
        position_of(asking, read, shop.open_cycle(), shop.session, places=Views())
    shop.run()
    assert position_of(asking, read, shop.open_cycle(), shop.session, places=Views())


def test_a_stream_goes_on_after_its_table_was_rebuilt_whatever_the_clock_said_before() -> None:
    """A version is committed at the minute of its number."""
    assert not is_behind(position("shop.totals__dyn_2", 0), position("shop.totals__dyn", 900))
    assert is_behind(position("shop.totals__dyn", 0), position("shop.totals__dyn_2", 900))
    # It was dropped, and begins with its first generation again.
    assert not is_behind(position("shop.totals__dyn", 900), position("shop.totals__dyn_2", 0))


def test_a_clock_that_is_ahead_of_the_storages_drops_no_generation_too_early() -> None:
    shop = small_shop(totals=TOTALS)
    shop.run()
    shop.models["totals"] = "select customer, count(*) as n, 1 as one from shop.orders group by 1"
    run_ahead(shop, storage_too=False)
    shop.models["totals"] = TOTALS
    run_ahead(shop, storage_too=False)
    assert all(shop.spark.exists(f"shop.totals__dyn{n}") for n in ("", "_2", "_3"))
    shop.spark.tick(2 * MONTH.total_seconds())
    shop.models["totals"] = "select customer, count(*) as n, 2 as two from shop.orders group by 1"
    shop.run()
    kept = [shop.spark.exists(f"shop.totals__dyn{n}") for n in ("", "_2", "_3", "_4")]
    assert kept == [False, False, False, True]
