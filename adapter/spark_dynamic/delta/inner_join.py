"""Inner join: each changed member against the others, once."""

from collections.abc import Sequence

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
    links = [used(condition) for condition in node.conditions]
    changed = [i for i, delta in enumerate(deltas) if delta is not None]
    core = tuple(node.members[i] for i in changed)
    if 1 < len(core) < len(node.members) and _hold_together(core, links):
        columns = {id for member in core for id in member.columns}
        inner = Join(core, tuple(c for c in node.conditions if used(c) <= columns))
        outer = tuple(c for c in node.conditions if not used(c) <= columns)
        others = [member for i, member in enumerate(node.members) if i not in changed]
        sum_of_terms = inner_join(inner, [deltas[i] for i in changed], facts)
        return _term(Join((inner, *others), outer), sum_of_terms, others, links, facts)
    olds = [old(member, facts) for member in node.members]
    found: list[Plan] = []
    for i, delta in enumerate(deltas):
        if delta is not None:
            others = [*node.members[:i], *olds[i + 1 :]]
            joined = (_term(node, term, others, links, facts) for term in terms(delta))
            found += [term for term in joined if not is_vacant(term, facts)]
    return Sum(tuple(found)) if len(found) > 1 else found[0]


def _hold_together(members: Sequence[Plan], links: list[set[str]]) -> bool:
    """Tell whether conditions link some members without the help of others."""
    seen, remaining = set(members[0].columns), list(members[1:])
    while remaining:
        following = next((m for m in remaining if _connected(links, seen, m)), None)
        if following is None:
            return False
        seen |= set(following.columns)
        remaining = [member for member in remaining if member is not following]
    return True


def _term(
    node: Join, first: Plan, others: list[Plan], links: list[set[str]], facts: Facts
) -> Join:
    members, seen = [first], set(first.columns)
    bounds = bounds_of(first, facts)
    pairs = _equal_pairs(node) if bounds else []
    while others:
        following = next((m for m in others if _connected(links, seen, m)), others[0])
        others = [member for member in others if member is not following]
        members.append(within(following, _passed_on(pairs, bounds, first, following)))
        seen |= set(following.columns)
    return Join(tuple(members), node.conditions)


def _connected(links: list[set[str]], seen: set[str], member: Plan) -> bool:
    """Tell whether a condition links a member with what was joined before."""
    own = set(member.columns)
    return any(link & seen and link & own and link <= seen | own for link in links)


def _equal_pairs(node: Join) -> list[tuple[str, str]]:
    """Return the columns that a join sets equal, in both orders."""
    found = [pair for condition in node.conditions if (pair := equal_columns(condition))]
    return [both for pair in found for both in (pair, pair[::-1])]


def _passed_on(
    pairs: list[tuple[str, str]], bounds: dict[str, Bounds], first: Plan, member: Plan
) -> dict[str, Bounds]:
    """Return the bounds of a member's columns that are set equal to bounded ones."""
    own = set(member.columns)
    return {
        other: bounds[one]
        for one, other in pairs
        if one in bounds
        and other in own
        and holds_for(bounds[one], type_of(first, one), type_of(member, other))
    }
