"""Expressions of a plan as Python functions of a row, with NULL as None."""

import datetime
import math
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp

from fuzz.schemas import NAN, Row
from spark_dynamic.plan.nodes import Expression
from spark_dynamic.sql.dialect import SparkDynamic

Value = Callable[[Row], Any]

COMPARISONS: dict[type[Expression], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
ARITHMETIC: dict[type[Expression], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
}


class Collated(str):
    """A text under the collation UTF8_LCASE; what it is compared with is so as well."""


FUNCTIONS: dict[type[Expression], Callable[[Any], Any]] = {
    exp.Abs: abs,
    exp.Upper: str.upper,
    exp.Lower: str.lower,
    exp.Neg: operator.neg,
    exp.Collate: Collated,
}


def compiled(node: Expression, places: Mapping[str, int]) -> Value:
    """Return an expression as a function of a row, whose columns are at `places`."""
    kind = type(node)
    if kind is exp.Paren:
        return compiled(node.this, places)
    if kind is exp.Column:
        return operator.itemgetter(places[node.name])
    if kind in (exp.Literal, exp.Null, exp.Boolean, exp.Var, exp.Cast):
        return _constant(node)
    if kind in COMPARISONS:
        return _strict(_compare(COMPARISONS[kind]), node.this, node.expression, places)
    if kind in ARITHMETIC:
        return _strict(_calculate(ARITHMETIC[kind]), node.this, node.expression, places)
    if kind is exp.DPipe:
        return _strict(operator.add, node.this, node.expression, places)
    if kind in FUNCTIONS:
        inner, function = compiled(node.this, places), FUNCTIONS[kind]
        return lambda row: None if (v := inner(row)) is None else function(v)
    return _logic(node, places)


def _logic(node: Expression, places: Mapping[str, int]) -> Value:
    match node:
        case exp.And() | exp.Or():
            one, other = compiled(node.this, places), compiled(node.expression, places)
            decides = isinstance(node, exp.Or)

            def connected(row: Row) -> Any:
                values = (one(row), other(row))
                if decides in values:
                    return decides
                return None if None in values else not decides

            return connected
        case exp.Not():
            inner = compiled(node.this, places)
            return lambda row: None if (v := inner(row)) is None else not v
        case exp.Is() if isinstance(node.expression, exp.Null):
            inner = compiled(node.this, places)
            return lambda row: inner(row) is None
        case exp.NullSafeEQ():
            one, other = compiled(node.this, places), compiled(node.expression, places)
            return lambda row: _same(one(row), other(row))
        case exp.Between():
            low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
            high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
            return compiled(exp.And(this=low, expression=high), places)
        case exp.In():
            tests = [exp.EQ(this=node.this.copy(), expression=v.copy()) for v in node.expressions]
            either: Expression = tests[0]
            for test in tests[1:]:
                either = exp.Or(this=either, expression=test)
            return compiled(either, places)
        case exp.Nullif():
            same = exp.EQ(this=node.this.copy(), expression=node.expression.copy())
            value, is_same = compiled(node.this, places), compiled(same, places)
            return lambda row: None if is_same(row) else value(row)
        case exp.Coalesce():
            values = [compiled(v, places) for v in (node.this, *node.expressions)]
            return lambda row: next((v for f in values if (v := f(row)) is not None), None)
        case exp.Case():
            whens = [
                (compiled(when.this, places), compiled(when.args["true"], places))
                for when in node.args["ifs"]
            ]
            default = compiled(node.args.get("default") or exp.Null(), places)
            return lambda row: next((v for c, v in whens if c(row) is True), default)(row)
        case exp.Struct():
            # Pairs of names and values are in the order of their values.
            fields = [
                (part.this.name, compiled(part.expression, places)) for part in node.expressions
            ]
            return lambda row: tuple((name, value(row)) for name, value in fields)
        case exp.Dot():
            struct, field = compiled(node.this, places), node.expression.name
            return lambda row: None if (v := struct(row)) is None else dict(v)[field]
    raise NotImplementedError(repr(node))


def _constant(node: Expression) -> Value:
    value = _constant_value(node)
    return lambda row: value


def _constant_value(node: Expression) -> Any:
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Cast):
        text = node.this.name
        if node.to.is_type("double"):
            return float(text)
        if node.to.is_type("date"):
            return datetime.date.fromisoformat(text)
        return datetime.datetime.fromisoformat(text)
    if isinstance(node, exp.Literal) and node.is_string:
        return node.this
    if node.this.endswith("'"):
        # A bound, which the engine writes as it is.
        bound = sqlglot.parse_one(node.this, dialect=SparkDynamic)
        return bound.this if isinstance(bound, exp.Literal) else _constant_value(bound)
    return Decimal(node.this) if "." in node.this else int(node.this)


def _strict(
    function: Callable[[Any, Any], Any],
    left: Expression,
    right: Expression,
    places: Mapping[str, int],
) -> Value:
    one, other = compiled(left, places), compiled(right, places)

    def call(row: Row) -> Any:
        a, b = one(row), other(row)
        return None if a is None or b is None else function(a, b)

    return call


def _compare(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: test(*map(greatest, _alike(a, b)))


def _calculate(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(*_alike(a, b))


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return _compare(operator.eq)(a, b)


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Numbers are compared as floats if one is a float, texts as a collation of one has it."""
    if isinstance(a, Collated) or isinstance(b, Collated):
        return a.lower(), b.lower()
    if isinstance(a, float) or isinstance(b, float):
        return float(a), float(b)
    return a, b


def greatest(value: Any) -> Any:
    """Order values as SQL does: NaN equals itself and is above all other numbers."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def number(value: Any) -> Any:
    """Return a number to be added up; all NaNs are one."""
    return NAN if isinstance(value, float) and math.isnan(value) else value
