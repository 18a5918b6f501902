"""Aggregate below the root: the groups that changed rows belong to, before and after."""

from spark_dynamic.delta.facts import Facts
from spark_dynamic.delta.project import project
from spark_dynamic.delta.states import old
from spark_dynamic.plan.nodes import (
    TOUCHED,
    Aggregate,
    Negate,
    Output,
    Plan,
    Project,
    Restrict,
    Sum,
)


def aggregate(node: Aggregate, delta: Plan, facts: Facts) -> Plan:
    """Δ(γ R) = γ(R′ ⋉ K) − γ(R ⋉ K), with K the keys of ΔR.

    At the root the stored result stands for γ(R), see `apply/groups.py`; here both sides are
    computed, for the touched groups only. NULL is a key like any other. Without keys there is
    one group, which is there also when no row is.

    >>> from spark_dynamic.delta.facts import Changes
    >>> from spark_dynamic.names import TableName
    >>> from spark_dynamic.plan.nodes import Scan, State
    >>> orders = Scan(TableName("shop", "orders"), ())
    >>> changed = Scan(orders.table, (), State.DELTA)
    >>> facts = {orders.table: Changes()}
    >>> found = aggregate(Aggregate(orders, (), ()), changed, facts)
    >>> [type(term).__name__ for term in found.terms]
    ['Aggregate', 'Negate']
    """
    after, before = node.input, old(node.input, facts)
    if node.keys:
        among = touched_keys(node, delta)
        keys = tuple(key.expression for key in node.keys)
        after, before = Restrict(after, keys, among), Restrict(before, keys, among)
    return Sum((node.with_inputs((after,)), Negate(node.with_inputs((before,)))))


def touched_keys(node: Aggregate, delta: Plan) -> Plan:
    """Return the keys of all changed rows, under names that nothing else has."""
    outputs = tuple(Output(f"{TOUCHED}{key.id}", key.expression) for key in node.keys)
    return project(Project(node.input, outputs), delta)
