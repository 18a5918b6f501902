"""GROUP BY: keys and measures, and a select list that is computed from them."""

from typing import Protocol

from sqlglot import exp

from spark_dynamic.plan.expressions import used
from spark_dynamic.plan.nodes import (
    Aggregate,
    Expression,
    Filter,
    Measure,
    Output,
    Plan,
    Project,
    column,
)
from spark_dynamic.sql.as_written import AS_WRITTEN
from spark_dynamic.sql.dialect import SparkDynamic
from spark_dynamic.sql.measures import is_aggregate, read_measure
from spark_dynamic.sql.refuse import refuse_aggregates, refuse_other_parts
from spark_dynamic.sql.scope import Aliases, Scope
from spark_dynamic.support import NotIncremental

Items = list[tuple[str | None, Expression]]


class Expressions(Protocol):
    """Binds the columns of an expression."""

    def expression(
        self,
        expression: Expression,
        scope: Scope,
        aliases: Aliases | None = None,
    ) -> Expression:
        """Return the expression over columns of the plan."""


class Ids(Protocol):
    """Gives out ids."""

    def fresh(self, name: str | None) -> str:
        """Return an id that nothing else has."""


def group(
    binder: Expressions, ids: Ids, plan: Plan, scope: Scope, select: exp.Select, items: Items
) -> tuple[Plan, list[Expression]]:
    """Return the aggregation of a SELECT, and its items over keys and measures."""
    keys = _keys(binder, ids, scope, select, items)
    if any(not used(key.expression) for key in keys):
        plan, keys = _without_constants(ids, plan, keys)
    groups = _Groups(ids, keys)
    expressions = [groups.over(item) for _, item in items]
    having = select.args.get("having")
    condition = None
    if having is not None:
        aliases = Aliases(items, are_preferred=True)
        condition = groups.over(binder.expression(having.this, scope, aliases))
    grouped: Plan = Aggregate(plan, keys, tuple(groups.measures.values()))
    if condition is not None:
        grouped = Filter(grouped, (condition,))
    return grouped, expressions


def _keys(
    binder: Expressions, ids: Ids, scope: Scope, select: exp.Select, items: Items
) -> tuple[Output, ...]:
    clause = select.args.get("group")
    if clause is None:
        return ()
    refuse_other_parts(clause)
    if clause.args.get("all"):
        expressions = [item for _, item in items if not _aggregates(item)]
        if expressions and not any(used(expression) for expression in expressions):
            raise NotIncremental("SYNTAX_NOT_KNOWN", "GROUP BY ALL of constants")
    else:
        expressions = [_key(binder, scope, key, items) for key in clause.expressions]
    outputs: dict[str, Output] = {}
    for expression in expressions:
        expression = expression.unnest()
        refuse_aggregates(expression, "GROUP BY")
        is_column = isinstance(expression, exp.Column)
        id = expression.name if is_column else ids.fresh("key")
        outputs.setdefault(_text(expression), Output(id, expression))
    return tuple(outputs.values())


def _key(binder: Expressions, scope: Scope, key: Expression, items: Items) -> Expression:
    key = key.unnest()
    if isinstance(key, (exp.Cube, exp.Rollup, exp.GroupingSets)):
        raise NotIncremental("GROUPING_SETS", "")
    if isinstance(key, exp.Tuple):
        raise NotIncremental("SYNTAX_NOT_KNOWN", "several keys in parentheses")
    if isinstance(key, exp.Neg) and isinstance(key.this.unnest(), exp.Literal):
        raise NotIncremental("SYNTAX_NOT_KNOWN", f"GROUP BY {key.sql()}")
    if isinstance(key, exp.Literal) and not key.is_string:
        if not key.name.isdigit() or not 1 <= int(key.name) <= len(items):
            raise NotIncremental("SYNTAX_NOT_KNOWN", f"GROUP BY {key.sql()}")
        return items[int(key.name) - 1][1]
    return binder.expression(key, scope, Aliases(items))


def _without_constants(
    ids: Ids, plan: Plan, keys: tuple[Output, ...]
) -> tuple[Plan, tuple[Output, ...]]:
    """Leave out keys that are the same in all rows; a number would be read as a position.

    If no other key is left, one stays as a column: there is a group only if there are rows.
    """
    varying = tuple(key for key in keys if used(key.expression))
    if varying:
        return plan, varying
    constant = Output(ids.fresh("key"), exp.Boolean(this=True))
    passed = tuple(Output(id, column(id)) for id in plan.columns)
    return Project(plan, (*passed, constant)), (Output(constant.id, column(constant.id)),)


def _aggregates(expression: Expression) -> bool:
    return any(is_aggregate(node) for node in expression.walk())


class _Groups:
    """Turns expressions over rows into expressions over groups."""

    def __init__(self, ids: Ids, keys: tuple[Output, ...]) -> None:
        self._ids = ids
        self._keys = {_text(key.expression): key.id for key in keys}
        self._kinds = {type(key.expression) for key in keys}
        self.measures: dict[str, Measure] = {}

    def over(self, expression: Expression) -> Expression:
        """Replace aggregates by measures and key expressions by keys."""
        result = self._replace(expression.copy())
        known = set(self._keys.values()) | {m.id for m in self.measures.values()}
        strangers = used(result) - known
        if strangers:
            raise NotIncremental("SYNTAX_NOT_KNOWN", "a column that is neither key nor aggregate")
        return result

    def _replace(self, node: Expression) -> Expression:
        """Return a tree in which parts were replaced; it is changed on the way."""
        found = node
        waiting = [node]
        while waiting:
            part = waiting.pop()
            value = self._value(part)
            if value is None:
                waiting += part.iter_expressions(reverse=True)
            elif part is node:
                found = value
            else:
                part.replace(value)
        return found

    def _value(self, node: Expression) -> Expression | None:
        """Return the key or measure that an expression is; None if its parts have to be seen."""
        if type(node.unnest()) in self._kinds:
            key = self._keys.get(_text(node))
            if key is not None:
                return _column(key)
        inner = node.this if isinstance(node, exp.Filter) else node
        if is_aggregate(inner):
            return _column(self._measure(node).id)
        if isinstance(node, exp.Anonymous) and node.name.lower() not in AS_WRITTEN:
            # It might aggregate without our knowing; Spark's plan would show it only as a text.
            raise NotIncremental("SYNTAX_NOT_KNOWN", f"the function {node.name} beside GROUP BY")
        return None

    def _measure(self, node: Expression) -> Measure:
        function, argument = read_measure(node)
        text = f"{function}({_text(argument) if argument is not None else '*'})"
        if text not in self.measures:
            self.measures[text] = Measure(self._ids.fresh(function), function, argument)
        return self.measures[text]


def _column(id: str) -> Expression:
    reference: Expression = column(id)
    return reference


def _text(expression: Expression) -> str:
    while isinstance(expression, exp.Paren):
        expression = expression.this
    return expression.sql(dialect=SparkDynamic)
