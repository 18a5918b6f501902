"""What changed in a table, a view or a query between two positions, as a SELECT."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from spark_dynamic.frontier.record import Pin
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse

# A version of every table that is read: base tables, and the storages of dynamic tables.
Position = Mapping[TableName, Pin]


class Mode(Enum):
    """Which changes are shown."""

    MIN_DELTA = "min_delta"
    APPEND_ONLY = "append_only"
    REDO_LOG = "redo_log"


@dataclass(frozen=True)
class ChangeRead:
    """What is asked."""

    sql: str
    schema: str
    settings: dict[str, str]
    mode: Mode = Mode.MIN_DELTA
    # Columns of the result that name a row.
    unique_key: tuple[str, ...] = ()
    # Columns that name a row of a source: ids then travel through the query.
    row_keys: Mapping[TableName, tuple[str, ...]] = field(default_factory=dict)


def position_now(read: ChangeRead, cycle: Cycle, warehouse: Warehouse) -> Position:
    """Return where the cycle's cut reads every table of a query."""
    from spark_dynamic.changes.points import position_at

    return position_at(read, cycle.data_timestamp, cycle, warehouse)


def change_select(
    read: ChangeRead,
    start: Position | None,
    end: Position,
    cycle: Cycle,
    warehouse: Warehouse,
    initial_rows: bool = False,
) -> str:
    """Return a SELECT of the query's columns and the change columns.

    Without a start it shows the contents at the end as inserts; with `initial_rows` those at
    the start come in front.
    """
    raise NotImplementedError
