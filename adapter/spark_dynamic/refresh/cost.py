"""When a full refresh is cheaper: small tables, large changes, and what turned out to be slower.

From what history tells without a job: an incremental refresh has fixed costs (reading each
change feed, a MERGE), which a small table's rebuild does not reach; and once a good part of a
table has changed, reading it as changes costs more than reading it all. Between the two the
table's own refreshes tell, once there was one of either kind.
"""

from collections.abc import Mapping

from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.frontier.history import between, rows_changed
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
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
# So many incremental refreshes tell how long they take: those in a cold JVM say little.
TRIES = 3
# After so many full refreshes the incremental one is tried again: tables grow.
PATIENCE = 10


def slower_so_far(known: Known) -> Reason | None:
    """Return that incremental refreshes took longer than full ones, if they did.

    The quickest of the last few of either kind is compared: the first ones of a process are slow.
    """
    is_known = known.fulls and len(known.incrementals) >= TRIES
    if not is_known or known.fulls_in_a_row >= PATIENCE:
        return None
    full, incremental = min(known.fulls), min(known.incrementals)
    if incremental <= MARGIN * full:
        return None
    seconds = [f"{span.total_seconds():.1f} s" for span in (incremental, full)]
    detail = f"the last incremental refreshes took {seconds[0]}, the last full ones {seconds[1]}"
    return reason("CHEAPER", detail)


def cheaper_full(
    intervals: Mapping[TableName, Interval], cycle: Cycle, warehouse: Warehouse
) -> Reason | None:
    """Return why a full refresh is expected to be faster, with the numbers; None if not."""
    if not intervals:
        return None
    total = 0
    for table, interval in intervals.items():
        rows = cycle.rows(warehouse, table, interval.new)
        total += rows
        if interval.kind is Kind.REWRITE:
            continue
        commits = between(
            cycle.catalog.history(warehouse, table, since=interval.old),
            interval.old,
            interval.new,
        )
        changed = rows_changed(commits or [])
        if changed is None or changed <= LARGE * rows:
            continue
        if rows >= SMALL:
            return reason("CHEAPER", f"{changed} of {rows} rows of {table} changed")
    if total < SMALL:
        return reason("CHEAPER", f"the changed sources have only {total} rows")
    return None
