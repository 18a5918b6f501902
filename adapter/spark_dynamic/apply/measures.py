"""What is stored of an aggregate function per group, and how it follows the changes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from spark_dynamic.plan.nodes import Expression, Measure, column
from spark_dynamic.plan.types import MeasureType, is_decimal, is_whole
from spark_dynamic.sql.write import WEIGHT

COUNT = "__dyn_count"
# How many more rows with an extreme's value a group has than before.
NET = "__dyn_net"
# An average of whole numbers needs their exact sum, which may exceed a bigint.
_WHOLE_SUM = "decimal(29,0)"
# The sum of wider decimals may overflow. That is NULL without ANSI mode, which no sum comes back
# from, so it is refused while it is written.
_SAFE_DIGITS = 28
# The sum of two sums of wider decimals has 39 digits, and Spark rounds it to fewer decimals; but
# not to fewer than so many.
_ADDED_DIGITS, _ADDED_DECIMALS = 27, 6
# An average has four decimals more than its values. A sum of so many digits, divided by a count,
# has just as many in Spark, but never less than six; of wider values it has fewer.
_AVG_DIGITS, _DIVIDEND_DIGITS = 24, 34
_DIVIDEND_DECIMALS = 2


class Follows(Enum):
    """How a stored value follows the changes of its group."""

    ADDED = "added"
    LEAST = "least"
    GREATEST = "greatest"
    RECOMPUTED = "recomputed"


@dataclass(frozen=True)
class Stored:
    """One stored value: over rows, over changes, and as a column."""

    name: str
    type: str
    follows: Follows
    over_rows: str
    over_changes: str = ""
    over_deleted: str = ""
    # Of an extreme: what it is one of.
    argument: str = ""
    can_overflow: bool = False


@dataclass(frozen=True)
class MeasureState:
    """The stored values of a measure, and its result from them."""

    stored: tuple[Stored, ...]
    result: Expression


def group_count() -> Stored:
    """Return the number of rows of a group: it is gone when that is 0."""
    return Stored(COUNT, "bigint", Follows.ADDED, "count(*)", f"coalesce(sum({WEIGHT}), 0)")


def measure_state(
    number: int, measure: Measure, types: MeasureType, write: Callable[[Expression], str]
) -> MeasureState:
    """Choose how a measure is stored; what cannot be followed exactly is recomputed."""
    if measure.argument is None:
        return MeasureState((), column(COUNT))
    argument = write(measure.argument)
    match measure.function:
        case "count":
            counted = _counted(number, argument)
            return MeasureState((counted,), column(counted.name))
        case "min" | "max":
            return _extremum(number, measure.function, argument, types)
        case "sum" if types.result == "bigint" or _adds_exactly(types.argument):
            return _sum(number, argument, types)
        case "avg" if is_whole(types.argument) or _digits(types.argument) <= _AVG_DIGITS:
            return _average(number, argument, types)
    over_rows = f"{measure.function}({argument})"
    stored = Stored(f"__dyn_value_{number}", types.result, Follows.RECOMPUTED, over_rows)
    return MeasureState((stored,), column(stored.name))


def _counted(number: int, argument: str) -> Stored:
    return Stored(
        f"__dyn_count_{number}",
        "bigint",
        Follows.ADDED,
        f"count({argument})",
        f"coalesce(sum(IF(({argument}) IS NULL, 0, {WEIGHT})), 0)",
    )


def _added(number: int, argument: str, type: str, can_overflow: bool = False) -> Stored:
    changed = f"IF({WEIGHT} > 0, {argument}, -({argument}))"

    def total(summand: str) -> str:
        # Without a value the sum is 0; if it is NULL with one, it has overflowed.
        return f"CAST(IF(count({argument}) = 0, 0, sum({summand})) AS {type})"

    return Stored(
        f"__dyn_sum_{number}",
        type,
        Follows.ADDED,
        total(argument),
        total(changed),
        can_overflow=can_overflow,
    )


def _sum(number: int, argument: str, types: MeasureType) -> MeasureState:
    # As it is, the smallest number of a narrow type has no opposite.
    summand = f"CAST({argument} AS bigint)" if types.result == "bigint" else argument
    can_overflow = is_decimal(types.argument) and _digits(types.argument) > _SAFE_DIGITS
    total = _added(number, summand, types.result, can_overflow)
    counted = _counted(number, argument)
    return MeasureState((total, counted), _unless_none(counted.name, column(total.name)))


def _average(number: int, argument: str, types: MeasureType) -> MeasureState:
    counted = _counted(number, argument)
    if is_whole(types.argument):
        total = _added(number, f"CAST({argument} AS decimal(19,0))", _WHOLE_SUM)
        dividend: Expression = exp.cast(column(total.name), "double")
        quotient: Expression = exp.Div(this=dividend, expression=column(counted.name))
    else:
        total = _added(number, argument, _sum_type(types.argument))
        quotient = _decimal_quotient(column(total.name), column(counted.name), types)
    return MeasureState((total, counted), _unless_none(counted.name, quotient))


def _decimal_quotient(total: Expression, count: Expression, types: MeasureType) -> Expression:
    """Return a sum divided by a count, rounded once, to the decimals of an average.

    With further decimals it would be rounded to those first: 0.000049995 to 0.00005, to 0.0001.
    A sum with too few decimals for that is divided by a power of ten on the way.
    """
    _, scale = _precision_and_scale(types.argument)
    shift = max(0, _DIVIDEND_DECIMALS - scale)
    if shift:
        tenth = exp.Literal.number("0." + "1".rjust(shift, "0"))
        total = exp.Mul(this=total, expression=tenth)
    dividend = _cast(total, f"decimal({_DIVIDEND_DIGITS},{scale + shift})")
    quotient: Expression = exp.Div(this=dividend, expression=count)
    if shift:
        quotient = exp.Mul(this=exp.Paren(this=quotient), expression=exp.Literal.number(10**shift))
    return _cast(quotient, types.result)


def _cast(value: Expression, type: str) -> Expression:
    return exp.cast(value, exp.DataType.build(type, dialect="spark"))


def _adds_exactly(type: str) -> bool:
    """Tell whether a sum of sums of a type is exact, or fails."""
    if not is_decimal(type):
        return False
    digits, decimals = _precision_and_scale(type)
    return digits <= _ADDED_DIGITS or decimals <= _ADDED_DECIMALS


def _digits(type: str) -> int:
    """Return the precision of a decimal; more than any has if it is none."""
    return _precision_and_scale(type)[0] if is_decimal(type) else 99


def _precision_and_scale(type: str) -> tuple[int, int]:
    precision, scale = map(int, re.findall(r"\d+", type))
    return precision, scale


def _sum_type(type: str) -> str:
    """Return the type in which Spark adds up decimals.

    >>> _sum_type("decimal(10,2)")
    'decimal(20,2)'
    """
    precision, scale = _precision_and_scale(type)
    return f"decimal({min(38, precision + 10)},{scale})"


def _extremum(number: int, function: str, argument: str, types: MeasureType) -> MeasureState:
    stored = Stored(
        f"__dyn_{function}_{number}",
        types.result,
        Follows.LEAST if function == "min" else Follows.GREATEST,
        f"{function}({argument})",
        f"{function}(IF({NET} > 0, {argument}, NULL))",
        f"{function}(IF({NET} < 0, {argument}, NULL))",
        argument,
    )
    return MeasureState((stored,), column(stored.name))


def _unless_none(counted: str, value: Expression) -> Expression:
    """Return a value, or NULL if the group has no value to aggregate."""
    nothing = exp.EQ(this=column(counted), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=nothing, true=exp.Null())], default=value)
