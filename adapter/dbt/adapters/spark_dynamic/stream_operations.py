"""Operations on streams: where everybody is, and how to put a consumer elsewhere."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import agate
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.errors import reported
from dbt.adapters.spark_dynamic.named_models import relation_of
from dbt.adapters.spark_dynamic.operations import text_table
from dbt.adapters.spark_dynamic.stream_models import Consuming
from dbt.adapters.spark_dynamic.stream_positions import StreamPositions, named
from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.changes import read as changes
from spark_dynamic.changes.consume import moved
from spark_dynamic.changes.consumer import Consumer
from spark_dynamic.changes.consumption import Consumption, Taken
from spark_dynamic.changes.kept import lasting
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
        known = [(one, self._found(one.node, warehouse)) for one in self._positions.consumers()]
        rows = []
        for node in self._positions.streams(stream):
            reading: list[tuple[str, Consumer | Exception | None]] = [
                (str(relation_of(consuming.node)), found)
                for consuming, found in known
                if consuming.consumes(node, _taken_by(found))
            ]
            for name, found in reading or [("-", None)]:
                rows.append(
                    [str(relation_of(node)), name, *self._line(node, found, cycle, warehouse)]
                )
        return text_table(_COLUMNS, rows)

    def _found(self, node: Any, warehouse: DbtWarehouse) -> Consumer | Exception:
        """Return what is there of a consumer, or what is wrong with it."""
        try:
            return self._positions.consumer(node, warehouse)
        except (EngineError, WarehouseError) as error:
            return error

    def _line(
        self,
        node: Any,
        consumer: Consumer | Exception | None,
        cycle: Cycle,
        warehouse: DbtWarehouse,
    ) -> list[str]:
        try:
            stream = self._positions.stream_now(node, cycle, warehouse)
            if consumer is None:
                return ["no consumer", *self._at(stream.start, None, cycle, warehouse)]
            if isinstance(consumer, Exception):
                raise consumer
            taken = consumer.record.streams.get(stream.model) if consumer.record else None
            if taken is None:
                start = stream.first[0]
                if start is not None:
                    check_kept(stream.name, start, cycle, warehouse, start)
                return [_NOW_ROW, *self._at(start, None, cycle, warehouse)]
            state = self._state(stream, taken, cycle, warehouse)
            return [state, *self._at(taken.end, taken, cycle, warehouse)]
        except (EngineError, WarehouseError) as error:
            return [str(error).splitlines()[0], "", "", "", ""]

    def _state(self, stream: Stream, taken: Taken, cycle: Cycle, warehouse: DbtWarehouse) -> str:
        if taken.fingerprint != stream.fingerprint:
            return "STREAM_CHANGED"
        check_kept(stream.name, taken.end, cycle, warehouse, stream.first[0])
        now = changes.position_now(stream.read, cycle, warehouse)
        # OPTIMIZE and VACUUM make versions, but no changes.
        then = {table: lasting(pin, cycle, warehouse) for table, pin in taken.end.items()}
        return "changes pending" if is_behind(then, now) else "up to date"

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
            raise DbtRuntimeError(
                f"POINT_NOT_KNOWN: Invalid value for `to`: {to!r}. Expected {problem}."
            ) from None
        return self._change(consumer, stream, "MOVE", point)

    def reset(self, consumer: str, stream: str | None) -> agate.Table:
        """Let a stream be new to a consumer: its next run takes it from the start."""
        return self._change(consumer, stream, "RESET", None)

    def _change(
        self, consumer: str, stream: str | None, action: str, point: Point | None
    ) -> agate.Table:
        cycle, warehouse = self._tables.look()
        [consuming] = self._positions.consumers(consumer)
        node = consuming.node
        with reported():
            found = self._positions.consumer(node, warehouse, anyhow=True)
            chosen = self._chosen(consuming, found, stream)
            if found.relation is None:
                raise EngineError(
                    "STREAM_POINT", f"{relation_of(node)} does not exist, so it has no position."
                )
            wanted = {
                one.unique_id: None if point is None else self._taken(one, point, cycle, warehouse)
                for one in chosen
            }
            record = moved(found, wanted, action, cycle, warehouse)
            keep(warehouse, self._positions.table, [record])
        forgotten = [one.name for one in chosen] if point is None else []
        return self._shown(node, record, forgotten)

    def _chosen(self, consuming: Consuming, found: Consumer, name: str | None) -> list[Any]:
        """Return the stream of a name, or all, that a consumer really consumes."""
        taken = _taken_by(found)
        streams = self._positions.streams()
        if name is None:
            all_of_them = [one for one in streams if consuming.consumes(one, taken)]
            if not all_of_them:
                raise DbtRuntimeError(
                    f"MODEL_UNKNOWN: {consuming.node.name} consumes no stream of this project."
                )
            return all_of_them
        # If the texts do not tell, somebody who names a stream knows.
        maybe = [
            one for one in streams if one in consuming.streams or one.unique_id in (taken or ())
        ]
        return named(maybe, name, f"no stream that {consuming.node.name} consumes")

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
            [str(relation_of(node)), stream.rpartition(".")[2], shown_position(taken.end)]
            for stream, taken in sorted(record.streams.items())
        ]
        rows += [[str(relation_of(node)), stream, _NOW_ROW] for stream in sorted(forgotten)]
        return text_table(["consumer", "stream", "position"], rows)


def _taken_by(consumer: Consumer | Exception) -> Collection[str] | None:
    """Return the streams of a consumer's record; None if it tells of none."""
    record = consumer.record if isinstance(consumer, Consumer) else None
    return record.streams.keys() if record and record.streams else None
