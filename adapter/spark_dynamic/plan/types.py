"""Types, as Spark gives them, for the nodes whose law depends on them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from spark_dynamic.plan.nodes import Aggregate, Output, Plan, Project, UnionAll, transform, walk
from spark_dynamic.warehouse import Column

Describe = Callable[[Plan], tuple[Column, ...]]

_WHOLE = {"tinyint", "smallint", "int", "bigint"}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True)
class MeasureType:
    """The types of an aggregate function's argument and result; a key has no argument."""

    argument: str
    result: str


def is_whole(type: str) -> bool:
    """Tell whether a type holds whole numbers."""
    return type in _WHOLE


def is_decimal(type: str) -> bool:
    """Tell whether a type holds decimals."""
    return _DECIMAL.fullmatch(type) is not None


def is_ordered(type: str) -> bool:
    """Tell whether values of a type lie between bounds; NaN has no place among them."""
    return is_whole(type) or is_decimal(type) or type in ("string", "date", "timestamp")


def is_float(type: str) -> bool:
    """Tell whether arithmetic of a type depends on the order of its operands."""
    return type in ("float", "double")


def with_union_types(plan: Plan, describe: Describe) -> Plan:
    """Let every union know its types: one changed branch alone would not show them."""

    def change(node: Plan) -> Plan:
        if not isinstance(node, UnionAll):
            return node
        return replace(node, types=tuple(column.type for column in describe(node)))

    return transform(plan, change)


def measure_types(plan: Plan, describe: Describe) -> Mapping[str, MeasureType]:
    """Return the types of every measure and key of a plan, by its id."""
    found: dict[str, MeasureType] = {}
    for node in walk(plan):
        if not isinstance(node, Aggregate) or not node.columns:
            continue
        with_arguments = [m for m in node.measures if m.argument is not None]
        arguments: dict[str, str] = {}
        if with_arguments:
            outputs = tuple(
                Output(m.id, m.argument) for m in with_arguments if m.argument is not None
            )
            described = describe(Project(node.input, outputs))
            arguments = dict(
                zip((o.id for o in outputs), (c.type for c in described), strict=True)
            )
        for id, result in zip(node.columns, describe(node), strict=True):
            found[id] = MeasureType(arguments.get(id, ""), result.type)
    return found
