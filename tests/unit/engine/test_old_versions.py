"""Which old versions of its sources an incremental refresh may read."""

from typing import Any

import pytest
from fake_shop import Shop, small_shop

from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.frontier.cut import Cut
from spark_dynamic.refresh.analyse import analyse
from spark_dynamic.refresh.sources import beyond_travel, intervals

DAY = 24 * 3600
TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
NAMED = "select c.name, t.total from shop.totals t join shop.customers c on c.id = t.customer"


def sources(shop: Shop, name: str) -> tuple[dict[str, int], list[str]]:
    """Return the old version of each changed source, and which of them are too old."""
    cycle = shop.open_cycle()
    analysis = analyse(shop.request(name), cycle, shop.session)
    cut = cycle.cut(shop.session, analysis.bases, analysis.upstreams)
    assert isinstance(cut, Cut)
    found = intervals(shop.record(name), cut, analysis, cycle, shop.session)
    beyond = beyond_travel(found, cycle, shop.session)
    return {str(table): one.old for table, one in found.items()}, sorted(map(str, beyond))


def too_old(shop: Shop, name: str, days: float) -> list[str]:
    shop.spark.tick(days * DAY)
    return sources(shop, name)[1]


@pytest.mark.parametrize(
    ("kept", "days", "expected"),
    [
        ({}, 6, []),
        ({}, 8, ["shop.orders"]),
        ({"delta.deletedFileRetentionDuration": "interval 20 days"}, 8, []),
        ({"delta.deletedFileRetentionDuration": "interval 20 days"}, 21, ["shop.orders"]),
        ({"delta.deletedFileRetentionDuration": "interval 2 hours"}, 1, ["shop.orders"]),
    ],
)
def test_a_version_can_be_read_for_as_long_as_its_table_keeps_files(
    kept: dict[str, str], days: int, expected: list[str]
) -> None:
    shop = small_shop(totals=TOTALS)
    shop.spark.table("shop.orders").properties |= kept
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert too_old(shop, "totals", days) == expected


def test_the_newest_version_can_be_read_however_old_it_is() -> None:
    shop = small_shop(totals=TOTALS)
    shop.run()
    assert too_old(shop, "totals", 100) == []


@pytest.mark.parametrize(("config", "expected"), [({}, []), ({"history_retention": "2 days"}, 1)])
def test_a_dynamic_table_keeps_its_versions_for_its_own_retention(
    config: dict[str, Any], expected: Any
) -> None:
    shop = small_shop(totals=TOTALS, named=NAMED)
    shop.configs["totals"] = config
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.run("totals")
    assert too_old(shop, "named", 8) == (["shop.totals__dyn"] if expected else [])


def test_of_a_table_without_changes_no_old_version_is_read() -> None:
    shop = small_shop(totals=TOTALS)
    shop.run()
    shop.spark.write("shop.orders").optimize()
    shop.spark.tick(8 * DAY)
    assert sources(shop, "totals") == ({}, [])


def test_a_version_that_stood_for_long_and_was_replaced_just_now_can_be_read() -> None:
    shop = small_shop(totals=TOTALS)
    shop.run()
    shop.spark.tick(20 * DAY)
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert sources(shop, "totals") == ({"shop.orders": 0}, [])
    # VACUUM may be quicker than a run that begins just before.
    shop.spark.tick(7 * DAY - 30 * 60)
    assert sources(shop, "totals") == ({"shop.orders": 0}, ["shop.orders"])


def test_files_that_were_written_anew_long_ago_are_not_relied_on() -> None:
    """VACUUM has removed those of version 0; version 1 has the same rows."""
    shop = small_shop(totals=TOTALS)
    shop.run()
    shop.spark.write("shop.orders").optimize()
    shop.spark.tick(20 * DAY)
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert sources(shop, "totals") == ({"shop.orders": 1}, [])


def test_a_version_that_left_the_log_cannot_be_read() -> None:
    shop = small_shop(totals=TOTALS)
    orders = shop.spark.table("shop.orders")
    for number in (4, 5):
        shop.spark.write("shop.orders").append((number, 20, 1))
    orders.forget_before(1)
    gone = {orders.name: Interval(orders.name, 0, 2, Kind.REWRITE)}
    assert beyond_travel(gone, shop.open_cycle(), shop.session) == {orders.name}
