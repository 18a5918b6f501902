"""Which old versions of its sources an incremental refresh may read."""

from typing import Any

import pytest
from fake_shop import Shop, small_shop

from spark_dynamic.refresh.analyse import analyse
from spark_dynamic.refresh.sources import beyond_travel

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
NAMED = "select c.name, t.total from shop.totals t join shop.customers c on c.id = t.customer"


def too_old(shop: Shop, name: str, days: int, unchanged: str = "") -> list[str]:
    shop.spark.tick(days * 24 * 3600)
    cycle = shop.open_cycle()
    analysis = analyse(shop.request(name), cycle, shop.session)
    changed = {table for table in analysis.tables() if str(table) != unchanged}
    found = beyond_travel(shop.record(name), analysis, changed, cycle, shop.session)
    return sorted(map(str, found))


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
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert too_old(shop, "totals", 8, unchanged="shop.orders") == []
