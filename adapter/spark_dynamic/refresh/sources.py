"""The interval of each changed source: from what the record saw to what the cut shows."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import timedelta

from spark_dynamic.apply.storage import generations, storage_name
from spark_dynamic.changes.interval import Interval, Kind, kind_of
from spark_dynamic.frontier.cut import Cut, Upstream
from spark_dynamic.frontier.history import between, changes_rows, records, rows_changed
from spark_dynamic.frontier.record import Record, Recorded
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse

# Delta refuses time travel beyond seven days, unless a table says otherwise.
_TRAVEL = timedelta(days=6, hours=12)


@dataclass(frozen=True)
class Seen:
    """What a record saw of a dynamic table: one of its refreshes, in one of its generations."""

    table: TableName
    recorded: Recorded


def seen(record: Record, upstream: Upstream, cycle: Cycle, warehouse: Warehouse) -> Seen | None:
    """Find the refresh of an upstream that a record was made from; None if it is gone."""
    existing = cycle.catalog.tables(warehouse, upstream.view)
    for generation in generations(upstream.view, existing):
        table = storage_name(upstream.view, generation)
        attempt = record.upstreams.get(str(table))
        if attempt is None:
            continue
        recent = upstream.records if table == upstream.storage else ()
        found = _of_attempt(attempt, recent) or _of_attempt(
            attempt, records(cycle.catalog.history(warehouse, table, since=0))
        )
        if found is not None:
            return Seen(table, found)
    return None


def _of_attempt(attempt: str, found: Iterable[Recorded]) -> Recorded | None:
    return next((recorded for recorded in found if recorded.record.attempt == attempt), None)


def is_comparable(then: Seen, now: Recorded, used: Set[str]) -> bool:
    """Tell whether some columns of two generations mean the same.

    They do in one table. A new generation has other columns, or shows other rows of its own.
    """
    before, after = then.recorded.record, now.record
    if before.generation == after.generation:
        return True
    columns = [
        {c.stored_as: c for c in one.columns if c.stored_as in used} for one in (before, after)
    ]
    return columns[0] == columns[1] and not (
        before.state.get("filtered") or after.state.get("filtered")
    )


def intervals(
    record: Record, cut: Cut, analysis: Analysis, cycle: Cycle, warehouse: Warehouse
) -> dict[TableName, Interval]:
    """Return the intervals of all sources in which a commit may have changed rows."""
    found: dict[TableName, Interval | None] = {}
    for table in analysis.bases:
        pin = record.pin_of(table)
        assert pin is not None
        new = cut.pins[table].version
        found[table] = interval_between(table, pin.version, new, cycle, warehouse)
    for upstream in analysis.upstreams:
        then = seen(record, upstream, cycle, warehouse)
        assert then is not None
        table, old = upstream.storage, then.recorded.commit.version
        new = cut.upstreams[table].commit.version
        if then.table == table:
            found[table] = interval_between(table, old, new, cycle, warehouse)
        else:
            found[table] = Interval(table, old, new, Kind.REWRITE, then.table)
    return {table: interval for table, interval in found.items() if interval is not None}


def interval_between(
    table: TableName, old: int, new: int, cycle: Cycle, warehouse: Warehouse
) -> Interval | None:
    """Return the interval of a table from one version to another; None if no row changed."""
    if old == new:
        return None
    commits = between(cycle.catalog.history(warehouse, table, since=old), old, new)
    if commits is not None and not any(changes_rows(commit) for commit in commits):
        return None
    relation = cycle.catalog.relation(warehouse, table)
    has_feed = relation is not None and relation.has_feed and commits is not None
    return Interval(table, old, new, kind_of(commits or (), has_feed))


def inserted(
    found: Mapping[TableName, Interval], cycle: Cycle, warehouse: Warehouse
) -> dict[str, int]:
    """Return the rows added to sources that only got inserts, as history counts them."""
    counts: dict[str, int] = {}
    for table, interval in found.items():
        if interval.kind is not Kind.INSERTS:
            continue
        history = cycle.catalog.history(warehouse, table, since=interval.old)
        rows = rows_changed(between(history, interval.old, interval.new) or ())
        if rows is not None:
            counts[str(table)] = rows
    return counts


def beyond_travel(record: Record, analysis: Analysis, cycle: Cycle) -> frozenset[TableName]:
    """Return the base tables whose old version is too old to be read as it was."""
    oldest = cycle.data_timestamp - _TRAVEL
    return frozenset(
        pin.table
        for pin in record.frontier
        if pin.table in analysis.bases and pin.committed_at < oldest
    )
