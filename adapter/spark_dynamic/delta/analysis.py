"""Properties of a delta, from its form and from what is known of the sources' changes.

Does it only insert, can anything in it cancel out, which columns tell its rows apart, and between
which bounds do they lie?
"""

import math
from collections.abc import Collection
from typing import Final

from sqlglot import exp

from spark_dynamic.delta.facts import Bounds, Facts, Range
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName
from spark_dynamic.plan.expressions import equal_columns
from spark_dynamic.plan.nodes import (
    Aggregate,
    Expression,
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
from spark_dynamic.plan.types import digits, is_exact

# Types that are ordered alike, whichever of each other they are compared with.
_TIMES: Final = ("date", "timestamp", "timestamp_ntz")
# A number has no more digits in Spark.
_MOST_DIGITS: Final = 38
# So many keys of a plan are looked at: conditions that set columns equal multiply them.
_MOST_KEYS = 16


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
        case Aggregate():
            return 1
        case Join():
            return math.prod(_sign(member, facts) for member in delta.members)
        case Sum() | UnionAll():
            signs = {_sign(part, facts) for part in delta.inputs}
            return signs.pop() if len(signs) == 1 else 0
    return 0


def is_minimal(delta: Plan, columns: Collection[str], facts: Facts) -> bool:
    """Tell whether no row of some columns can occur with both signs: nothing cancels out.

    As in `is_insert_only`, an old state counts as plain rows.
    """
    return _sign(delta, facts) != 0 or is_net(delta, columns, facts)


def is_net(delta: Plan, columns: Collection[str], facts: Facts) -> bool:
    """Tell whether every row of some columns occurs once, so that its weight is the net change."""
    return any(key <= set(columns) for key in unique_by(delta, facts))


def unique_by(plan: Plan, facts: Facts) -> tuple[frozenset[str], ...]:
    """Return sets of columns, each of which no two rows of a plan share; none if none is proven.

    Groups are told apart by their keys, and the difference of two states has every row once.
    Nothing is known of a table's own rows.

    >>> from spark_dynamic.names import TableName
    >>> from spark_dynamic.plan.nodes import Field, Output
    >>> orders = Scan(TableName("shop", "orders"), (Field("x", "x", "int"),))
    >>> totals = Aggregate(orders, (Output("k", column("x")),), ())
    >>> unique_by(Project(totals, (Output("renamed", column("k")),)), {})
    (frozenset({'renamed'}),)
    >>> unique_by(orders, {}), unique_by(Project(totals, ()), {})
    ((), ())
    """
    match plan:
        case Scan():
            net_by = facts[plan.table].net_by if plan.state is State.DELTA else None
            is_whole = net_by is not None and net_by <= {field.name for field in plan.fields}
            return (frozenset(plan.columns),) if is_whole else ()
        case Filter() | Negate() | Restrict():
            return unique_by(plan.input, facts)
        case Aggregate():
            return (frozenset(key.id for key in plan.keys),)
        case Project():
            passed = {
                output.expression.name: output.id
                for output in plan.outputs
                if isinstance(output.expression, exp.Column)
            }
            below = (key for key in unique_by(plan.input, facts) if key <= passed.keys())
            return tuple(frozenset(passed[id] for id in key) for key in below)
        case Join():
            keys: list[frozenset[str]] = [frozenset()]
            for member in plan.members:
                further = unique_by(member, facts)
                keys = [key | more for key in keys for more in further][:_MOST_KEYS]
            return _by_equals(plan, keys)
    return ()


def _by_equals(node: Join, keys: list[frozenset[str]]) -> tuple[frozenset[str], ...]:
    """Add the keys in which a column stands for one that the join sets equal.

    Only columns of one type: as numbers, the texts '1' and '01' are equal to the same 1.
    """
    found = list(dict.fromkeys(keys))
    if not found:
        return ()
    pairs = [pair for condition in node.conditions if (pair := equal_columns(condition))]
    same = [(one, other) for one, other in pairs if _is_same(node, one, other)]
    for key in found:
        for one, other in (both for pair in same for both in (pair, pair[::-1])):
            replaced = key - {one} | {other}
            if one in key and replaced not in found and len(found) < _MOST_KEYS:
                # The loop goes on to what it adds.
                found.append(replaced)
    return tuple(found)


def _is_same(plan: Plan, one: str, other: str) -> bool:
    type = type_of(plan, one)
    return type == type_of(plan, other) and is_exact(type)


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
                    if one not in found or other in found:
                        continue
                    if holds_for(found[one], type_of(delta, one), type_of(delta, other)):
                        found[other] = found[one]
            return found
        case Sum():
            return _around([bounds_of(term, facts) for term in delta.terms])
    return {}


def _around(every: list[dict[str, Bounds]]) -> dict[str, Bounds]:
    """Return bounds that hold for the rows of all terms."""
    found = {}
    # Sorted, so that a statement is the same text whichever process writes it.
    for id in sorted(set.intersection(*(set(bounds) for bounds in every))):
        ends = [end for bounds in every for end in (bounds[id].low, bounds[id].high)]
        # A column may have its bounds from a date in one term and from a timestamp in another.
        if len({type(end) for end in ends}) == 1:
            found[id] = Bounds(min(ends), max(ends))
    return found


def holds_for(bounds: Bounds, type: str, other: str) -> bool:
    """Tell whether a column that equals a bounded one lies between the same bounds.

    Equality may compare other types than the bounds were found with: '10' < '9' as texts, but
    not as numbers; and a text is compared with 1 as another type than with a bigint. Whole
    numbers, decimals and times are ordered alike in all types that they are compared in, as long
    as these have room for all digits: else 1.004 is equal to 1.00. NaN has no place among bounds.

    >>> holds_for(Bounds(1, 2), "bigint", "decimal(38,18)")
    True
    >>> holds_for(Bounds(1, 2), "bigint", "decimal(38,20)")
    False
    """
    if isinstance(bounds.low, str):
        return other == "string"
    if type in _TIMES:
        return other in _TIMES
    one, two = digits(type), digits(other)
    if one is None or two is None:
        return False
    return max(one[0], two[0]) + max(one[1], two[1]) <= _MOST_DIGITS


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
        case Sum():
            types = {type_of(term, id) for term in plan.terms}
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
    own = set(plan.columns)
    conditions = tuple(
        exp.Between(
            this=column(id),
            low=exp.Var(this=literal(bound.low)),
            high=exp.Var(this=literal(bound.high)),
        )
        for id, bound in bounds.items()
        if id in own
    )
    return Filter(plan, conditions) if conditions else plan


def old_ranges(delta: Plan) -> set[tuple[TableName, Range]]:
    """Return the ranges within which old states are read; without rows there, nothing is added."""
    return {
        (scan.table, range)
        for node in walk(delta)
        if isinstance(node, Join)
        for member in node.members
        for scan, range in _ranges(member)
        if scan.state is State.OLD
    }


def is_vacant(term: Join, facts: Facts) -> bool:
    """Tell whether a member is the old state of a source where that had no row."""
    return any(
        scan.state is State.OLD and range in facts[scan.table].vacant
        for member in term.members
        for scan, range in _ranges(member)
    )


def _ranges(member: Plan) -> list[tuple[Scan, Range]]:
    """Return the ranges that `within` put around a scan."""
    conditions: list[Expression] = []
    while isinstance(member, Filter):
        conditions += member.conditions
        member = member.input
    if not isinstance(member, Scan):
        return []
    names = {field.id: field.name for field in member.fields}
    return [
        (member, Range(names[c.this.name], c.args["low"].name, c.args["high"].name))
        for c in conditions
        if isinstance(c, exp.Between) and isinstance(c.args["low"], exp.Var)
    ]
