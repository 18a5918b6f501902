"""Projection is linear: rows are computed one by one, each with its weight."""

from spark_dynamic.delta.analysis import terms
from spark_dynamic.plan.nodes import Plan, Project, Sum


def project(node: Project, delta: Plan) -> Plan:
    """Δ(π R) = π(ΔR).

    Bags keep duplicates, so nothing has to be counted.

    >>> from spark_dynamic.names import TableName
    >>> from spark_dynamic.plan.nodes import Scan, State
    >>> node = Project(Scan(TableName("shop", "orders"), ()), ())
    >>> project(node, Scan(TableName("shop", "orders"), (), State.DELTA)).input.state.value
    'delta'
    """
    projected = tuple(Project(term, node.outputs) for term in terms(delta))
    return Sum(projected) if len(projected) > 1 else projected[0]
