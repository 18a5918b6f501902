"""Inner join: each changed member against the others, once."""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from spark_dynamic.delta.analysis import (
    bounds_of,
    holds_for,
    is_vacant,
    terms,
    type_of,
    within,
)
from spark_dynamic.delta.facts import Bounds, Facts
from spark_dynamic.delta.states import old
from spark_dynamic.plan.expressions import equal_columns, used
from spark_dynamic.plan.nodes import Join, Plan, Sum


def inner_join(node: Join, deltas: Sequence[Plan | None], facts: Facts) -> Plan:
    """Δ(R₁ ⋈ … ⋈ Rₙ) = Σᵢ R₁′ ⋈ … ⋈ Rᵢ₋₁′ ⋈ ΔRᵢ ⋈ Rᵢ₊₁ ⋈ … ⋈ Rₙ.

    One term per changed member, for any predicate and for self-joins, whose two sides are two
    members. A term begins with its delta and goes on along the conditions, so that no two
    large members are joined first; what joins a changed row by equality lies between the
    bounds of the changed rows' keys. A term is left out if a member had no row between them; the
    last one has no old member, and stays. Members without changes are factored out of the sum
    where the changed ones hold together without them, so that each is read once.

    >>> from sqlglot import parse_one
    >>> from spark_dynamic.delta.facts import Changes
    >>> from spark_dynamic.names import TableName
    >>> from spark_dynamic.plan.nodes import Field, Scan, State
    >>> a = Scan(TableName("s", "a"), (Field("x", "x", "int"),))
    >>> b = Scan(TableName("s", "b"), (Field("y", "y", "int"),))
    >>> changed = Scan(b.table, b.fields, State.DELTA)
    >>> facts = {b.table: Changes()}
    >>> term = inner_join(Join((a, b), (parse_one("x = y"),)), [None, changed], facts)
    >>> [(str(member.table), member.state.value) for member in term.members]
    [('s.b', 'delta'), ('s.a', 'new')]
    """
    changed = [i for i, delta in enumerate(deltas) if delta is not None]
    core = [node.members[i] for i in changed]
    links = [used(condition) for condition in node.conditions]
    if 1 < len(core) < len(node.members) and all(
        is_linked for _, is_linked in _along(links, core[0], core[1:])
    ):
        columns = {id for member in core for id in member.columns}
        inner = Join(tuple(core), tuple(c for c in node.conditions if used(c) <= columns))
        outer = tuple(c for c in node.conditions if not used(c) <= columns)
        is_core = set(changed)
        others = [member for i, member in enumerate(node.members) if i not in is_core]
        sum_of_terms = inner_join(inner, [deltas[i] for i in changed], facts)
        return _term(Join((inner, *others), outer), sum_of_terms, others, facts)
    olds = [old(member, facts) for member in node.members]
    found: list[Plan] = []
    for i, delta in enumerate(deltas):
        if delta is not None:
            others = [*node.members[:i], *olds[i + 1 :]]
            joined = (_term(node, term, others, facts) for term in terms(delta))
            found += [term for term in joined if not is_vacant(term, facts)]
    return Sum(tuple(found)) if len(found) > 1 else found[0]


def _term(node: Join, first: Plan, others: list[Plan], facts: Facts) -> Join:
    members = [first]
    links = [used(condition) for condition in node.conditions]
    bounds = bounds_of(first, facts)
    equals = _equal_columns(node) if bounds else {}
    for following, _ in _along(links, first, others):
        members.append(within(following, _passed_on(equals, bounds, first, following)))
    return Join(tuple(members), node.conditions)


def _along(
    links: list[set[str]], first: Plan, others: Sequence[Plan]
) -> Iterator[tuple[Plan, bool]]:
    """Yield the others in an order in which conditions link each with those before it.

    Where none does, the next one is taken, and said not to be linked.
    """
    members = [first, *others]
    places = {id: place for place, member in enumerate(members) for id in member.columns}
    # Of each link the members that it still waits for, and of each member its links.
    waiting = [{places.get(id, -1) for id in link} for link in links]
    links_of: dict[int, list[set[int]]] = {}
    for link in waiting:
        for place in link:
            links_of.setdefault(place, []).append(link)
    linked: list[int] = []
    remaining = dict.fromkeys(range(1, len(members)))
    place, is_linked = 0, True
    while True:
        if place:
            del remaining[place]
            yield members[place], is_linked
        for link in links_of.get(place, ()):
            link.discard(place)
            if len(link) == 1:
                heappush(linked, next(iter(link)))
        while linked and linked[0] not in remaining:
            heappop(linked)
        if not remaining:
            return
        is_linked = bool(linked)
        place = heappop(linked) if linked else next(iter(remaining))


def _equal_columns(node: Join) -> dict[str, list[str]]:
    """Return for each column those that the join sets equal to it."""
    found: dict[str, list[str]] = {}
    for condition in node.conditions:
        one, other = equal_columns(condition) or ("", "")
        if one:
            found.setdefault(one, []).append(other)
            found.setdefault(other, []).append(one)
    return found


def _passed_on(
    equals: dict[str, list[str]], bounds: dict[str, Bounds], first: Plan, member: Plan
) -> dict[str, Bounds]:
    """Return the bounds of a member's columns that are set equal to bounded ones."""
    return {
        id: bounds[one]
        for id in member.columns
        for one in equals.get(id, ())
        if one in bounds and holds_for(bounds[one], type_of(first, one), type_of(member, id))
    }
