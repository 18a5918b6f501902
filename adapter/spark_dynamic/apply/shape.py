"""The shape of a result: groups with an aggregate on top, or rows."""

from collections.abc import Mapping
from dataclasses import dataclass

from spark_dynamic.plan.expressions import substitute, used
from spark_dynamic.plan.nodes import (
    Aggregate,
    Expression,
    Filter,
    Plan,
    Project,
    Query,
    column,
    walk,
)
from spark_dynamic.plan.types import MeasureType, is_float, is_whole
from spark_dynamic.support import NotIncremental


@dataclass(frozen=True)
class GroupShape:
    """An aggregate, the columns of the result over it, and which groups are shown."""

    aggregate: Aggregate
    outputs: tuple[Expression, ...]
    conditions: tuple[Expression, ...]


def group_shape(query: Query) -> GroupShape | None:
    """Return a result as groups, if nothing but filters and projections lies above them."""
    outputs: tuple[Expression, ...] = tuple(column(id) for id in query.columns)
    conditions: tuple[Expression, ...] = ()
    node: Plan = query.plan
    while True:
        match node:
            case Aggregate():
                return GroupShape(node, outputs, conditions)
            case Filter():
                conditions = (*conditions, node.condition)
                node = node.input
            case Project():
                values = {output.id: output.expression for output in node.outputs}
                outputs = tuple(substitute(one, values) for one in outputs)
                conditions = tuple(substitute(one, values) for one in conditions)
                node = node.input
            case _:
                return None


def check_floats(query: Query, types: Mapping[str, MeasureType]) -> None:
    """Refuse floating-point aggregates that decide which rows there are.

    Their last digits depend on the order of rows: recomputed, a row might not be found again.
    """
    shape = group_shape(query)
    deciding = {id for condition in (shape.conditions if shape else ()) for id in used(condition)}
    for node in walk(query.plan):
        if not isinstance(node, Aggregate):
            continue
        inner = shape is None or node is not shape.aggregate
        for measure in node.measures:
            known = types[measure.id]
            inexact = measure.function in ("sum", "avg") and is_float(known.result)
            exact = measure.function == "avg" and is_whole(known.argument)
            if inexact and not exact and (inner or measure.id in deciding):
                raise NotIncremental("FLOAT_DECIDES", f"{measure.function}(…)")
