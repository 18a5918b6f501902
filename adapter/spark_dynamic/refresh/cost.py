"""When a full refresh is cheaper: small tables, and large changes.

A first rule, from what history tells without a job: an incremental refresh has fixed costs
(reading each change feed, a MERGE), which a small table's rebuild does not reach; and once a
good part of a table has changed, reading it as changes costs more than reading it all.
"""

from collections.abc import Mapping

from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.frontier.history import between, rows_changed
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.support import Reason, reason
from spark_dynamic.warehouse import Warehouse

# Below so many rows in the changed sources a rebuild takes about as long as a MERGE alone.
SMALL = 100_000
# Above this part of a table's rows, changes are not few any more.
LARGE = 0.25


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
        commits = between(
            cycle.catalog.history(warehouse, table, since=interval.old),
            interval.old,
            interval.new,
        )
        changed = rows_changed(commits or [])
        if interval.kind is Kind.REWRITE or changed is None or changed <= LARGE * rows:
            continue
        if rows >= SMALL:
            return reason("CHEAPER", f"{changed} of {rows} rows of {table} changed")
    if total < SMALL:
        return reason("CHEAPER", f"the changed sources have only {total} rows")
    return None
