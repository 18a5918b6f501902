"""What a refresh would do and why, before it does it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from spark_dynamic.apply.groups import Groups
from spark_dynamic.changes.interval import Interval
from spark_dynamic.delta.analysis import unique_by
from spark_dynamic.delta.differentiate import differentiate
from spark_dynamic.delta.facts import Changes
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Plan,
    Project,
    Scan,
    State,
    UnionAll,
    scans,
)
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.expected import expected_statements
from spark_dynamic.refresh.maintenance import Maintenance
from spark_dynamic.refresh.plan import Plan as RefreshPlan
from spark_dynamic.refresh.prepared import work_of
from spark_dynamic.refresh.shape import expected_shape, facts_of
from spark_dynamic.refresh.sources import intervals
from spark_dynamic.refresh.upkeep import Upkeep
from spark_dynamic.sql.dialect import SparkDynamic
from spark_dynamic.sql.write import Relation, Writer
from spark_dynamic.support import NotIncremental, Reason
from spark_dynamic.warehouse import Warehouse

_RULES = {
    Scan: "scan",
    Filter: "filter",
    Project: "project",
    UnionAll: "union_all",
    Join: "inner_join",
    Aggregate: "aggregate",
}
_NO_FEED = (
    "it has no change feed, so all rows are compared with those of version {}. To read only what "
    "changes, set its table property delta.enableChangeDataFeed to true"
)


@dataclass(frozen=True)
class Line:
    """One line of an explanation."""

    part: str
    text: str


def explain_refresh(plan: RefreshPlan, cycle: Cycle, warehouse: Warehouse) -> list[Line]:
    """Return mode, action, plan, sources and SQL of a planned refresh."""
    decision = plan.decision
    lines = [
        Line("table", str(plan.request.view)),
        Line("mode", plan.request.config.refresh_mode.value),
        Line("action", f"{decision.action} {decision.detail}".strip()),
        Line("reason", str(decision.reason) or "-"),
    ]
    distrusted = plan.record.distrusted if plan.record else ""
    upkeep = Upkeep(plan.request, plan.analysis, plan.verdict, distrusted, cycle, warehouse)
    refusal = upkeep.refusal()
    if upkeep.found is not None:
        lines += [Line("plan", text) for text in _tree(upkeep.found)]
        lines += _unique(upkeep.found, plan.request.config.unique_key)
    else:
        lines.append(Line("plan", f"not incremental: {refusal}"))
    # Neither applied changes nor a first build need one.
    is_expected = decision.action == "INCREMENTAL" or decision.reason.code == "INITIAL_BUILD"
    why_full = None if is_expected else decision.reason
    lines += _remedies(why_full, refusal)
    changed = _changed(plan, cycle, warehouse)
    if upkeep.found is not None and changed:
        found = upkeep.found
        lines.append(Line("shape", expected_shape(found.plan, changed, found.rows_of)))
    lines += _sources(plan, changed)
    lines += _statements(plan, cycle, warehouse)
    if upkeep.found is not None:
        lines += _delta(upkeep.found.plan, changed)
    return lines


def explain_windows(plans: Iterable[RefreshPlan]) -> list[Line]:
    """Return what would be done for the windows of changes that a model reads."""
    lines = []
    for plan in plans:
        decision, slide = plan.decision, plan.slide
        text = f"{plan.request.view}: {decision.action} {decision.reason.code}".strip()
        if slide is not None and slide.ages:
            text += ", changes are too old"
        if slide is not None and slide.added:
            text += ", changes are new"
        lines.append(Line("changes", text))
    return lines


def _remedies(*reasons: Reason | None) -> list[Line]:
    """Say what can be done to have a refresh that is not full."""
    found = [why.remedy for why in reasons if why is not None and why.remedy]
    return [Line("remedy", remedy) for remedy in dict.fromkeys(found)]


def _tree(maintenance: Maintenance) -> Iterator[str]:
    """Yield the plan, one operator a line, each with the rule that differentiates it."""
    target = maintenance.target
    top = maintenance.query.plan
    if isinstance(target, Groups):
        keys = ", ".join(target.keys.values()) or "no keys"
        stored = ", ".join(stored.name for stored in target.stored)
        yield f"groups by {keys}, stored with {stored}: merged by key"
        top = target.shape.aggregate.input
    else:
        yield "rows: appended, or merged by hash and ordinal"
    yield from _nodes(top, 1)


def _unique(maintenance: Maintenance, declared: tuple[str, ...]) -> list[Line]:
    """Say which columns of the result tell its rows apart, as far as anybody knows."""
    query = maintenance.query
    names = {
        id: column.name
        for id, column in zip(query.columns, maintenance.target.columns, strict=True)
    }
    proven = [key for key in unique_by(query.plan, {}) if key <= names.keys()]
    lines = []
    if proven:
        shortest = sorted(names[id] for id in min(proven, key=len))
        lines.append(Line("unique", f"by {', '.join(shortest) or 'nothing: one row'}, proven"))
    if declared:
        wanted = {name.lower() for name in declared}
        covers = any({names[id].lower() for id in key} <= wanted for key in proven)
        lines.append(Line("unique", f"by {', '.join(declared)}, declared{' and proven' * covers}"))
    return lines


def _nodes(plan: Plan, depth: int) -> Iterator[str]:
    rule = _RULES[type(plan)]
    match plan:
        case Scan():
            detail = f"{plan.table} ({', '.join(field.name for field in plan.fields)})"
        case Filter():
            detail = plan.condition.sql(dialect=SparkDynamic)
        case Join():
            detail = " AND ".join(c.sql(dialect=SparkDynamic) for c in plan.conditions)
        case Aggregate():
            detail = ", ".join(plan.columns)
        case _:
            detail = ", ".join(plan.columns)
    yield f"{'  ' * depth}{rule}: {detail}"
    for child in plan.inputs:
        yield from _nodes(child, depth + 1)


def _changed(
    plan: RefreshPlan, cycle: Cycle, warehouse: Warehouse
) -> Mapping[TableName, Interval]:
    """Return what happened to the sources since the last refresh, as far as that is known."""
    record, cut = plan.record, plan.cut
    if record is None or cut is None or plan.decision.action not in ("INCREMENTAL", "FULL"):
        return {}
    known = {str(u.storage) for u in plan.analysis.upstreams} <= record.upstreams.keys()
    pinned = all(record.pin_of(table) for table in plan.analysis.bases)
    return intervals(record, cut, plan.analysis, cycle, warehouse) if known and pinned else {}


def _sources(plan: RefreshPlan, changed: Mapping[TableName, Interval]) -> list[Line]:
    if plan.cut is None:
        return []
    lines = []
    for table, version in sorted(plan.cut.versions().items(), key=lambda item: str(item[0])):
        if table not in plan.analysis.tables():
            continue
        text = f"{table} at version {version}: "
        interval = changed.get(table)
        if interval is not None:
            since = f"{interval.what} since version {interval.old}"
            text += since if interval.has_feed else _NO_FEED.format(interval.old)
        else:
            text += "read in full" if plan.record is None else "no change"
        lines.append(Line("source", text))
    return lines


class _Named:
    """States of sources by names that explain themselves."""

    def relation(self, table: TableName, state: State) -> Relation:
        return Relation(f"{table.sql} /* {state.value} */", state is State.DELTA)


def _statements(plan: RefreshPlan, cycle: Cycle, warehouse: Warehouse) -> list[Line]:
    """Return the query of a rebuild, or what is known of the statements that apply changes."""
    if plan.query:
        return [Line("sql", plan.query)]
    if plan.decision.action != "INCREMENTAL":
        return []
    try:
        found = expected_statements(work_of(plan, cycle, warehouse))
    except NotIncremental as refusal:
        return [Line("sql", f"not incremental: {refusal}")]
    return [Line("sql", statement) for statement in found]


def _delta(plan: Plan, changed: Mapping[TableName, Interval]) -> list[Line]:
    """Return the delta of the sources that changed; if none is known to have, of all of them."""
    facts = facts_of(plan, changed) or {scan.table: Changes() for scan in scans(plan)}
    delta = differentiate(plan, facts)
    return [] if delta is None else [Line("delta", Writer(_Named()).weighted(delta))]
