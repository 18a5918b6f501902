"""Two streams and consumers of every kind on a real Spark, and runs that die on their way."""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession
from spark_shop import SETTINGS, SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.changes.build_stream import StreamRequest, build_stream
from spark_dynamic.changes.consume import Batch
from spark_dynamic.changes.consumer import CONSUMER_PROPERTY, ConsumerRequest
from spark_dynamic.changes.consumption import consumptions
from spark_dynamic.changes.point import OtherPosition
from spark_dynamic.changes.read import ChangeRead, Position, position_now
from spark_dynamic.changes.stream import Stream
from spark_dynamic.changes.stream_config import StreamConfig
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Commit

STREAMS = ("orders", "customers")
# What dbt's main statement is: for a new table, and for each kind of consumer later.
FIRST = {
    "append": "SELECT stream, id, change_action FROM ({rows})",
    "table": "SELECT stream, id, change_action FROM ({rows})",
    "merge": "SELECT stream, id, change_action, 1 AS times FROM ({rows})",
    "snapshot": "SELECT stream, id, CAST(null AS string) AS ended FROM ({rows})",
}
LATER = {
    "append": "INSERT INTO {table} SELECT stream, id, change_action FROM ({rows})",
    # Whatever comes twice is counted.
    "merge": "MERGE INTO {table} t USING ({rows}) s ON t.stream = s.stream AND t.id = s.id AND "
    "t.change_action = s.change_action WHEN MATCHED THEN UPDATE SET times = times + 1 "
    "WHEN NOT MATCHED THEN INSERT (stream, id, change_action, times) "
    "VALUES (s.stream, s.id, s.change_action, 1)",
    "snapshot": "MERGE INTO {table} t USING ({rows}) s ON t.stream = s.stream AND t.id = s.id AND "
    "s.change_action = 'DELETE' AND t.ended IS NULL "
    "WHEN MATCHED THEN UPDATE SET ended = 'yes' "
    "WHEN NOT MATCHED THEN INSERT (stream, id, ended) "
    "VALUES (s.stream, s.id, IF(s.change_action = 'DELETE', 'of nothing', null))",
}


class Killed(BaseException):
    """The process died. Nothing of the engine may catch it."""


class MortalWarehouse(SparkWarehouse):
    """Runs statements up to one before which, or a write after which, the process dies."""

    def __init__(self, session: SparkSession, before: int = 0, after_write: int = 0) -> None:
        super().__init__(session)
        self._before, self._after_write = before, after_write
        self._writes = 0
        self._is_dead = False

    def _run(self, sql: str, columns: list[str] | None = None) -> list[Any]:
        self._is_dead |= len(self.statements) + 1 == self._before
        if self._is_dead:
            raise Killed
        found = super()._run(sql, columns)
        if sql.startswith(("INSERT INTO", "MERGE INTO", "CREATE OR REPLACE TABLE")):
            self._writes += 1
            self._is_dead = self._writes == self._after_write
        return found


class NoPlaces:
    """For streams that start nowhere in particular."""

    def position(self, point: OtherPosition) -> Position:
        raise AssertionError(point)

    def dynamic_table(self, name: str) -> TableName:
        raise AssertionError(name)


class StreamShop:
    """Two tables with a stream each, and consumers that take from both."""

    def __init__(self, shop: SparkShop) -> None:
        self.shop = shop
        self.streams: list[Stream] = []
        for name in STREAMS:
            shop.table(name, "id int", "(1)")

    def run(self, consumers: Iterable[str], builds: bool = True, **death: int) -> list[str]:
        """Do in one cycle what a dbt run does; return the statements.

        A consumer is called by its kind and a number, such as merge_2.
        """
        # What a process has set is gone with it.
        session = self.shop.session.newSession()
        session.sql(f"USE {self.shop.schema}")
        warehouse = MortalWarehouse(session, **death)
        cycle = Cycle("invocation", warehouse.now(), KnownState())
        if builds:
            self.streams = [self.build(name, cycle, warehouse) for name in STREAMS]
        for consumer in consumers:
            self.consume(consumer, cycle, warehouse)
        return warehouse.statements

    def build(self, name: str, cycle: Cycle, warehouse: SparkWarehouse) -> Stream:
        schema, stream = self.shop.schema, f"{name}_stream"
        read = ChangeRead(f"select id from {name}", schema, SETTINGS)
        view = TableName.of(schema, stream)
        request = StreamRequest(f"model.shop.{stream}", view, read, StreamConfig())

        def end_of(read: ChangeRead) -> Position:
            return position_now(read, cycle, warehouse)

        return build_stream(request, cycle, warehouse, end_of, NoPlaces()).stream

    def consume(self, consumer: str, cycle: Cycle, warehouse: SparkWarehouse) -> None:
        batch, sql = self.plan(consumer, cycle, warehouse)
        batch.run(lambda: warehouse.execute(sql), warehouse)

    def plan(
        self, consumer: str, cycle: Cycle, warehouse: SparkWarehouse, **more: Any
    ) -> tuple[Batch, str]:
        """Return what a consumer takes, and the statement that dbt would make of it."""
        table = TableName.of(self.shop.schema, consumer)
        request = ConsumerRequest(f"model.shop.{consumer}", table, "0.test", **more)
        batch = Batch(request, cycle, warehouse, lambda name: None)
        rows = " UNION ALL ".join(
            f"SELECT '{stream.name}' AS stream, id, change_action FROM (\n"
            f"{batch.take(stream, position_now(stream.read, cycle, warehouse), warehouse)}\n)"
            for stream in self.streams
        )
        kind = consumer.partition("_")[0]
        if batch.consumer.relation is None or request.full_refresh or request.holds_last_batch:
            return batch, (
                f"CREATE OR REPLACE TABLE {table.sql} USING delta TBLPROPERTIES "
                f"('{CONSUMER_PROPERTY}' = 'true') AS " + FIRST[kind].format(rows=rows)
            )
        return batch, LATER[kind].format(table=table.sql, rows=rows)

    def change(self, number: int) -> None:
        """Add a row to each table, and take one away that every consumer has seen by now."""
        self.shop.run(
            f"INSERT INTO orders VALUES ({number})",
            f"DELETE FROM orders WHERE id = {number - 2}",
            f"INSERT INTO customers VALUES ({number})",
        )

    def taken(self, consumer: str) -> list[tuple[Any, ...]]:
        found = self.shop.session.sql(f"SELECT * FROM {self.shop.schema}.{consumer}").collect()
        return sorted((tuple(row) for row in found), key=repr)

    def log(self, consumer: str) -> list[Commit]:
        table = TableName.of(self.shop.schema, consumer)
        return SparkWarehouse(self.shop.session).history(table, 1000)

    def numbers(self, consumer: str) -> list[int]:
        return [one.consumption.number for one in consumptions(self.log(consumer))][::-1]


def arrived(ids: dict[str, tuple[set[int], set[int]]], kind: str) -> list[tuple[Any, ...]]:
    """Return what a consumer holds if all has arrived once: ids that came, and that went."""
    found: list[tuple[Any, ...]] = []
    for name, (came, went) in ids.items():
        stream = f"{name}_stream"
        if kind == "snapshot":
            found += [(stream, id, "yes" if id in went else None) for id in came]
            continue
        rows = [(stream, id, "INSERT") for id in came] + [(stream, id, "DELETE") for id in went]
        found += [(*row, 1) if kind == "merge" else row for row in rows]
    return sorted(found, key=repr)
