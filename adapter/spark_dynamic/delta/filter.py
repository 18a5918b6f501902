"""Filter is linear: what passes of the changes is the change of what passes."""

from spark_dynamic.delta.analysis import terms
from spark_dynamic.plan.nodes import Filter, Plan, Sum


def filter(node: Filter, delta: Plan) -> Plan:
    """Δ(σ R) = σ(ΔR).

    Needs neither state nor old rows.

    >>> from sqlglot import parse_one
    >>> from spark_dynamic.names import TableName
    >>> from spark_dynamic.plan.nodes import Scan, State
    >>> node = Filter(Scan(TableName("shop", "orders"), ()), (parse_one("amount > 1"),))
    >>> filter(node, Scan(TableName("shop", "orders"), (), State.DELTA)).input.state.value
    'delta'
    """
    filtered = tuple(Filter(term, node.conditions) for term in terms(delta))
    return Sum(filtered) if len(filtered) > 1 else filtered[0]
