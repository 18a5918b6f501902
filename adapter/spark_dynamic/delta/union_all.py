"""UNION ALL is linear in every branch."""

from collections.abc import Sequence
from dataclasses import replace

from spark_dynamic.delta.analysis import terms
from spark_dynamic.plan.nodes import Plan, Sum, UnionAll


def union_all(node: UnionAll, deltas: Sequence[Plan]) -> Plan:
    """Δ(R ∪ S) = ΔR ∪ ΔS.

    Branches without changes are left out; the union's types stay, since a branch alone may
    have narrower ones.

    >>> from spark_dynamic.names import TableName
    >>> from spark_dynamic.plan.nodes import Scan
    >>> old, new = (Scan(TableName("shop", name), ()) for name in ("old", "new"))
    >>> len(union_all(UnionAll((old, new), ()), [new]).branches)
    1
    """
    changed = [term for delta in deltas for term in terms(delta)]
    branches = tuple(replace(node, branches=(term,)) for term in changed)
    return Sum(branches) if len(branches) > 1 else branches[0]
