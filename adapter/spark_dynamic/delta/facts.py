"""What is known about the changes of each source before a delta is written down."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_dynamic.names import TableName


@dataclass(frozen=True)
class Bounds:
    """The smallest and the largest value of a column among changed rows; NULLs apart."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Range:
    """A column of a table between two values, as SQL."""

    column: str
    low: str
    high: str


@dataclass(frozen=True)
class Changes:
    """The changes of one source in the interval."""

    insert_only: bool = False
    # The bounds of columns, by the table's own names; a column that is not here has unknown ones.
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    delete_only: bool = False
    # The columns over which the changes can be read as the difference of two states: every row
    # once, with its whole weight. None if they cannot.
    net_by: frozenset[str] | None = None
    # Where the source had no row before the changes.
    vacant: frozenset[Range] = frozenset()


# The sources with changes; what is not here did not change.
Facts = Mapping[TableName, Changes]
