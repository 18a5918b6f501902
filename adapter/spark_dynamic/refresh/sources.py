"""The interval of each changed source: from what the record saw to what the cut shows."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from spark_dynamic.apply.storage import generations, storage_name
from spark_dynamic.changes.feed_reach import feed_reaches
from spark_dynamic.changes.interval import Interval, Kind, in_parts, kind_of
from spark_dynamic.changes.kept import is_safe, lasting
from spark_dynamic.frontier.cut import Cut, Upstream
from spark_dynamic.frontier.history import between, changes_rows, records, rows_changed
from spark_dynamic.frontier.record import Pin, Record, Recorded
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse


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
        old = _lasting(pin, new, cycle, warehouse)
        found[table] = interval_between(table, old, new, cycle, warehouse)
    for upstream in analysis.upstreams:
        then = seen(record, upstream, cycle, warehouse)
        assert then is not None
        table, commit = upstream.storage, then.recorded.commit
        old, new = commit.version, cut.upstreams[table].commit.version
        if then.table == table:
            pin = Pin(table, "", old, commit.timestamp)
            old = _lasting(pin, new, cycle, warehouse)
            found[table] = interval_between(table, old, new, cycle, warehouse)
        else:
            found[table] = Interval(table, old, new, Kind.REWRITE, then.table)
    return {table: interval for table, interval in found.items() if interval is not None}


def _lasting(pin: Pin, new: int, cycle: Cycle, warehouse: Warehouse) -> int:
    """Return the last version before a new one that has the rows of a pin, and keeps its files."""
    return new if pin.version == new else lasting(pin, cycle, warehouse, until=new).version


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
    has_feed = relation is not None and relation.has_feed
    has_all = has_feed and commits is not None
    kind, parts = kind_of(commits or (), has_all), in_parts(commits or (), has_all)
    found = Interval(table, old, new, kind, has_feed=has_feed, in_parts=parts)
    if found.reads_feed and not feed_reaches(table, old, cycle, warehouse):
        return found.between_versions()
    return found


def rows_touched(
    found: Mapping[TableName, Interval], cycle: Cycle, warehouse: Warehouse
) -> dict[TableName, int]:
    """Return how many rows of each source changed, where history tells."""
    counts: dict[TableName, int] = {}
    for table, interval in found.items():
        if not interval.reads_feed:
            continue
        history = cycle.catalog.history(warehouse, table, since=interval.old)
        rows = rows_changed(between(history, interval.old, interval.new) or ())
        if rows is not None:
            counts[table] = rows
    return counts


def beyond_travel(
    found: Mapping[TableName, Interval], cycle: Cycle, warehouse: Warehouse
) -> frozenset[TableName]:
    """Return the changed sources whose old version may be gone.

    Of the others it is never read: it is the new one.
    """
    return frozenset(
        table
        for table, interval in found.items()
        if not is_safe(interval.old_table or table, interval.old, cycle, warehouse)
    )
