"""What is asked of a change query."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from spark_dynamic.frontier.record import Pin
from spark_dynamic.names import TableName

# What happens if history does not reach back to a point: an error, or the earliest one instead.
STRICT: Final = "strict"
AT_LEAST: Final = "at_least"
# A version of every table that is read: base tables, and the storages of dynamic tables.
Position = Mapping[TableName, Pin]


class Mode(Enum):
    """Which changes are shown."""

    MIN_DELTA = "min_delta"
    APPEND_ONLY = "append_only"
    REDO_LOG = "redo_log"


@dataclass(frozen=True)
class ChangeRead:
    """A query whose changes are asked for, and how its rows are told apart."""

    sql: str
    schema: str
    settings: dict[str, str]
    mode: Mode = Mode.MIN_DELTA
    # Columns of the result that name a row.
    unique_key: tuple[str, ...] = ()
    # Columns that name a row of a source: ids then travel through the query.
    row_keys: Mapping[TableName, tuple[str, ...]] = field(default_factory=dict)
    # The declared keys of dynamic tables that are read, by their views, as far as they name rows
    # here. Those of the reader's own choice come first.
    upstream_keys: Mapping[TableName, tuple[str, ...]] = field(default_factory=dict)
    # Whether an update is its new row alone.
    upserts: bool = False
