"""Types, as Spark gives them, for the nodes whose law depends on them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from spark_dynamic.plan.nodes import Aggregate, Output, Plan, Project, UnionAll, transform, walk
from spark_dynamic.warehouse import Column

Describe = Callable[[Plan], tuple[Column, ...]]

# Each with the number of digits that Spark gives it beside decimals.
_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
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


def digits(type: str) -> tuple[int, int] | None:
    """Return how many digits a number has before and after its point; None if it is not exact."""
    if found := _DECIMAL.fullmatch(type):
        precision, scale = map(int, found.groups())
        return precision - scale, scale
    return (_WHOLE[type], 0) if type in _WHOLE else None


def is_ordered(type: str) -> bool:
    """Tell whether values of a type lie between bounds; NaN has no place among them."""
    return is_whole(type) or is_decimal(type) or type in ("string", "date", "timestamp")


def is_exact(type: str) -> bool:
    """Tell whether values of a type are equal only if they are the same; 0.0 and -0.0 are not."""
    return is_ordered(type) or type in ("boolean", "binary", "timestamp_ntz")


def is_float(type: str) -> bool:
    """Tell whether arithmetic of a type depends on the order of its operands."""
    return type in ("float", "double")


def with_union_types(plan: Plan, describe: Describe) -> Plan:
    """Let every union know its types: one changed branch alone would not show them."""

    def change(node: Plan) -> Plan:
        return _typed(node, describe) if isinstance(node, UnionAll) else node

    return transform(plan, change)


def _typed(chain: UnionAll, describe: Describe) -> Plan:
    """Return a chain of unions as few unions, each of which has all its branches at once.

    Branch after branch, Spark gives a chain types that both sides fit in, and casts values to
    them: a date that meets first timestamps and then texts is a text with a time. So a union ends
    where the types change. They only ever become wider, so where two beginnings of a chain have
    the same types, all between them have.
    """

    def types_of(number: int) -> tuple[str, ...]:
        beginning = replace(chain, branches=chain.branches[:number], types=())
        return tuple(column.type for column in describe(beginning))

    last = len(chain.branches)
    found = {number: types_of(number) for number in {min(2, last), last}}
    waiting = [(min(2, last), last)]
    while waiting:
        low, high = waiting.pop()
        middle = (low + high) // 2
        if found[low] != found[high] and low < middle:
            found[middle] = types_of(middle)
            waiting += [(low, middle), (middle, high)]
    branches: tuple[Plan, ...] = ()
    place, union = 0, chain
    ends = sorted(found)
    for number, following in zip(ends, [*ends[1:], None], strict=True):
        if following is not None and found[number] == found[following]:
            continue
        branches += chain.branches[place:number]
        # Numbers stand at the end of ids, and are all different.
        ids = tuple(f"first_{number}_{id}" for id in chain.ids) if number < last else chain.ids
        union = UnionAll(branches, ids, found[number])
        branches, place = (union,), number
    return union


def typed_nodes(plan: Plan) -> list[Plan]:
    """Return the nodes whose types matter: each aggregate, after its arguments if it has any."""
    found: list[Plan] = []
    for node in walk(plan):
        if not isinstance(node, Aggregate) or not node.columns:
            continue
        arguments = tuple(
            Output(measure.id, measure.argument)
            for measure in node.measures
            if measure.argument is not None
        )
        found += [Project(node.input, arguments), node] if arguments else [node]
    return found


def measure_types(
    nodes: Sequence[Plan], described: Sequence[tuple[Column, ...]]
) -> Mapping[str, MeasureType]:
    """Return the types of every measure and key by its id, from what Spark said of the nodes."""
    found: dict[str, MeasureType] = {}
    arguments: dict[str, str] = {}
    for node, columns in zip(nodes, described, strict=True):
        types = dict(zip(node.columns, (column.type for column in columns), strict=True))
        if isinstance(node, Aggregate):
            found |= {id: MeasureType(arguments.get(id, ""), types[id]) for id in types}
        else:
            arguments = types
    return found
