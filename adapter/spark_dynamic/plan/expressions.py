"""Small questions about expressions."""

from collections.abc import Iterator, Mapping

from sqlglot import exp

from spark_dynamic.plan.nodes import Expression


def used(expression: Expression) -> set[str]:
    """Return the ids of the columns that an expression reads."""
    return {found.name for found in expression.find_all(exp.Column)}


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """Yield the parts of a condition that all have to be true."""
    if isinstance(condition, exp.Paren):
        yield from conjuncts(condition.this)
    elif isinstance(condition, exp.And):
        yield from conjuncts(condition.this)
        yield from conjuncts(condition.expression)
    else:
        yield condition


def substitute(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Return an expression with columns replaced by what they stand for."""

    def change(node: Expression) -> Expression:
        if isinstance(node, exp.Column) and node.name in values:
            value = values[node.name].copy()
            simple = isinstance(value, (exp.Column, exp.Literal, exp.Paren))
            return value if simple else exp.Paren(this=value)
        return node

    return expression.transform(change)


def equal_columns(condition: Expression) -> tuple[str, str] | None:
    """Return the two columns that a condition sets equal, if it is of that form."""
    if (
        isinstance(condition, exp.EQ)
        and isinstance(condition.this, exp.Column)
        and isinstance(condition.expression, exp.Column)
    ):
        return condition.this.name, condition.expression.name
    return None
