"""Properties of a delta: does it only insert, and between which bounds do its columns lie?"""

import math
import re
from typing import Final

from sqlglot import exp

from spark_dynamic.delta.facts import Bounds, Facts
from spark_dynamic.literals import literal
from spark_dynamic.plan.expressions import equal_columns
from spark_dynamic.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Negate,
    Plan,
    Project,
    Restrict,
    Scan,
    State,
    Sum,
    UnionAll,
    column,
    walk,
)

# Types that are ordered alike, whichever of each other they are compared with.
_ORDERED: Final = re.compile(r"(tiny|small|big)?int|decimal\(.*\)|date|timestamp(_ntz)?")


def is_insert_only(delta: Plan, facts: Facts) -> bool:
    """Tell whether all weights of a delta are positive, from its form alone.

    An old state counts as plain rows here: whoever appends a delta reads it by time travel.
    """
    for node in walk(delta):
        if isinstance(node, Negate):
            return False
        is_delta = isinstance(node, Scan) and node.state is State.DELTA
        if is_delta and isinstance(node, Scan) and not facts[node.table].insert_only:
            return False
    return True


def is_delete_only(delta: Plan, facts: Facts) -> bool:
    """Tell whether all weights of a delta are negative, from its form alone."""
    return _sign(delta, facts) == -1


def _sign(delta: Plan, facts: Facts) -> int:
    """Return the sign of all weights of a delta; 0 if they may have different ones."""
    match delta:
        case Scan():
            if delta.state is not State.DELTA:
                return 1
            known = facts[delta.table]
            return int(known.insert_only) - int(known.delete_only)
        case Negate():
            return -_sign(delta.input, facts)
        case Filter() | Project() | Restrict():
            return _sign(delta.input, facts)
        case Join():
            return math.prod(_sign(member, facts) for member in delta.members)
        case Sum() | UnionAll():
            signs = {_sign(part, facts) for part in delta.inputs}
            return signs.pop() if len(signs) == 1 else 0
    return 0


def bounds_of(delta: Plan, facts: Facts) -> dict[str, Bounds]:
    """Return the bounds of a delta's columns, as far as they are known."""
    match delta:
        case Scan():
            if delta.state is not State.DELTA:
                return {}
            known = facts[delta.table].bounds
            return {f.id: known[f.name] for f in delta.fields if f.name in known}
        case Filter() | Negate() | Restrict():
            return bounds_of(delta.input, facts)
        case Project():
            inner = bounds_of(delta.input, facts)
            return {
                output.id: inner[output.expression.name]
                for output in delta.outputs
                if isinstance(output.expression, exp.Column) and output.expression.name in inner
            }
        case Join():
            found: dict[str, Bounds] = {}
            for member in delta.members:
                found |= bounds_of(member, facts)
            for condition in delta.conditions:
                pair = equal_columns(condition)
                for one, other in (pair, pair[::-1]) if pair else ():
                    if one in found and other not in found and holds_for(found[one], delta, other):
                        found[other] = found[one]
            return found
        case Sum():
            return _around([bounds_of(term, facts) for term in delta.terms])
    return {}


def _around(every: list[dict[str, Bounds]]) -> dict[str, Bounds]:
    """Return bounds that hold for the rows of all terms."""
    found = {}
    for id in set.intersection(*(set(bounds) for bounds in every)):
        ends = [end for bounds in every for end in (bounds[id].low, bounds[id].high)]
        # A column may have its bounds from a date in one term and from a timestamp in another.
        if len({type(end) for end in ends}) == 1:
            found[id] = Bounds(min(ends), max(ends))
    return found


def holds_for(bounds: Bounds, plan: Plan, id: str) -> bool:
    """Tell whether a column that equals a bounded one lies between the same bounds.

    Equality may compare other types than the bounds were found with: '10' < '9' as texts, but
    not as numbers; and a text is compared with 1 as another type than with a bigint. Whole
    numbers, decimals and times are ordered alike in all types that they are compared in; NaN
    has no place among bounds.
    """
    if isinstance(bounds.low, float) or isinstance(bounds.high, float):
        return False
    type = type_of(plan, id)
    return type == "string" if isinstance(bounds.low, str) else bool(_ORDERED.fullmatch(type))


def type_of(plan: Plan, id: str) -> str:
    """Return the type of a column that comes from a source as it is, else nothing."""
    match plan:
        case Scan():
            return next((field.type for field in plan.fields if field.id == id), "")
        case Project():
            expression = next((o.expression for o in plan.outputs if o.id == id), None)
            is_passed_on = isinstance(expression, exp.Column)
            return type_of(plan.input, expression.name) if is_passed_on and expression else ""
        case Aggregate():
            key = next((key.expression for key in plan.keys if key.id == id), None)
            return type_of(plan.input, key.name) if isinstance(key, exp.Column) else ""
        case UnionAll():
            place = plan.ids.index(id) if id in plan.ids else None
            if place is None or plan.types:
                return "" if place is None else plan.types[place]
            types = {type_of(branch, branch.columns[place]) for branch in plan.branches}
            return types.pop() if len(types) == 1 else ""
        case Filter() | Negate() | Restrict() | Join():
            return next((found for i in plan.inputs if (found := type_of(i, id))), "")
    return ""


def terms(delta: Plan) -> tuple[Plan, ...]:
    """Return the parts of a delta that are added up; each has bounds of its own."""
    if isinstance(delta, Sum):
        return tuple(term for inner in delta.terms for term in terms(inner))
    return (delta,)


def within(plan: Plan, bounds: dict[str, Bounds]) -> Plan:
    """Return the rows of a plan between bounds of its columns; Spark pushes them into scans."""
    for id, bound in bounds.items():
        if id in plan.columns:
            low, high = exp.Var(this=literal(bound.low)), exp.Var(this=literal(bound.high))
            plan = Filter(plan, exp.Between(this=column(id), low=low, high=high))
    return plan
