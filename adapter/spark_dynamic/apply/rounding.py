"""How far rounding may move the columns of groups with floating-point sums.

The last digits of such a sum depend on the order of its summands. The error grows with the
absolute values of the summands: where large ones cancel, the sum may be mostly error. A column
over such sums moves as far as it does when each of them moves by its error, so whatever is
rounded, cast or divided afterwards is covered as well.
"""

from dataclasses import dataclass
from typing import Final

from spark_dynamic.apply.groups import Groups
from spark_dynamic.apply.shape import is_exact
from spark_dynamic.names import quote
from spark_dynamic.plan.expressions import used
from spark_dynamic.plan.types import digits, is_float
from spark_dynamic.sql.write import indented, on_one_line

# Relative to the sum of the absolute values of all summands.
TOLERANCE: Final = 1e-9


@dataclass(frozen=True)
class Rounding:
    """The columns that rounding may move, by position, and a query that says how far.

    The query has the columns c0, c1 and so on of the result, and n0, n1 and so on for those.
    """

    columns: frozenset[int]
    query: str


def rounding(groups: Groups, rows: str) -> Rounding | None:
    """Return how far rounding may move groups of some rows; None if their sums are exact."""
    errors = _errors(groups)
    moved = {
        i: column.stored_as
        for i, (output, column) in enumerate(
            zip(groups.shape.outputs, groups.columns, strict=True)
        )
        if used(output) & errors.keys() and (is_float(column.type) or digits(column.type))
    }
    if not moved:
        return None
    keys = {id: quote(id) for id in groups.keys}
    state = {stored.name: quote(stored.name) for stored in groups.stored}
    values = groups.written(keys, state)
    steps = [
        groups.written(keys, state, {id: f"{sign}{_error(id)}"})
        for id in errors
        for sign in ("", "-")
    ]
    shown = [f"{values[c.stored_as]} AS c{i}" for i, c in enumerate(groups.columns)]
    shown += [
        f"{' + '.join(_distance(values[name], step[name]) for step in steps)} AS n{i}"
        for i, name in moved.items()
    ]
    inner = groups.recomputed(rows, [f"{sql} AS {_error(id)}" for id, sql in errors.items()])
    return Rounding(frozenset(moved), f"SELECT {', '.join(shown)} FROM {indented(inner)}")


def _errors(groups: Groups) -> dict[str, str]:
    """Return the errors of all inexact measures, by their ids."""
    return {
        measure.id: f"{TOLERANCE!r}D * {measure.function}(abs(double({on_one_line(argument)})))"
        for measure in groups.shape.aggregate.measures
        if not is_exact(measure, groups.types[measure.id])
        and (argument := measure.argument) is not None
    }


def _error(id: str) -> str:
    return quote(f"__dyn_error_{id}")


def _distance(one: str, other: str) -> str:
    """Return how far apart two numbers are; nothing that is infinite or no number excuses."""
    apart = f"abs(double({one}) - double({other}))"
    return f"IF({apart} < double('infinity'), {apart}, 0D)"
