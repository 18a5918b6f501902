"""The shape of a result: groups with an aggregate on top, or rows."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spark_dynamic.plan.expressions import substitute, used
from spark_dynamic.plan.nodes import (
    Aggregate,
    Expression,
    Filter,
    Measure,
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
_COLLATED = re.compile(r"\bcollate\b(?!:)")
# Types in which groups are not found again: Spark groups by maps, but does not compare them.
_NOT_COMPARED = re.compile(r"\bmap<")


@dataclass(frozen=True)
class GroupShape:
    """An aggregate, the columns of the result over it, and which groups are shown.

    A condition may be evaluated only for groups that fulfil those before it, and an output only
    for groups that are shown.
    """

    aggregate: Aggregate
    outputs: tuple[Expression, ...]
    conditions: tuple[Expression, ...]


def group_shape(query: Query) -> GroupShape | None:
    """Return a result as groups, if nothing but filters and projections lies above them."""
    above: list[Filter | Project] = []
    node: Plan = query.plan
    while isinstance(node, Filter | Project):
        above.append(node)
        node = node.input
    if not isinstance(node, Aggregate):
        return None
    values: dict[str, Expression] = {id: column(id) for id in node.columns}
    conditions: list[Expression] = []
    for one in reversed(above):
        if isinstance(one, Filter):
            conditions += [substitute(condition, values) for condition in one.conditions]
        else:
            values = {o.id: substitute(o.expression, values) for o in one.outputs}
    outputs = tuple(substitute(column(id), values) for id in query.columns)
    return GroupShape(node, outputs, tuple(conditions))


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
            decides = inner or measure.id in deciding
            if decides and not is_exact(measure, types[measure.id]):
                raise NotIncremental("FLOAT_DECIDES", f"{measure.function}(…)")


def is_exact(measure: Measure, type: MeasureType) -> bool:
    """Tell whether an aggregate is the same whenever it is computed, to the last digit."""
    if measure.function not in ("sum", "avg") or not is_float(type.result):
        return True
    return measure.function == "avg" and _adds_exactly(type.argument)


def _adds_exactly(type: str) -> bool:
    """Tell whether Spark's averages of a type are exact: it adds up whole numbers as doubles.

    These are exact below 2^53, which a few numbers of the largest type may exceed.
    """
    return is_whole(type) and type != "bigint"


def check_collations(query: Query, types: Mapping[str, MeasureType]) -> None:
    """Refuse groups and extremes of texts with a collation, also below other operators.

    Of equal texts any one is shown: computed again, a row might not be found again.

    >>> from spark_dynamic.plan.nodes import Aggregate, Output, Scan
    >>> from spark_dynamic.names import TableName
    >>> groups = Aggregate(Scan(TableName("s", "t"), ()), (Output("name", column("name")),), ())
    >>> query = Query(Filter(groups, (column("shown"),)), ("name",), ("name",))
    >>> check_collations(query, {"name": MeasureType("", "string")})
    >>> check_collations(query, {"name": MeasureType("", "string collate UNICODE_CI")})
    Traceback (most recent call last):
    ...
    spark_dynamic.support.NotIncremental: TYPE_NOT_STORED: The query aggregates, or groups by, \
values of type string collate UNICODE_CI, which Delta cannot store and find again.
    """
    for node in walk(query.plan):
        for id in node.columns if isinstance(node, Aggregate) else ():
            if _COLLATED.search(types[id].result):
                raise NotIncremental("TYPE_NOT_STORED", types[id].result)


def check_stored(shape: GroupShape, types: Mapping[str, MeasureType]) -> None:
    """Refuse aggregates and keys that cannot be kept per group, even if the result shows neither.

    >>> from spark_dynamic.plan.nodes import Aggregate, Measure, Scan
    >>> from spark_dynamic.names import TableName
    >>> last = Measure("last", "max", None)
    >>> shape = GroupShape(Aggregate(Scan(TableName("s", "t"), ()), (), (last,)), (), ())
    >>> check_stored(shape, {"last": MeasureType("", "struct<waited:interval day,id:int>")})
    Traceback (most recent call last):
    ...
    spark_dynamic.support.NotIncremental: TYPE_NOT_STORED: The query aggregates, or groups by, \
values of type struct<waited:interval day,id:int>, which Delta cannot store and find again.
    """
    for id in shape.aggregate.columns:
        result = types[id].result
        if _NOT_STORED.search(result) or _NOT_COMPARED.search(result):
            raise NotIncremental("TYPE_NOT_STORED", result)
