"""Two runs of one consumer at the same moment: one wins, and every change arrives once."""

import threading
from datetime import UTC, datetime
from functools import partial
from typing import Any

from change_reads import Reader
from pyspark.sql import SparkSession
from spark_shop import SETTINGS, SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.changes.consume import Batch
from spark_dynamic.changes.consumer import CONSUMER_PROPERTY, ConsumerRequest
from spark_dynamic.changes.read import ChangeRead
from spark_dynamic.changes.stream import Stream, definition_hash
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle


class Consumers:
    """A stream over one table, and a consumer that several threads run."""

    def __init__(self, shop: SparkShop) -> None:
        read = ChangeRead("select id from events", shop.schema, SETTINGS)
        self.shop = shop
        self.table = TableName.of(shop.schema, "taken")
        self.stream = Stream(
            model="model.shop.events_stream",
            view=TableName.of(shop.schema, "events_stream"),
            read=read,
            fingerprint=definition_hash(read, [read.sql]),
            start=None,
            started_at=datetime.now(UTC),
            initial_rows=True,
            has_chosen_start=False,
            at="None",
        )
        self.lost: list[str] = []

    def plan(self, session: SparkSession) -> tuple[Batch, str, SparkWarehouse]:
        warehouse = SparkWarehouse(session)
        cycle = Cycle("invocation", warehouse.now(), KnownState())
        request = ConsumerRequest("model.shop.taken", self.table, "0.test")
        batch = Batch(request, cycle, warehouse, lambda name: None)
        end = Reader(self.shop, self.stream.read.sql).now()
        return batch, batch.take(self.stream, end, warehouse), warehouse

    def first(self) -> None:
        batch, select, warehouse = self.plan(self.shop.session)
        create = (
            f"CREATE TABLE {self.table.sql} USING delta TBLPROPERTIES "
            f"('{CONSUMER_PROPERTY}' = 'true') AS SELECT id, change_action FROM (\n{select}\n)"
        )
        batch.run(lambda: warehouse.execute(create), warehouse)

    def run(self, planned: threading.Barrier) -> None:
        """Consume; whoever loses plans again, as the next run would."""
        session = self.shop.session.newSession()
        session.sql(f"USE {self.shop.schema}")
        for attempt in range(3):
            batch, select, warehouse = self.plan(session)
            if attempt == 0:
                planned.wait(60)
            insert = f"INSERT INTO {self.table.sql} SELECT id, change_action FROM (\n{select}\n)"
            try:
                batch.run(partial(warehouse.execute, insert), warehouse)
                return
            except EngineError as error:
                self.lost.append(error.code)


def rows(shop: SparkShop) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in shop.session.sql("SELECT * FROM taken").collect())


def test_two_at_once(shop: SparkShop) -> None:
    shop.table("events", "id int", "(1)", "(2)")
    consumers = Consumers(shop)
    consumers.first()
    shop.run("INSERT INTO events VALUES (3), (4)", "DELETE FROM events WHERE id = 1")
    failures: list[BaseException] = []
    planned = threading.Barrier(2)

    def run() -> None:
        try:
            consumers.run(planned)
        except BaseException as error:
            planned.abort()
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert consumers.lost == ["STREAM_NOT_CONSUMED"]
    expected = [(1, "DELETE"), (1, "INSERT"), (2, "INSERT"), (3, "INSERT"), (4, "INSERT")]
    assert rows(shop) == expected
