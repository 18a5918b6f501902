"""The delta of a plan, composed bottom-up from the laws of its operators."""

from spark_dynamic.delta.aggregate import aggregate
from spark_dynamic.delta.facts import Facts
from spark_dynamic.delta.filter import filter
from spark_dynamic.delta.inner_join import inner_join
from spark_dynamic.delta.project import project
from spark_dynamic.delta.scan import scan
from spark_dynamic.delta.union_all import union_all
from spark_dynamic.plan.nodes import Aggregate, Filter, Join, Plan, Project, Scan, UnionAll


def differentiate(plan: Plan, facts: Facts) -> Plan | None:
    """Return the changes of a plan's rows as a plan; None if nothing can have changed."""
    if isinstance(plan, Scan):
        return scan(plan, facts)
    deltas = [differentiate(child, facts) for child in plan.inputs]
    changed = [delta for delta in deltas if delta is not None]
    if not changed:
        return None
    match plan:
        case Filter():
            return filter(plan, changed[0])
        case Project():
            return project(plan, changed[0])
        case UnionAll():
            return union_all(plan, changed)
        case Join():
            return inner_join(plan, deltas, facts)
        case Aggregate():
            return aggregate(plan, changed[0], facts)
    raise TypeError(type(plan).__name__)
