"""One consumption: the next interval of each stream, and the commit that takes them together."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from spark_dynamic.apply.commit import carrying
from spark_dynamic.apply.storage import properties_sql, write_nothing
from spark_dynamic.changes import read as changes
from spark_dynamic.changes.consumer import (
    CONSUMER_PROPERTY,
    Consumer,
    ConsumerRequest,
    Kept,
    read_consumer,
)
from spark_dynamic.changes.consumption import (
    Consumption,
    Taken,
    consumptions,
    write_consumption,
)
from spark_dynamic.changes.definition import as_it_is_now, stream_changed
from spark_dynamic.changes.layout import shapes
from spark_dynamic.changes.position import is_behind
from spark_dynamic.changes.read import Position
from spark_dynamic.changes.staleness import check_kept, extensions
from spark_dynamic.changes.stream import Stream, in_streams
from spark_dynamic.conflicts import ATTEMPTS, despite_conflicts
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse

CONSUME: Final = "CONSUME"


@dataclass(frozen=True)
class Portion:
    """What a consumer takes of a stream."""

    taken: Taken
    select: str
    # The position is already further than this cycle: nothing may be taken.
    is_covered: bool = False


class Batch:
    """What one consumer takes of its streams in one cycle."""

    def __init__(self, request: ConsumerRequest, cycle: Cycle, warehouse: Warehouse, kept: Kept):
        self.attempt = str(uuid.uuid4())
        self._cycle = cycle
        self._kept = kept
        self._is_written = self._is_overtaken = False
        self._portions: dict[str, Portion] = {}
        self._extensions: dict[TableName, str] = {}
        self.consumer: Consumer = read_consumer(request, warehouse, kept)

    @property
    def table(self) -> TableName:
        """The consumer."""
        return self.consumer.request.table

    @property
    def streams(self) -> list[str]:
        """The ids of the streams that are taken."""
        return list(self._portions)

    @property
    def is_covered(self) -> bool:
        """Tell whether another run was faster, so that nothing is taken."""
        return self._is_overtaken or any(one.is_covered for one in self._portions.values())

    def take(self, stream: Stream, end: Position, warehouse: Warehouse) -> str:
        """Return the changes of a stream's next interval, up to `end`; the same on every call."""
        if stream.model not in self._portions:
            self._portions[stream.model] = self._next(stream, end, warehouse)
        return self._portions[stream.model].select

    def _next(self, built: Stream, end: Position, warehouse: Warehouse) -> Portion:
        stream = as_it_is_now(built, self.consumer.request.settings, self._cycle, warehouse)
        record = self.consumer.record
        last = record.streams.get(stream.model) if record else None
        start, initial_rows = (last.end, False) if last else stream.first
        if last and last.fingerprint != stream.fingerprint:
            raise stream_changed(built, stream, self.table)
        is_covered = False
        if start is not None:
            # First of all: versions of another log cannot be compared.
            check_kept(stream.name, start, self._cycle, warehouse, stream.first[0])
            if is_behind(end, start):
                # A stream may start later than this cycle; its first interval is then empty.
                is_covered, end = last is not None, start
        try:
            select = changes.change_select(
                stream.read, start, end, self._cycle, warehouse, initial_rows
            )
        except EngineError as error:
            raise in_streams(error) from error
        self._extensions |= extensions(end, stream.max_retention_extension, self._cycle, warehouse)
        moment = self._cycle.data_timestamp
        taken = Taken(stream.fingerprint, start, end, moment, ", ".join(shapes(select)))
        return Portion(taken, select, is_covered)

    def run(self, write: Callable[[], object], warehouse: Warehouse) -> bool:
        """Let one write carry the record of this batch; False if another run has taken it.

        The batch is then covered, and nothing of this run was written. What was committed after
        the winner's cut is left to the next run.
        """
        if self.is_covered or self._is_written:
            # Delta would skip a second write, and nobody would hear of it.
            raise ValueError("A batch is written once, and not at all if it is covered.")
        self._is_written = True
        for _ in range(ATTEMPTS):
            is_refused = not self._write(write, warehouse)
            if landed(warehouse, self.table, self.attempt, self.consumer.based_on):
                self._finish(warehouse)
                return True
            if not self._may_write_again(is_refused, warehouse):
                break
        if not self.is_covered:
            raise EngineError(
                "STREAM_NOT_CONSUMED",
                f"Other writers to {self.table} were faster than this run, or its position was "
                "moved meanwhile. The batch was not written and nothing was consumed; run it "
                "again.",
            )
        return False

    def _write(self, write: Callable[[], object], warehouse: Warehouse) -> bool:
        """Write with the record; False if another writer was faster."""
        try:
            with carrying(warehouse, write_consumption(self.record), self.consumer.transaction):
                write()
        except WarehouseError as error:
            if not error.is_conflict:
                raise
            return False
        return True

    def _may_write_again(self, is_refused: bool, warehouse: Warehouse) -> bool:
        """See who was faster, and tell whether the same statement is still right."""
        now = read_consumer(self.consumer.request, warehouse, self._kept)
        if now.newest is None or now.newest == self.consumer.newest:
            # The position is as it was, so the batch is, too. A number that Delta has seen
            # without a record of it stays skipped; but a table that was dropped has seen none.
            return is_refused or now.relation is None
        if self.consumer.request.full_refresh:
            # The statement replaces all that the other run has written.
            self.consumer = now
            return True
        self._is_overtaken = now.newest.action == CONSUME
        return False

    def _finish(self, warehouse: Warehouse) -> None:
        despite_conflicts(lambda: self._mark(warehouse))
        for table, statement in self._extensions.items():
            despite_conflicts(partial(warehouse.execute, statement))
            self._cycle.catalog.forget(table)

    @property
    def record(self) -> Consumption:
        """The record of this batch."""
        application, number = self.consumer.transaction
        before = self.consumer.record
        taken = {stream: portion.taken for stream, portion in self._portions.items()}
        is_new = self.consumer.request.full_refresh or self.consumer.relation is None
        return Consumption(
            consumer=str(self.table),
            engine=self.consumer.request.engine_version,
            # Writes that were planned before a rebuild use the old one, and are skipped.
            incarnation=str(uuid.uuid5(uuid.NAMESPACE_OID, self.attempt))
            if is_new
            else application,
            number=number,
            attempt=self.attempt,
            cycle=self._cycle.id,
            data_timestamp=self._cycle.data_timestamp,
            action=CONSUME,
            streams={**(before.streams if before else {}), **taken},
        )

    def _mark(self, warehouse: Warehouse) -> None:
        """Mark a table as a consumer that was none before; a new one is made with the mark."""
        relation = self.consumer.relation
        if relation is None or self.consumer.is_marked or self._is_replaced:
            return
        mark = properties_sql({CONSUMER_PROPERTY: "true"})
        warehouse.execute(f"ALTER TABLE {self.table.sql} SET TBLPROPERTIES ({mark})")

    @property
    def _is_replaced(self) -> bool:
        request = self.consumer.request
        return request.full_refresh or request.holds_last_batch


