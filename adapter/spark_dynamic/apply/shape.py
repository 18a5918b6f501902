"""The shape of a result: groups with an aggregate on top, or rows."""

import re
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

# Types of which Delta stores no column, nor a struct with a field; before a colon it is a name.
_NOT_STORED = re.compile(r"\b(interval|void|collate)\b(?!:)|\btime\(")


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


def check_stored(shape: GroupShape, types: Mapping[str, MeasureType]) -> None:
    """Refuse aggregates that Delta cannot store per group, though the result does not show them.

    >>> from spark_dynamic.plan.nodes import Aggregate, Measure, Scan
    >>> from spark_dynamic.names import TableName
    >>> last = Measure("last", "max", None)
    >>> shape = GroupShape(Aggregate(Scan(TableName("s", "t"), ()), (), (last,)), (), ())
    >>> check_stored(shape, {"last": MeasureType("", "struct<waited:interval day,id:int>")})
    Traceback (most recent call last):
    ...
    spark_dynamic.support.NotIncremental: TYPE_NOT_STORED: The query has an aggregate of type \
struct<waited:interval day,id:int>, which Delta cannot store for the next refresh.
    """
    for measure in shape.aggregate.measures:
        result = types[measure.id].result
        if _NOT_STORED.search(result):
            raise NotIncremental("TYPE_NOT_STORED", result)
