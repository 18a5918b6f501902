"""Change queries on a real Spark: reads between marked moments, and rows in a fixed order."""

from typing import Any

from pyspark.sql import Row
from spark_shop import SETTINGS, SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.changes.read import ChangeRead, Mode, Position, change_select, position_now
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle


class Reader:
    """One query, its position now, and its changes between positions."""

    def __init__(self, shop: SparkShop, sql: str, **more: Any) -> None:
        self._shop = shop
        keys = {
            TableName.of(shop.schema, name): key for name, key in more.pop("row_keys", {}).items()
        }
        self._arguments = {"sql": sql, "row_keys": keys, **more}

    def now(self) -> Position:
        cycle, warehouse = self._begin()
        return position_now(self._read("min_delta"), cycle, warehouse)

    def sql(
        self,
        start: Position | None,
        end: Position | None = None,
        mode: str = "min_delta",
        **more: Any,
    ) -> str:
        cycle, warehouse = self._begin()
        read = self._read(mode)
        end = end or position_now(read, cycle, warehouse)
        return change_select(read, start, end, cycle, warehouse, **more)

    def rows(self, *arguments: Any, **more: Any) -> list[Row]:
        return self._shop.session.sql(self.sql(*arguments, **more)).collect()

    def _begin(self) -> tuple[Cycle, SparkWarehouse]:
        warehouse = SparkWarehouse(self._shop.session)
        return Cycle("invocation", warehouse.now(), KnownState()), warehouse

    def _read(self, mode: str) -> ChangeRead:
        return ChangeRead(
            schema=self._shop.schema, settings=SETTINGS, mode=Mode(mode), **self._arguments
        )


def shown(rows: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    """Return some columns of rows, in a fixed order."""
    return sorted((tuple(row[column] for column in columns) for row in rows), key=repr)