def landed(warehouse: Warehouse, table: TableName, attempt: str, based_on: int) -> bool:
    """Tell whether an attempt is in a table's log.

    Delta skips a write whose number it has seen, and that looks like success.
    """
    limit = 10
    while True:
        try:
            commits = warehouse.history(table, limit)
        except WarehouseError as error:
            if error.misses_table:
                # dbt drops what it is about to make, also what another run has just made.
                return False
            raise
        if any(one.consumption.attempt == attempt for one in consumptions(commits)):
            return True
        if len(commits) < limit or commits[-1].version <= based_on:
            return False
        limit *= 10


def moved(
    consumer: Consumer,
    streams: dict[str, Taken | None],
    action: str,
    cycle: Cycle,
    warehouse: Warehouse,
) -> Consumption:
    """Move or (None) forget positions with an empty commit on the consumer's log."""
    before = consumer.record.streams if consumer.record else {}
    kept = {name: taken for name, taken in before.items() if name not in streams}
    chosen = {name: taken for name, taken in streams.items() if taken is not None}
    application, number = consumer.transaction
    if consumer.newest is None:
        # Somebody decided: what the log may still know of older numbers must not be in the way.
        application = str(uuid.uuid4())
    table = consumer.request.table
    record = Consumption(
        consumer=str(table),
        engine=consumer.request.engine_version,
        incarnation=application,
        number=number,
        attempt=str(uuid.uuid4()),
        cycle=cycle.id,
        data_timestamp=cycle.data_timestamp,
        action=action,
        streams={**kept, **chosen},
    )
    with carrying(warehouse, write_consumption(record), (application, number)):
        warehouse.execute(write_nothing(table))
    if not landed(warehouse, table, record.attempt, consumer.based_on):
        raise EngineError(
            "STREAM_NOT_CONSUMED",
            f"Another run wrote to {table} meanwhile, so that its position was not changed. "
            "Do it again.",
        )
    return record
