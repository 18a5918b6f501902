"""Windows of net changes and of first-time inserts on the fake Spark, and what is right."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from fake_delta import Row
from fake_windows import HOUR, WindowShop, WindowWarehouse, window_shop

from spark_dynamic.changes.asked import Mode
from spark_dynamic.changes.read import change_select
from spark_dynamic.frontier.history import records
from spark_dynamic.frontier.record import Pin, Record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.verify import verify
from spark_dynamic.refresh.windows import Windows

ORDERS = "select id, amount from shop.orders"


def net_shop(sql: str = ORDERS, interval: timedelta = HOUR, **more: Any) -> WindowShop:
    """Return a shop with a window that has no rows yet."""
    shop = window_shop()
    shop.keep(sql, interval, **{"mode": Mode.MIN_DELTA, **more})
    shop.go()
    return shop


def held(shop: WindowShop) -> Counter[Row]:
    """Return all that the window holds, also how its rows are named."""
    _, rows = WindowWarehouse(shop.spark)._ask(f"SELECT * FROM {shop.name()}")
    return Counter(rows)


def shown(shop: WindowShop) -> list[tuple[Any, ...]]:
    """Return what the window holds without the names of rows."""
    return sorted((row[:-1] for row in held(shop).elements()), key=repr)


def asked(shop: WindowShop) -> Counter[Row]:
    """Return what the change query itself shows at the cut of the window's record."""
    read, record = shop.windows[0].read, recorded(shop)
    oldest = record.data_timestamp - shop.windows[0].interval
    ends = {pin.table: pin.version for pin in record.frontier if str(pin.table) in read.sql}
    cycle, session = shop.open_cycle(), WindowWarehouse(shop.spark)
    for storage, attempt in record.upstreams.items():
        found = records(shop.spark.table(storage).commits)
        [ends[TableName.parse(storage)]] = [
            one.commit.version for one in found if one.record.attempt == attempt
        ]
    end = {table: _pin(shop, table, version) for table, version in ends.items()}
    start = {
        table: _pin(shop, table, min(_version_by(shop, table, oldest), pin.version))
        for table, pin in end.items()
    }
    columns, rows = session._ask(change_select(read, start, end, cycle, session))
    return Counter(rows)


def recorded(shop: WindowShop) -> Record:
    """Return the record of the window."""
    return shop.record(shop.name().removeprefix("shop."))


def _pin(shop: WindowShop, table: TableName, version: int) -> Pin:
    log = shop.spark.table(str(table))
    [commit] = [one for one in log.commits if one.version == version]
    return Pin(table, log.location, version, commit.timestamp)


def _version_by(shop: WindowShop, table: TableName, moment: datetime) -> int:
    """Return a table's version at a moment; of a dynamic table, by its data timestamps."""
    commits = shop.spark.table(str(table)).commits
    if refreshes := records(commits):
        return max(r.commit.version for r in refreshes if r.record.data_timestamp <= moment)
    return max(commit.version for commit in commits if commit.timestamp <= moment)


def is_as_asked(shop: WindowShop) -> bool:
    """Tell whether the window holds what its change query shows, and the model what it should."""
    kept = held(shop) == asked(shop)
    for request in Windows(shop.request("recent"), tuple(shop.windows)).requests():
        found = verify(request, shop.open_cycle(), WindowWarehouse(shop.spark))
        assert found.is_equal == kept
    return kept and shop.rows("shop.recent") == shop.rows(f"({shop.models['recent']})")
