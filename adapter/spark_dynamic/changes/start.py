"""Where a stream starts, or is moved to: a point becomes a position."""

from collections.abc import Callable

from spark_dynamic.changes.points import Asking, position_of
from spark_dynamic.changes.read import ChangeRead, Mode, Position
from spark_dynamic.changes.stream_config import BEFORE_THE_FIRST_CHANGE, NOW, OtherPosition, Point
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import Pin
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse

# Returns the position of another stream, or of one of its consumers.
KnownPosition = Callable[[OtherPosition], Position]


def start_at(
    point: Point | None,
    read: ChangeRead,
    now: Position,
    cycle: Cycle,
    warehouse: Warehouse,
    known_position: KnownPosition,
) -> Position | None:
    """Return the position of a point; None if there was nothing before it."""
    match point:
        case OtherPosition():
            return _covering(known_position(point), now, point)
        case str() if point == BEFORE_THE_FIRST_CHANGE:
            # The net effect of everything is the contents; what else happened is in the log.
            if read.mode is Mode.MIN_DELTA:
                return None
            return {table: _beginning(table, now, cycle, warehouse) for table in now}
        case str() if point == NOW:
            return now
        case None:
            return now
    return position_of(Asking("at", point), read, cycle, warehouse)


def _covering(position: Position, now: Position, point: OtherPosition) -> Position:
    """Return the part of another stream's position that a query needs."""
    missing = [str(table) for table in now if table not in position]
    if missing:
        raise EngineError(
            "STREAM_POINT",
            f"The position of {point.stream} cannot be used here: that stream does not read "
            f"{', '.join(sorted(missing))}.",
        )
    return {table: position[table] for table in now}


def _beginning(table: TableName, now: Position, cycle: Cycle, warehouse: Warehouse) -> Pin:
    commit = cycle.commit_at(warehouse, table, 0)
    if commit is None:
        raise EngineError(
            "STREAM_POINT",
            f"The first version of {table} is not in its log any more, so a stream cannot start "
            "before the first change.",
        )
    return Pin(table, now[table].log, 0, commit.timestamp)
