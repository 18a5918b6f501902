"""Plans in one shape: joins flat, filters as low as they go, no unused columns."""

from collections.abc import Iterable
from dataclasses import replace

from spark_dynamic.plan.expressions import conjuncts, used
from spark_dynamic.plan.nodes import (
    Aggregate,
    Expression,
    Filter,
    Join,
    Plan,
    Project,
    Restrict,
    Scan,
    UnionAll,
)


def joined(members: Iterable[Plan], conditions: Iterable[Expression]) -> Plan:
    """Return the inner join of plans, nested joins made one.

    Conditions of nested joins stay before those above, which they may protect from errors.
    """
    flat: list[Plan] = []
    parts: list[Expression] = []
    for member in members:
        above: list[Expression] = []
        if isinstance(member, Filter) and isinstance(member.input, Join):
            above += member.conditions
            member = member.input
        if isinstance(member, Join):
            flat += member.members
            parts += [*member.conditions, *above]
        else:
            flat.append(member)
    parts += [part for condition in conditions for part in conjuncts(condition)]
    if len(flat) == 1 and not parts:
        return flat[0]
    return _placed(flat, parts)


def filtered(plan: Plan, condition: Expression) -> Plan:
    """Return the rows of a plan for which a condition holds."""
    return joined([plan], [condition])


def _placed(members: list[Plan], parts: list[Expression]) -> Plan:
    """Put each condition where its columns are first together."""
    across: list[Expression] = []
    own: dict[int, list[Expression]] = {}
    homes = {id: place for place, member in enumerate(members) for id in member.columns}
    for part in parts:
        places = {homes.get(id) for id in used(part)} if len(members) > 1 else {0}
        home = places.pop() if len(places) == 1 else None
        if home is None:
            across.append(part)
        else:
            own.setdefault(home, []).append(part)
    for place, conditions in own.items():
        members[place] = _with_conditions(members[place], tuple(conditions))
    return members[0] if len(members) == 1 else Join(tuple(members), tuple(across))


def _with_conditions(plan: Plan, conditions: tuple[Expression, ...]) -> Filter:
    if isinstance(plan, Filter):
        return Filter(plan.input, plan.conditions + conditions)
    return Filter(plan, conditions)


def without_unused_columns(plan: Plan, needed: set[str]) -> Plan:
    """Return a plan that reads and passes on only what is needed."""
    match plan:
        case Scan():
            kept = tuple(field for field in plan.fields if field.id in needed)
            return replace(plan, fields=kept or plan.fields[:1])
        case Filter():
            reads = needed.union(*(used(condition) for condition in plan.conditions))
            return Filter(without_unused_columns(plan.input, reads), plan.conditions)
        case Project():
            outputs = tuple(o for o in plan.outputs if o.id in needed) or plan.outputs[:1]
            reads = {id for output in outputs for id in used(output.expression)}
            return Project(without_unused_columns(plan.input, reads), outputs)
        case UnionAll():
            return _narrow_union(plan, needed)
        case Join():
            reads = needed.union(*(used(condition) for condition in plan.conditions))
            members = tuple(without_unused_columns(m, reads) for m in plan.members)
            return replace(plan, members=members)
        case Aggregate():
            measures = tuple(m for m in plan.measures if m.id in needed)
            reads = {id for key in plan.keys for id in used(key.expression)}
            arguments = [m.argument for m in measures if m.argument is not None]
            reads = reads.union(*(used(argument) for argument in arguments))
            below = without_unused_columns(plan.input, reads)
            return replace(plan, input=below, measures=measures)
        case Restrict():
            reads = needed.union(*(used(key) for key in plan.keys))
            return replace(plan, input=without_unused_columns(plan.input, reads))
    return plan


def _narrow_union(plan: UnionAll, needed: set[str]) -> UnionAll:
    kept = [i for i, id in enumerate(plan.ids) if id in needed] or [0]
    branches = tuple(
        without_unused_columns(branch, {branch.columns[i] for i in kept})
        for branch in plan.branches
    )
    types = tuple(plan.types[i] for i in kept) if plan.types else ()
    return UnionAll(branches, tuple(plan.ids[i] for i in kept), types)
