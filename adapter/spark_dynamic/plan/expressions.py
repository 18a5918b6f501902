"""Small questions about expressions."""

from collections.abc import Iterator, Mapping

from sqlglot import exp

from spark_dynamic.plan.nodes import Expression
from spark_dynamic.support import NotIncremental

_LARGEST = 20_000


def used(expression: Expression) -> set[str]:
    """Return the ids of the columns that an expression reads."""
    return {found.name for found in expression.find_all(exp.Column)}


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """Yield the parts of a condition that all have to be true."""
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Paren):
            waiting.append(part.this)
        elif isinstance(part, exp.And):
            waiting += (part.expression, part.this)
        else:
            yield part


def substitute(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Return an expression with columns replaced by what they stand for.

    Raises NotIncremental if it becomes too large: where names stand for others again and again,
    it may double each time.
    """
    size = 0

    def change(node: Expression) -> Expression:
        nonlocal size
        if isinstance(node, exp.Column) and node.name in values:
            value = values[node.name]
            if isinstance(value, (exp.Column, exp.Literal)):
                return value.copy()
            size += sum(1 for _ in value.walk())
            refuse_large(size)
            return value.copy() if isinstance(value, exp.Paren) else exp.Paren(this=value.copy())
        return node

    return expression.transform(change)


def refuse_large(size: int) -> None:
    """Refuse an expression that substitution has made too large."""
    if size > _LARGEST:
        raise NotIncremental("DELTA_TOO_LARGE", f"expressions of more than {_LARGEST:,} parts")


def equal_columns(condition: Expression) -> tuple[str, str] | None:
    """Return the two columns that a condition sets equal, if it is of that form."""
    if (
        isinstance(condition, exp.EQ)
        and isinstance(condition.this, exp.Column)
        and isinstance(condition.expression, exp.Column)
    ):
        return condition.this.name, condition.expression.name
    return None
