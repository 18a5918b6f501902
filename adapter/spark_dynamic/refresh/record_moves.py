"""How a cut stands to the newest record: behind it, with the same rows, or with others."""

from datetime import timedelta

from spark_dynamic.frontier.cut import Cut, Upstream, Waiting, is_same_commit
from spark_dynamic.frontier.record import Pin, Record, Verdict
from spark_dynamic.refresh.aging import kept_until
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.sources import seen
from spark_dynamic.warehouse import Warehouse


def is_covered(
    cut: Cut | Waiting, record: Record | None, cycle: Cycle, warehouse: Warehouse
) -> bool:
    """Tell whether the stored table is already newer than this cut in any source.

    Where a later run has taken the upstreams further, there is no cut for this one any more.
    """
    if record is None or isinstance(cut, Waiting):
        moment = record.data_timestamp if record else cycle.data_timestamp
        return moment > cycle.data_timestamp and not cycle.is_ahead(warehouse, moment)
    return any(
        cut.pins[pin.table].log == pin.log
        and cut.pins[pin.table].version < pin.version
        and cycle.is_same_log(warehouse, pin)
        for pin in record.frontier
        if pin.table in cut.pins
    )


def changed_sources(
    analysis: Analysis,
    verdict: Verdict,
    record: Record | None,
    cut: Cut | Waiting,
    cycle: Cycle,
    warehouse: Warehouse,
) -> tuple[str, ...]:
    """Return the sources that differ from what the stored table was computed from."""
    if record is None or isinstance(cut, Waiting):
        return ()
    same_columns = record.verdict.columns == verdict.columns
    changed = [] if same_columns else ["columns of the sources"]
    for table in analysis.bases:
        old, new = record.pin_of(table), cut.pins.get(table)
        if old is None or new is None or not cycle.same_rows(warehouse, old, new):
            changed.append(str(table))
    for upstream in analysis.upstreams:
        if not _same_upstream(upstream, record, cut, cycle, warehouse):
            changed.append(str(upstream.view))
    return tuple(changed)


def _same_upstream(
    upstream: Upstream, record: Record, cut: Cut, cycle: Cycle, warehouse: Warehouse
) -> bool:
    """Tell whether an upstream has the rows that it had after one of its earlier refreshes."""
    now = cut.upstreams.get(upstream.storage)
    then = seen(record, upstream, cycle, warehouse)
    if now is None or then is None or then.table != upstream.storage:
        return False
    old, new = (
        Pin(upstream.storage, "", taken.commit.version, taken.commit.timestamp)
        for taken in (then.recorded, now)
    )
    return cycle.same_rows(warehouse, old, new)


def has_moved(
    record: Record, cut: Cut, retention: timedelta, cycle: Cycle, warehouse: Warehouse
) -> bool:
    """Tell whether the record needs a newer cut, although the rows stay as they are.

    Base tables may have changed without anything of it reaching this table; its readers could
    then not see from the old record that its contents are still right. And nothing may age out:
    neither the record nor a version that it names; a data timestamp of the future would hide it.
    """
    if not record.holds_at(cut.data_timestamp):
        return True
    if cycle.is_ahead(warehouse, record.data_timestamp):
        return True
    if cut.data_timestamp > kept_until(record, cut, retention, cycle, warehouse):
        return True
    for table, pin in cut.pins.items():
        old = record.pin_of(table)
        if old is None or (record.by_commit and not is_same_commit(old, pin)):
            return True
        if not cycle.same_rows(warehouse, old, pin):
            return True
    return False
