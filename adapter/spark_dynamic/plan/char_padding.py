"""Comparisons of `char(n)` columns, with the padding that Spark gives them written out.

Spark pads the shorter side of a comparison with spaces where it sees a column of that type. Such
a column is no longer seen as one behind a function, a cast, or in the storage of a result, so a
rewritten query would compare otherwise. With the padding in its text it does not.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from spark_dynamic.plan.nodes import (
    Aggregate,
    Expression,
    Filter,
    Join,
    Output,
    Plan,
    Project,
    Query,
    UnionAll,
    scans,
    transform,
    walk,
)

_CHAR = re.compile(r"char\((\d+)\)")
_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
)  # fmt: skip


def with_padding(query: Query) -> Query:
    """Return a query that compares as before, also where types of columns are forgotten."""
    lengths = _lengths(query.plan)
    if not lengths:
        return query

    def padded(expression: Expression) -> Expression:
        return expression.transform(lambda node: _compared(node, lengths))

    def outputs(some: tuple[Output, ...]) -> tuple[Output, ...]:
        return tuple(replace(one, expression=padded(one.expression)) for one in some)

    def change(node: Plan) -> Plan:
        match node:
            case Filter() | Join():
                return replace(node, conditions=tuple(map(padded, node.conditions)))
            case Project():
                return replace(node, outputs=outputs(node.outputs))
            case Aggregate():
                measures = tuple(
                    replace(m, argument=m.argument if m.argument is None else padded(m.argument))
                    for m in node.measures
                )
                return replace(node, keys=outputs(node.keys), measures=measures)
        return node

    return replace(query, plan=transform(query.plan, change))


def _lengths(plan: Plan) -> dict[str, int]:
    """Return the length of every column of the type; a union takes it from its first branch."""
    found = {
        field.id: int(match.group(1))
        for scan in scans(plan)
        for field in scan.fields
        if (match := _CHAR.fullmatch(field.type))
    }
    # From the bottom to the top; a column that only gets another id stays what it is.
    for node in reversed(list(walk(plan)) if found else []):
        if isinstance(node, UnionAll):
            first = zip(node.ids, node.branches[0].columns, strict=True)
            found |= {id: found[below] for id, below in first if below in found}
        for output in node.outputs if isinstance(node, Project) else ():
            if isinstance(output.expression, exp.Column) and output.expression.name in found:
                found[output.id] = found[output.expression.name]
    return found


def _compared(node: Expression, lengths: Mapping[str, int]) -> Expression:
    if isinstance(node, _COMPARISONS):
        sides = [_length(side, lengths) for side in (node.this, node.expression)]
        if None in sides or not any(_is_char(s, lengths) for s in (node.this, node.expression)):
            return node
        longest = max(length for length in sides if length is not None)
        return type(node)(
            this=_padded(node.this, lengths, longest),
            expression=_padded(node.expression, lengths, longest),
        )
    if isinstance(node, exp.In) and node.expressions and _is_char(node.this, lengths):
        lists = [_length(one, lengths) for one in node.expressions]
        if None in lists:
            return node
        longest = max(length for length in [_length(node.this, lengths), *lists] if length)
        return exp.In(
            this=_padded(node.this, lengths, longest),
            expressions=[_padded(one, lengths, longest) for one in node.expressions],
        )
    if isinstance(node, exp.Case) and node.this is not None and _is_char(node.this, lengths):
        branches = [
            exp.If(this=exp.EQ(this=node.this.copy(), expression=one.this), true=one.args["true"])
            for one in node.args["ifs"]
        ]
        # What replaces a node is not looked into any further.
        searched = exp.Case(ifs=branches, default=node.args.get("default"))
        return searched.transform(lambda part: _compared(part, lengths))
    return node


def _is_char(side: Expression, lengths: Mapping[str, int]) -> bool:
    side = side.unnest()
    return isinstance(side, exp.Column) and side.name in lengths


def _length(side: Expression, lengths: Mapping[str, int]) -> int | None:
    """Return how long a side is, if Spark pads it: a column of the type, or a text."""
    side = side.unnest()
    if isinstance(side, exp.Literal) and side.is_string:
        return len(side.name)
    return lengths.get(side.name) if isinstance(side, exp.Column) else None


def _padded(side: Expression, lengths: Mapping[str, int], longest: int) -> Expression:
    if _length(side, lengths) == longest:
        return side
    parts = [side.unnest().copy(), exp.Literal.number(longest), exp.Literal.string(" ")]
    return exp.Anonymous(this="rpad", expressions=parts)
