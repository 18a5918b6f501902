"""Is the interval of a stream still there? How long will it be? Can it be kept longer?"""

from datetime import datetime, timedelta
from typing import Final

from spark_dynamic.apply.storage import properties_sql
from spark_dynamic.changes.kept import is_kept, lost_at
from spark_dynamic.changes.read import Position
from spark_dynamic.changes.retention import FILES, LOG, retention_of
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse


def stale_at(position: Position, cycle: Cycle, warehouse: Warehouse) -> datetime | None:
    """Return when the changes after a position begin to be lost; None if there are none yet."""
    moments = [
        moment
        for pin in position.values()
        if (moment := lost_at(pin, cycle, warehouse)) is not None
    ]
    return min(moments, default=None)


def check_kept(
    name: str,
    position: Position,
    cycle: Cycle,
    warehouse: Warehouse,
    start: Position | None = None,
) -> None:
    """Raise STREAM_STALE if the changes after a position cannot be read any more.

    `start` is where a new consumer would begin, unless that is with the contents.
    """
    why = _gone(position, cycle, warehouse)
    if not why:
        return
    if position == start:
        raise _start_lost(name, why)
    is_start_lost = start is not None and _gone(start, cycle, warehouse)
    raise _stale(name, why, _FROM_A_POINT if is_start_lost else _FROM_THE_START)


def _gone(position: Position, cycle: Cycle, warehouse: Warehouse) -> str:
    """Return why the changes after a position cannot be read any more; nothing if they can."""
    for pin in position.values():
        if cycle.catalog.relation(warehouse, pin.table) is None:
            return f"{pin.table}, which it reads, does not exist any more"
        if not cycle.is_same_log(warehouse, pin):
            return (
                f"version {pin.version} of {pin.table} is not in its log any more: the table was "
                "made anew, or its log was cleaned"
            )
        if not is_kept(pin, cycle, warehouse):
            return (
                f"what changed in {pin.table} after version {pin.version} is older than its "
                f"{FILES}"
            )
    return ""


_FROM_THE_START: Final = (
    "Start again with --full-refresh of the consumer, or move on with changes_stream_move or "
    "changes_stream_reset"
)
# The start is lost, too: a consumer that is built anew would only fail there.
_FROM_A_POINT: Final = (
    "Move on with changes_stream_move, or run the stream itself with --full-refresh, so that it "
    "starts anew, and then the consumer"
)


def _stale(name: str, why: str, remedy: str) -> EngineError:
    return EngineError(
        "STREAM_STALE",
        f"The changes of {name} that come next are not there any more: {why}. {remedy}; the "
        "changes in between are then lost. To keep them longer, consume more often or set "
        "max_retention_extension.",
    )


def _start_lost(name: str, why: str) -> EngineError:
    return EngineError(
        "STREAM_STALE",
        f"The start of {name}, where every new consumer begins, is not there any more: {why}. Run "
        "the stream itself with --full-refresh, so that it finds its `at` anew, or choose a later "
        "`at`; --full-refresh of a consumer does not help. To keep the changes after it longer, "
        "set max_retention_extension.",
    )


def extensions(
    position: Position, maximum: timedelta | None, cycle: Cycle, warehouse: Warehouse
) -> dict[TableName, str]:
    """Return the statements that let the sources keep their changes for as long as allowed."""
    statements: dict[TableName, str] = {}
    for table in sorted(position, key=str) if maximum else ():
        relation = cycle.catalog.relation(warehouse, table)
        if relation is None or maximum is None:
            continue
        seconds = int(maximum.total_seconds())
        short = [key for key in (LOG, FILES) if retention_of(relation, key) < maximum]
        if short:
            longer = properties_sql({key: f"interval {seconds} seconds" for key in short})
            statements[table] = f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({longer})"
    return statements
