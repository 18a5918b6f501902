"""The interval of each changed source: from what the record saw to what the cut shows."""

from datetime import timedelta

from spark_dynamic.changes.interval import Interval, kind_of
from spark_dynamic.frontier.cut import Cut
from spark_dynamic.frontier.history import between, changes_rows
from spark_dynamic.frontier.record import Record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse

# Delta refuses time travel beyond seven days, unless a table says otherwise.
_TRAVEL = timedelta(days=6, hours=12)


def intervals(
    record: Record, cut: Cut, analysis: Analysis, cycle: Cycle, warehouse: Warehouse
) -> dict[TableName, Interval]:
    """Return the intervals of all sources in which a commit may have changed rows."""
    found: dict[TableName, Interval] = {}
    for table, old, new in _ends(record, cut, analysis):
        commits = between(cycle.catalog.history(warehouse, table, since=old), old, new)
        if commits is not None and not any(changes_rows(commit) for commit in commits):
            continue
        relation = cycle.catalog.relation(warehouse, table)
        has_feed = relation is not None and relation.has_feed and commits is not None
        found[table] = Interval(table, old, new, kind_of(commits or (), has_feed))
    return found


def beyond_travel(record: Record, analysis: Analysis, cycle: Cycle) -> frozenset[TableName]:
    """Return the base tables whose old version is too old to be read as it was."""
    oldest = cycle.data_timestamp - _TRAVEL
    return frozenset(
        pin.table
        for pin in record.frontier
        if pin.table in analysis.bases and pin.committed_at < oldest
    )


def _ends(record: Record, cut: Cut, analysis: Analysis) -> list[tuple[TableName, int, int]]:
    ends: list[tuple[TableName, int, int]] = []
    for table in analysis.bases:
        pin = record.pin_of(table)
        assert pin is not None
        ends.append((table, pin.version, cut.pins[table].version))
    for upstream in analysis.upstreams:
        attempt = record.upstreams[str(upstream.storage)]
        then = next(r for r in upstream.records if r.record.attempt == attempt)
        now = cut.upstreams[upstream.storage]
        ends.append((upstream.storage, then.commit.version, now.commit.version))
    return [(table, old, new) for table, old, new in ends if old != new]
