"""Scan: the changes of a source are its change feed, or the difference of two versions."""

from dataclasses import replace

from spark_dynamic.delta.facts import Facts
from spark_dynamic.plan.nodes import Plan, Scan, State


def scan(node: Scan, facts: Facts) -> Plan | None:
    """Δ(R) = R′ − R.

    A source without changes contributes nothing.

    >>> from spark_dynamic.delta.facts import Changes
    >>> from spark_dynamic.names import TableName
    >>> orders = Scan(TableName("shop", "orders"), ())
    >>> scan(orders, {}) is None
    True
    >>> scan(orders, {orders.table: Changes()}).state.value
    'delta'
    """
    return replace(node, state=State.DELTA) if node.table in facts else None
