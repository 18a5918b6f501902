"""Operations on streams: where everybody is, and how to put a consumer elsewhere."""

from typing import TYPE_CHECKING, Any

import agate
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.errors import reported
from dbt.adapters.spark_dynamic.operations import text_table
from dbt.adapters.spark_dynamic.stream_positions import StreamPositions, name_of
from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.changes import read as changes
from spark_dynamic.changes.consume import moved
from spark_dynamic.changes.consumption import Consumption, Taken
from spark_dynamic.changes.kept_consumptions import keep
from spark_dynamic.changes.point import Point, read_point
from spark_dynamic.changes.points import Asking, start_of
from spark_dynamic.changes.position import is_behind, shown_position
from spark_dynamic.changes.read import Position
from spark_dynamic.changes.staleness import check_kept, stale_at
from spark_dynamic.changes.stream import Stream
from spark_dynamic.clock import stamp
from spark_dynamic.config_values import Expected
from spark_dynamic.duration import format_duration
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.refresh.cycle import Cycle

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter

_COLUMNS = ["stream", "consumer", "state", "position", "consumed at", "shape", "time left"]
_NOW_ROW = "new: the next run takes the stream from its start"


class StreamOperations:
    """What `dbt run-operation` can ask of streams."""

    def __init__(self, adapter: "SparkDynamicAdapter", tables: DynamicTables) -> None:
        self._adapter = adapter
        self._tables = tables
        self._positions = StreamPositions(adapter, tables)

    def status(self, stream: str | None) -> agate.Table:
        """Return a line for each stream and consumer of it."""
        cycle, warehouse = self._tables.look()
        consumers = self._positions.consumers()
        rows = []
        for node in self._positions.streams(stream):
            reading = [one for one, streams in consumers if node in streams]
            for consumer in reading or [None]:
                rows.append(self._line(node, consumer, cycle, warehouse))
        return text_table(_COLUMNS, rows)

    def _line(self, node: Any, consumer: Any, cycle: Cycle, warehouse: DbtWarehouse) -> list[str]:
        shown = [str(name_of(node)), str(name_of(consumer)) if consumer else "-"]
        try:
            stream = self._positions.stream_now(node, cycle, warehouse)
            if consumer is None:
                return [*shown, "no consumer", *self._at(stream.start, None, cycle, warehouse)]
            record = self._positions.consumer(consumer, warehouse).record
            taken = record.streams.get(stream.model) if record else None
            if taken is None:
                return [*shown, _NOW_ROW, *self._at(stream.first[0], None, cycle, warehouse)]
            state = self._state(stream, taken, cycle, warehouse)
            return [*shown, state, *self._at(taken.end, taken, cycle, warehouse)]
        except (EngineError, WarehouseError) as error:
            return [*shown, str(error).splitlines()[0], "", "", "", ""]

    def _state(self, stream: Stream, taken: Taken, cycle: Cycle, warehouse: DbtWarehouse) -> str:
        if taken.fingerprint != stream.fingerprint:
            return "STREAM_CHANGED"
        check_kept(stream.name, taken.end, cycle, warehouse)
        now = changes.position_now(stream.read, cycle, warehouse)
        return "changes pending" if is_behind(taken.end, now) else "up to date"

    def _at(
        self, position: Position | None, taken: Taken | None, cycle: Cycle, warehouse: DbtWarehouse
    ) -> list[str]:
        if position is None:
            return ["before the first change", "", "", "not limited"]
        lost_at = stale_at(position, cycle, warehouse)
        left = "not limited"
        if lost_at is not None:
            left = format_duration(lost_at - cycle.data_timestamp)
        then = [stamp(taken.taken_at), taken.shape] if taken else ["", ""]
        return [shown_position(position), *then, left]

    def move(self, consumer: str, stream: str | None, to: Any) -> agate.Table:
        """Let a consumer go on from a point; what it has not consumed before it, it never will."""
        try:
            point = read_point(to)
        except Expected as problem:
            raise DbtRuntimeError(f"Invalid value for `to`: {to!r}. Expected {problem}.") from None
        return self._change(consumer, stream, "MOVE", point)

    def reset(self, consumer: str, stream: str | None) -> agate.Table:
        """Let a stream be new to a consumer: its next run takes it from the start."""
        return self._change(consumer, stream, "RESET", None)

    def _change(
        self, consumer: str, stream: str | None, action: str, point: Point | None
    ) -> agate.Table:
        cycle, warehouse = self._tables.look()
        [(node, read)] = self._positions.consumers(consumer)
        chosen = [one for one in read if stream is None or stream in (one.name, one.alias)]
        if not chosen:
            known = ", ".join(one.name for one in read) or "none"
            raise DbtRuntimeError(
                f"'{stream}' is no stream that {consumer} consumes. Expected one of: {known}."
            )
        with reported():
            found = self._positions.consumer(node, warehouse, anyhow=True)
            if found.relation is None:
                raise EngineError(
                    "STREAM_POINT", f"{name_of(node)} does not exist, so it has no position."
                )
            wanted = {
                one.unique_id: None if point is None else self._taken(one, point, cycle, warehouse)
                for one in chosen
            }
            record = moved(found, wanted, action, cycle, warehouse)
            keep(warehouse, self._positions.table, [record])
        forgotten = [one.name for one in chosen] if point is None else []
        return self._shown(node, record, forgotten)

    def _taken(self, node: Any, point: Point, cycle: Cycle, warehouse: DbtWarehouse) -> Taken:
        stream = self._positions.stream_now(node, cycle, warehouse)
        now = changes.position_now(stream.read, cycle, warehouse)
        places = self._positions.places(warehouse)
        position = start_of(
            Asking("to", point), stream.read, cycle, warehouse, places=places, now=now
        )
        if position is None:
            raise EngineError(
                "STREAM_POINT",
                "A consumer cannot be moved before the first change; changes_stream_reset lets "
                "it take the contents anew.",
            )
        check_kept(stream.name, position, cycle, warehouse)
        return Taken(stream.fingerprint, position, position, cycle.data_timestamp)

    def _shown(self, node: Any, record: Consumption, forgotten: list[str]) -> agate.Table:
        rows = [
            [str(name_of(node)), stream.rpartition(".")[2], shown_position(taken.end)]
            for stream, taken in sorted(record.streams.items())
        ]
        rows += [[str(name_of(node)), stream, _NOW_ROW] for stream in sorted(forgotten)]
        return text_table(["consumer", "stream", "position"], rows)
