"""A hundred streams on one table, by the real code: one frontier each, and nothing that adds up.

Only what the queries give is left out: the fake Spark cannot run them.
"""

from collections.abc import Iterator

import pytest
from fake_delta import Snapshot
from fake_streams import StreamShop, StreamWarehouse

from spark_dynamic.changes.build_stream import StreamRequest, build_stream
from spark_dynamic.changes.consume import Batch
from spark_dynamic.changes.consumer import ConsumerRequest
from spark_dynamic.changes.read import ChangeRead, Position, position_now
from spark_dynamic.changes.stream import Stream
from spark_dynamic.changes.stream_config import StreamConfig
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle

STREAMS = 100
# Another query for each of them, so that none can stand in for another.
QUERY = "select id, customer from shop.orders where amount > {number}"
TAKEN = "SELECT id FROM `shop`.`orders` WHERE id > 1000"


class Session(StreamWarehouse):
    """A session that makes views without running what is in them."""

    def _result(self, sql: str) -> Snapshot:
        return super()._result(TAKEN)

    def execute(self, sql: str) -> None:
        head, found, _ = sql.partition(" AS SELECT ")
        is_view = found and head.startswith(("CREATE VIEW", "ALTER VIEW"))
        super().execute(f"{head} AS {TAKEN}" if is_view else sql)


class ManyStreams:
    """One table, many streams, and a consumer for each."""

    def __init__(self) -> None:
        self.shop = StreamShop()
        orders = self.shop.spark.table("shop.orders")
        orders.properties["delta.enableChangeDataFeed"] = "true"

    def read(self, number: int) -> ChangeRead:
        return ChangeRead(QUERY.format(number=number), "shop", dict(self.shop.shop.settings))

    def build(self, number: int, cycle: Cycle, session: Session) -> Stream:
        view = TableName("shop", f"stream_{number}")
        model = f"model.shop.{view.name}"
        request = StreamRequest(model, view, self.read(number), StreamConfig())

        def end_of(read: ChangeRead) -> Position:
            return position_now(read, cycle, session)

        return build_stream(request, cycle, session, end_of, None).stream  # type: ignore[arg-type]

    def consume(self, number: int, stream: Stream, cycle: Cycle, session: Session) -> None:
        table = TableName("shop", f"consumer_{number}")
        request = ConsumerRequest(f"model.shop.{table.name}", table, "0.test")
        batch = Batch(request, cycle, session, lambda name: None)
        select = batch.take(stream, position_now(stream.read, cycle, session), session)
        assert "MINIMIZE" in select or "INITIAL_ROWS" in select
        is_new = batch.consumer.relation is None
        how = "CREATE OR REPLACE TABLE {} AS" if is_new else "INSERT INTO {}"
        batch.run(lambda: session.execute(f"{how.format(table.sql)} {TAKEN}"), session)

    def run(self, count: int) -> Iterator[tuple[int, int]]:
        """Build and consume streams in one cycle; yield the statements of each."""
        session, cycle = Session(self.shop.spark), self.shop.shop.open_cycle()
        for number in range(count):
            before = session.count
            stream = self.build(number, cycle, session)
            built = session.count
            self.consume(number, stream, cycle, session)
            yield built - before, session.count - built

    def asked(self) -> list[str]:
        """Return what was asked of the table itself: not the queries over it."""
        log = self.shop.spark.log
        return [sql for sql in log if sql.startswith("DESCRIBE") and sql.endswith("`orders`")]


@pytest.mark.thorough
def test_a_hundred_streams_on_one_table_cost_one_frontier_each() -> None:
    streams = ManyStreams()
    # The first one also looks at the table, once for all of them.
    _, *built = streams.run(STREAMS)
    assert len(built) == STREAMS - 1 and len(set(built)) == 1
    assert len(streams.asked()) == 2
    streams.shop.spark.write("shop.orders").append((4, 20, 500))
    streams.shop.spark.write("shop.orders").delete((1, 10, 5))
    _, *consumed = streams.run(STREAMS // 10)
    assert len(set(consumed)) == 1
    # The same again in the next run, and nothing was written to the table.
    assert len(streams.asked()) == 4
    assert len(streams.shop.spark.table("shop.orders").commits) == 3
