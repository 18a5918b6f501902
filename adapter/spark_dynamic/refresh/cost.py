"""When a full refresh is cheaper: small tables, large changes, and what turned out to be slower.

From what history tells without a job: an incremental refresh has fixed costs (reading each
change feed, a MERGE), which a small table's rebuild does not reach; and once a good part of a
table has changed, reading it as changes costs more than reading it all. Between the two the
table's own refreshes tell, once there was one of either kind.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple, Self

from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.frontier.record import Record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.sources import rows_touched
from spark_dynamic.schedule.known import Known
from spark_dynamic.support import Reason, reason
from spark_dynamic.warehouse import Warehouse

# Below so many rows in the changed sources a rebuild takes about as long as a MERGE alone.
SMALL = 100_000
# Above this part of a table's rows, changes are not few any more.
LARGE = 0.25

# An incremental refresh may take so much longer than a full one: it also leaves a change feed
# that is small for its readers.
MARGIN = 1.1
# After so many full refreshes the incremental one is tried again: tables grow.
PATIENCE = 10


def slower_so_far(known: Known, inserts_only: bool) -> Reason | None:
    """Return that incremental refreshes took longer than full ones, if they did.

    The quicker of the last two of a kind is compared: the first ones of a process are slow.
    """
    times = _Times.of(known, inserts_only)
    if times is None or known.fulls_in_a_row >= PATIENCE:
        return None
    return reason("CHEAPER", str(times)) if times.incremental > MARGIN * times.full else None


def cheaper_full(
    intervals: Mapping[TableName, Interval], record: Record, cycle: Cycle, warehouse: Warehouse
) -> Reason | None:
    """Return why a full refresh is expected to be faster, with the numbers; None if not."""
    if not intervals:
        return None
    touched = rows_touched(intervals, cycle, warehouse)
    total = 0
    for table, interval in intervals.items():
        rows = cycle.rows(warehouse, table, interval.new, record)
        total += rows
        changed = touched.get(table, 0)
        if changed > LARGE * rows and rows >= SMALL:
            return reason("CHEAPER", f"{changed} of {rows} rows of {table} changed")
    if total < SMALL:
        return reason("CHEAPER", f"the changed sources have only {total} rows")
    return None


def cheaper_changes(
    intervals: Mapping[TableName, Interval], known: Known, cycle: Cycle, warehouse: Warehouse
) -> Reason:
    """Return the numbers by which changes are applied, after no full refresh was found cheaper.

    All of them were asked for then, so this costs no statement.
    """
    touched = rows_touched(intervals, cycle, warehouse)
    found = []
    for table, interval in intervals.items():
        rows = cycle.rows(warehouse, table, interval.new)
        if table in touched:
            found.append(f"{touched[table]} of {rows} rows of {table} changed")
        else:
            found.append(f"{table}, with {rows} rows, has {interval.what}")
    if times := _Times.of(known, is_inserts_only(intervals)):
        found.append(str(times))
        if known.fulls_in_a_row >= PATIENCE:
            found.append(f"after {known.fulls_in_a_row} full ones in a row it is tried again")
    return reason("CHANGES_CHEAPER", "; ".join(found) or "no row of the sources changed")


def is_inserts_only(intervals: Mapping[TableName, Interval]) -> bool:
    """Tell whether the sources were only added to."""
    return all(interval.kind is Kind.INSERTS for interval in intervals.values())


class _Times(NamedTuple):
    """How long refreshes of both kinds took."""

    incremental: timedelta
    full: timedelta
    inserts_only: bool

    @classmethod
    def of(cls, known: Known, inserts_only: bool) -> Self | None:
        """Return what can be compared; None if nothing can be yet."""
        incremental = known.quickest_incremental(inserts_only)
        full = known.quickest_full
        return cls(incremental, full, inserts_only) if incremental and full else None

    def __str__(self) -> str:
        of = " of inserts" if self.inserts_only else ""
        incremental, full = self.incremental.total_seconds(), self.full.total_seconds()
        return (
            f"the last incremental refreshes{of} took {incremental:.1f} s, "
            f"the last full ones {full:.1f} s"
        )
