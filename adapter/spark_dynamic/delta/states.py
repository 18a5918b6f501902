"""A plan over the old states of its sources."""

from dataclasses import replace

from spark_dynamic.delta.facts import Facts
from spark_dynamic.plan.nodes import Plan, Scan, State, transform


def old(plan: Plan, facts: Facts) -> Plan:
    """Return a plan as it was before the changes; an unchanged source is as it is now."""

    def change(node: Plan) -> Plan:
        if isinstance(node, Scan) and node.table in facts:
            return replace(node, state=State.OLD)
        return node

    return transform(plan, change)
