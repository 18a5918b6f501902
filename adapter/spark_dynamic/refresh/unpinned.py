"""What a text that cannot be pinned reads: the newest version of everything, when it runs.

That is later than the moment of its cycle, and a pre-hook or another writer may have committed in
between. So its sources are looked at right before the statement: these versions are what its
record says, and where readers of the table in this cycle read them, too. A second look comes
after the statement. If a source has changed in between, it is not known which version was read.
"""

from dataclasses import replace

from spark_dynamic.frontier.cut import Cut
from spark_dynamic.frontier.record import Pin, Record, Recorded
from spark_dynamic.names import TableName
from spark_dynamic.refresh.amend import amend
from spark_dynamic.refresh.analyse import is_storage, upstream_of
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan
from spark_dynamic.warehouse import Relation, Warehouse


def as_read_now(plan: Plan, cycle: Cycle, warehouse: Warehouse) -> Plan:
    """Return a plan whose cut says where a text that is not pinned is about to read."""
    if plan.verdict.passed:
        return plan
    return replace(plan, cut=_reading(plan, cycle, warehouse))


def check_reading(plan: Plan, written: Recorded, cycle: Cycle, warehouse: Warehouse) -> None:
    """Look again, after a text that is not pinned has run, and say what is not known."""
    record = written.record
    if record.verdict.passed:
        return
    after = _reading(plan, cycle, warehouse).pins
    moved = {
        str(pin.table): record.attempt
        for pin in record.frontier
        if pin.table not in after or not cycle.same_rows(warehouse, pin, after[pin.table])
    }
    for pin in record.frontier:
        if str(pin.table) not in moved:
            cycle.note_read(pin)

    def without_moved(newest: Record) -> Record | None:
        if newest.attempt != record.attempt:
            return None
        kept = tuple(pin for pin in newest.frontier if str(pin.table) not in moved)
        unknown = {**newest.unknown_sources, **moved}
        return replace(newest, frontier=kept, unknown_sources=unknown)

    if moved:
        amend(plan.request.view, without_moved, cycle, warehouse)


def _reading(plan: Plan, cycle: Cycle, warehouse: Warehouse) -> Cut:
    """Return where the sources are now, down to base tables.

    A base table that is read at two versions, itself and by a dynamic table, is at none.
    """
    pins: dict[TableName, Pin] = {}
    upstreams: dict[TableName, Recorded] = {}
    unknown: set[TableName] = set()
    inherited: set[str] = set()
    for relation in _sources(plan, cycle, warehouse):
        table = relation.name
        newest = cycle.catalog.look_again(warehouse, table)[0]
        found = [Pin(table, relation.location, newest.version, newest.timestamp)]
        if is_storage(relation):
            refreshes = upstream_of(table, cycle, warehouse).trusted
            if not refreshes:
                continue
            upstreams[table] = refreshes[0]
            found = list(refreshes[0].record.frontier)
            inherited.update(refreshes[0].record.unknown_sources)
        for pin in found:
            other = pins.setdefault(pin.table, pin)
            if not cycle.same_rows(warehouse, other, pin):
                unknown.add(pin.table)
    unknown.update(table for table in pins if str(table) in inherited)
    known = {table: pin for table, pin in pins.items() if table not in unknown}
    return Cut(cycle.data_timestamp, known, upstreams, unknown_sources=unknown)


def _sources(plan: Plan, cycle: Cycle, warehouse: Warehouse) -> list[Relation]:
    """Return the Delta tables that a text reads."""
    names = plan.analysis.tables() | plan.unpinned
    found = (cycle.catalog.relation(warehouse, name) for name in sorted(names, key=str))
    return [relation for relation in found if relation is not None and relation.is_delta]
