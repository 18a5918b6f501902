"""Streams and consumers on the fake Spark. What changed is found by comparing two versions."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from fake_delta import DeltaTable, Snapshot
from fake_shop import Shop, small_shop
from fake_warehouse import NAME, FakeSpark, FakeWarehouse

from spark_dynamic.changes.consume import Batch
from spark_dynamic.changes.consumer import CONSUMER_PROPERTY, ConsumerRequest
from spark_dynamic.changes.consumption import Consumption, consumptions
from spark_dynamic.changes.read import ChangeRead, Position
from spark_dynamic.changes.stream import Stream, definition_hash
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse

COLUMNS = "id, change_action"
# What consumers of both streams get first, and after `change_sources`.
FIRST = [
    ("customers_stream", 10, "INSERT"),
    ("customers_stream", 20, "INSERT"),
    ("orders_stream", 1, "INSERT"),
    ("orders_stream", 2, "INSERT"),
    ("orders_stream", 3, "INSERT"),
]
SECOND = [
    ("customers_stream", 30, "INSERT"),
    ("orders_stream", 1, "DELETE"),
    ("orders_stream", 4, "INSERT"),
]
BOTH = sorted(FIRST + SECOND)


def change_sources(spark: FakeSpark) -> None:
    spark.write("shop.orders").append((4, 20, 1))
    spark.write("shop.orders").delete((1, 10, 5))
    spark.write("shop.customers").append((30, "c"))


def select_of_changes(
    read: ChangeRead,
    start: Position | None,
    end: Position,
    cycle: Cycle,
    warehouse: Warehouse,
    initial_rows: bool = False,
) -> str:
    """Rows have ids of their own here, so sets will do."""
    [table] = end
    new = f"SELECT id FROM {table.sql} VERSION AS OF {end[table].version}"
    if start is None:
        return f"SELECT id, 'INSERT' AS change_action FROM ({new})"
    old = f"SELECT id FROM {table.sql} VERSION AS OF {start[table].version}"
    parts = [(new, old, "INSERT"), (old, new, "DELETE")]
    found = [
        f"SELECT id, '{action}' AS change_action FROM ({one} EXCEPT {other}) AS t"
        for one, other, action in parts
    ]
    if initial_rows:
        found.insert(0, f"SELECT id, 'INSERT' AS change_action FROM ({old}) AS t")
    return "SELECT id, change_action FROM (" + " UNION ALL ".join(found) + ")"


def position(read: ChangeRead, cycle: Cycle, warehouse: Warehouse) -> Position:
    table = TableName.parse(read.sql.rpartition(" from ")[2])
    return {table: cycle.pin(warehouse, table, cycle.data_timestamp)}


class StreamWarehouse(FakeWarehouse):
    """A session that also replaces tables and tells a view's properties."""

    def _answer(self, sql: str) -> list[dict[str, Any]]:
        if match := re.fullmatch(rf"SHOW TBLPROPERTIES {NAME}", sql):
            properties = self._entry(match[1]).properties
            return [{"key": key, "value": value} for key, value in properties.items()]
        if match := re.fullmatch(rf"CREATE VIEW {NAME} AS (SELECT .*)", sql, re.DOTALL):
            self.spark.create_view(match[1], match[2])
            return []
        replacing = rf"CREATE OR REPLACE TABLE {NAME} AS (SELECT .*)"
        if match := re.fullmatch(replacing, sql, re.DOTALL):
            self._replace(TableName.parse(match[1]), self._result(match[2]))
            return []
        return super()._answer(sql)

    def _replace(self, name: TableName, result: Snapshot) -> None:
        place = f"file:/warehouse/{name}"
        found = self.spark.entries.get(name)
        table = found if isinstance(found, DeltaTable) else DeltaTable(name, place)
        if table.is_skipped(self.settings):
            return
        table.properties = {CONSUMER_PROPERTY: "true"}
        count = {"numOutputRows": str(len(result.rows))}
        operation = "CREATE OR REPLACE TABLE AS SELECT"
        table.commit(self.spark.tick(), operation, result, self.settings, {}, count)
        self.spark.entries[name] = table


@dataclass
class StreamShop:
    """Two tables with a stream each, and consumers that take from both."""

    shop: Shop = field(default_factory=small_shop)
    kept: dict[str, Consumption] = field(default_factory=dict)
    holds_last_batch: bool = False

    @property
    def spark(self) -> FakeSpark:
        return self.shop.spark

    def stream(self, name: str, **more: Any) -> Stream:
        read = ChangeRead(f"select id from shop.{name}", "shop", {})
        facts: dict[str, Any] = {
            "model": f"model.shop.{name}_stream",
            "view": TableName("shop", f"{name}_stream"),
            "read": read,
            "fingerprint": definition_hash(read, [read.sql]),
            "text_hash": definition_hash(read, [read.sql]),
            "start": None,
            "started_at": self.spark.clock,
            "initial_rows": True,
            "has_chosen_start": False,
            "at": "None",
        }
        return Stream(**(facts | more))

    def batch(
        self,
        consumer: str,
        session: FakeWarehouse,
        cycle: Cycle,
        streams: Iterable[Stream] | None = None,
        **more: Any,
    ) -> tuple[Batch, str]:
        """Plan a consumption; return it with the query that reads it."""
        table = TableName("shop", consumer)
        more.setdefault("holds_last_batch", self.holds_last_batch)
        request = ConsumerRequest(f"model.shop.{consumer}", table, "0.test", **more)
        batch = Batch(request, cycle, session, lambda name: self.kept.get(str(name)))
        taken = [
            f"SELECT '{stream.name}' AS stream, {COLUMNS} FROM "
            f"({batch.take(stream, position(stream.read, cycle, session), session)}) AS s"
            for stream in streams or [self.stream("orders"), self.stream("customers")]
        ]
        return batch, " UNION ALL ".join(taken)

    def write(self, batch: Batch, query: str, session: FakeWarehouse) -> Callable[[], None]:
        """Return what dbt's main statement does."""
        consumer = batch.consumer
        replaces = consumer.request.full_refresh or consumer.request.holds_last_batch
        if consumer.relation is None or replaces:
            sql = f"CREATE OR REPLACE TABLE {batch.table.sql} AS {query}"
        else:
            sql = f"INSERT INTO {batch.table.sql} {query}"
        return lambda: session.execute(sql)

    def consume(self, consumer: str, session: FakeWarehouse, cycle: Cycle, **more: Any) -> Batch:
        """Do what a run does with one consumer."""
        batch, query = self.batch(consumer, session, cycle, **more)
        if not batch.is_covered:
            batch.run(self.write(batch, query, session), session)
            self.kept[str(batch.table)] = batch.record
        return batch

    def run(self, *consumers: str, **trouble: int) -> StreamWarehouse:
        """Run consumers in one cycle; a statement may be the last one."""
        session = StreamWarehouse(self.spark)
        for key, number in trouble.items():
            setattr(session, key, number)
        cycle = self.shop.open_cycle()
        for consumer in consumers or ("one", "two"):
            self.consume(consumer, session, cycle)
        return session

    def rows(self, consumer: str) -> list[tuple[Any, ...]]:
        return self.spark.read(f"select stream, id, change_action from shop.{consumer}")


def numbers(shop: StreamShop, consumer: str) -> list[int]:
    """Return the numbers of a consumer's consumptions."""
    found = consumptions(shop.spark.table(f"shop.{consumer}").commits)
    return [one.consumption.number for one in found]
