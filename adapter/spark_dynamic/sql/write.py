"""From a plan to SQL: nested selects, with a weight column wherever rows are weighted."""

import math
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from spark_dynamic.names import TableName, quote
from spark_dynamic.plan.expressions import substitute, used
from spark_dynamic.plan.nodes import (
    Aggregate,
    Expression,
    Filter,
    Join,
    Measure,
    Negate,
    Plan,
    Project,
    Restrict,
    Scan,
    State,
    Sum,
    UnionAll,
    column,
)
from spark_dynamic.sql.dialect import SparkDynamic
from spark_dynamic.support import NotIncremental

WEIGHT = "__dyn_weight"
# Spark plans a longer statement for minutes.
LONGEST = 200_000

# Where these stand, a column's own name could be taken for something else.
_BINDING = (exp.Lambda, exp.Dot)
# Functions that are called without parentheses.
_FUNCTIONS = {
    "current_catalog", "current_database", "current_date", "current_path", "current_schema",
    "current_time", "current_timestamp", "current_timezone", "current_user", "grouping__id",
    "localtime", "localtimestamp", "now", "session_user", "user",
}  # fmt: skip


class Relation(NamedTuple):
    """Something that rows can be selected from; weighted if it has a weight column."""

    sql: str
    is_weighted: bool = False


class Sources(Protocol):
    """Where the states of each source are found."""

    def relation(self, table: TableName, state: State) -> Relation:
        """Return what a scan of a source reads."""


class Written(NamedTuple):
    """A select."""

    sql: str
    is_weighted: bool


class Rows(NamedTuple):
    """What stands after FROM: rows before a select list has been written for them."""

    body: str
    where: tuple[str, ...] = ()
    # The factors of the weight; none if rows are not weighted.
    weights: tuple[str, ...] = ()
    # What columns of the plan are called here, if not by their ids.
    names: Mapping[str, Expression] = {}


class Writer:
    """Writes plans over given sources.

    Raises NotIncremental as soon as a text becomes longer than the longest one.
    """

    def __init__(
        self,
        sources: Sources,
        dialect: type[Dialect] = SparkDynamic,
        longest: float = math.inf,
    ) -> None:
        self._sources = sources
        self._dialect = dialect
        self._longest = longest
        self._quote = quote if dialect is SparkDynamic else _double_quote
        # By identity; what was written is kept with its text, so that nothing takes its place.
        self._known: dict[int, tuple[Expression, str]] = {}
        self._nested_plans: dict[int, tuple[Plan, Rows]] = {}
        self._used_columns: dict[int, tuple[Expression, set[str]]] = {}
        self._scan_names: dict[int, tuple[Scan, Mapping[str, Expression]]] = {}
        self._weighted_plans: dict[int, tuple[Plan, bool]] = {}

    def weighted(self, plan: Plan) -> str:
        """Return a plan's rows with their weights; 1 if nothing says otherwise."""
        return self._select(plan, 1)

    def select(self, plan: Plan) -> Written:
        """Return a plan as a select, with weights if its rows have any."""
        is_weighted = self._is_weighted(plan)
        return Written(self._select(plan, 1 if is_weighted else 0), is_weighted)

    def expression(self, expression: Expression) -> str:
        """Return an expression over the columns of a plan; one that recurs is written once."""
        known = self._known.get(id(expression))
        if known is None:
            sql = on_one_line(expression, self._dialect)
            known = self._known[id(expression)] = (expression, sql)
        return known[1]

    def column(self, id: str) -> str:
        """Return a column of a plan."""
        return self._quote(id)

    def measure(self, measure: Measure) -> str:
        """Return an aggregate function over rows."""
        return self._measure(measure, {})

    def _is_weighted(self, plan: Plan) -> bool:
        known = self._weighted_plans.get(id(plan))
        if known is None:
            known = self._weighted_plans[id(plan)] = (plan, self._has_weights(plan))
        return known[1]

    def _has_weights(self, plan: Plan) -> bool:
        match plan:
            case Scan():
                return self._sources.relation(plan.table, plan.state).is_weighted
            case Aggregate():
                return False
            case Sum() | Negate():
                return True
        return any(map(self._is_weighted, plan.inputs))

    def _select(self, plan: Plan, factor: int, order: tuple[str, ...] = ()) -> str:
        """Write a plan; its weights times a factor of 1 or -1, or without weights if it is 0."""
        sql = self._written(plan, factor, order)
        self._check_length(len(sql))
        return sql

    def _check_length(self, length: int) -> None:
        """Stop early: an aggregate over another one doubles the text, and that again and again."""
        if length > self._longest:
            raise NotIncremental(
                "DELTA_TOO_LARGE", f"statements of {length:,} characters and more"
            )

    def _written(self, plan: Plan, factor: int, order: tuple[str, ...]) -> str:
        match plan:
            case Project() if not _is_renaming(plan):
                rows = self._rows(plan.input, *(output.expression for output in plan.outputs))
                columns = [self._named(o.expression, o.id, rows.names) for o in plan.outputs]
                return self._from(columns, rows, factor)
            case UnionAll():
                return self._union(plan, factor)
            case Aggregate():
                return self._aggregate(plan, factor)
            case Sum():
                return self._sum(plan, factor)
            case Negate():
                return self._select(plan.input, -factor)
        rows = self._rows(plan)
        columns = [self._passed_on(id, id, rows.names) for id in order or plan.columns]
        # Of an aggregate nothing may be used but that it is there.
        return self._from(columns or ["1 AS one"], rows, factor)

    def _from(self, columns: list[str], rows: Rows, factor: int, group: str = "") -> str:
        if factor:
            columns = [*columns, _weight(rows.weights, factor)]
        sql = f"SELECT {', '.join(columns)}\nFROM {rows.body}"
        if rows.where:
            sql += f"\nWHERE {_all(rows.where)}"
        return sql + group

    def _rows(self, plan: Plan, *expressions: Expression) -> Rows:
        """Return the rows of a plan to select from, such that the expressions can be written."""
        match plan:
            case Scan():
                rows = self._scan(plan)
            case Filter():
                rows = self._rows(plan.input, *plan.conditions)
                conditions = (self._text(one, rows.names) for one in plan.conditions)
                rows = rows._replace(where=(*rows.where, *conditions))
            case Restrict():
                rows = self._restrict(plan)
            case Join():
                rows = self._join(plan)
            case Project() if _is_renaming(plan):
                rows = self._rows(plan.input)
                names = {
                    o.id: rows.names.get(o.expression.name, o.expression) for o in plan.outputs
                }
                rows = rows._replace(names=names)
            case _:
                return self._nested(plan)
        if rows.names and any(expression.find(*_BINDING) for expression in expressions):
            return self._nested(plan)
        return rows

    def _nested(self, plan: Plan) -> Rows:
        """Return a plan in parentheses; the terms of a delta have many a part in common."""
        known = self._nested_plans.get(id(plan))
        if known is None:
            written = self.select(plan)
            weights = (WEIGHT,) if written.is_weighted else ()
            known = self._nested_plans[id(plan)] = (
                plan,
                Rows(indented(written.sql), (), weights),
            )
        return known[1]

    def _scan(self, scan: Scan) -> Rows:
        relation = self._sources.relation(scan.table, scan.state)
        # All states of a source have the same fields.
        known = self._scan_names.get(id(scan.fields))
        if known is None:
            names = {field.id: column(field.name) for field in scan.fields}
            known = self._scan_names[id(scan.fields)] = (scan, names)
        return Rows(relation.sql, (), (WEIGHT,) if relation.is_weighted else (), known[1])

    def _text(self, expression: Expression, names: Mapping[str, Expression]) -> str:
        if not names:
            return self.expression(expression)
        if isinstance(expression, exp.Column):
            return self._quote(names[expression.name].name)
        return on_one_line(substitute(expression, names), self._dialect, copy=False)

    def _named(self, expression: Expression, id: str, names: Mapping[str, Expression]) -> str:
        if isinstance(expression, exp.Column):
            return self._passed_on(expression.name, id, names)
        return f"{self._text(expression, names)} AS {self._quote(id)}"

    def _passed_on(self, old: str, new: str, names: Mapping[str, Expression]) -> str:
        """Return a column under the same or another id."""
        if not names and old == new:
            return self._quote(new)
        return f"{self._own_name(old, names)} AS {self._quote(new)}"

    def _own_name(self, id: str, names: Mapping[str, Expression]) -> str:
        return self._quote(names[id].name if names else id)

    def _union(self, plan: UnionAll, factor: int) -> str:
        types = plan.types or ("",) * len(plan.ids)
        selects = []
        for branch in plan.branches:
            rows = self._rows(branch)
            columns = [
                f"{_cast(self._own_name(old, rows.names), type)} AS {self._quote(new)}"
                for old, new, type in zip(branch.columns, plan.ids, types, strict=True)
            ]
            selects.append(self._from(columns, rows, factor))
        return "\nUNION ALL\n".join(selects)

    def _sum(self, plan: Sum, factor: int) -> str:
        selects: list[str] = []
        length = 0
        for term in plan.terms:
            if isinstance(term, (Join, Filter)):
                # The members of a join have another order in each term.
                selects.append(self._select(term, factor, plan.columns))
            elif term.columns == plan.columns:
                selects.append(self._select(term, factor))
            else:
                rows = Rows(indented(self._select(term, factor)), weights=(WEIGHT,))
                columns = [self._quote(id) for id in plan.columns]
                selects.append(self._from(columns, rows, abs(factor)))
            length += len(selects[-1])
            self._check_length(length)
        return "\nUNION ALL\n".join(selects)

    def _join(self, plan: Join) -> Rows:
        """Join the members in their order, each condition as soon as its columns are there."""
        places = {id: i for i, member in enumerate(plan.members) for id in member.columns}
        ready: dict[int, list[str]] = {}
        for condition in plan.conditions:
            place = max((places[id] for id in self._used(condition)), default=0)
            # The first member has no ON.
            ready.setdefault(max(place, 1), []).append(self.expression(condition))
        weights: list[str] = []
        clauses: list[str] = []
        for number, member in enumerate(plan.members):
            rows = self._nested(member)
            alias = f"member_{number}"
            weights += [f"{alias}.{weight}" for weight in rows.weights]
            clause = f"{rows.body} AS {alias}"
            on = _all(tuple(ready.get(number, ())))
            if number:
                clause = f"JOIN {clause} ON {on}" if on else f"CROSS JOIN {clause}"
            clauses.append(clause)
        return Rows("\n".join(clauses), weights=tuple(weights))

    def _used(self, condition: Expression) -> set[str]:
        """Return what a condition reads; all terms of a join have the same conditions."""
        known = self._used_columns.get(id(condition))
        if known is None:
            known = self._used_columns[id(condition)] = (condition, used(condition))
        return known[1]

    def _aggregate(self, plan: Aggregate, factor: int) -> str:
        if self._is_weighted(plan.input):
            raise ValueError("an aggregate of weighted rows")
        keys = tuple(key.expression for key in plan.keys)
        arguments = tuple(m.argument for m in plan.measures if m.argument is not None)
        rows = self._rows(plan.input, *keys, *arguments)
        columns = [self._named(key.expression, key.id, rows.names) for key in plan.keys]
        columns += [
            f"{self._measure(m, rows.names)} AS {self._quote(m.id)}" for m in plan.measures
        ]
        group = ", ".join(self._text(key, rows.names) for key in keys)
        # Without keys there is one row, whether or not a measure of it is used.
        return self._from(
            columns or ["count(*) AS one"], rows, factor, f"\nGROUP BY {group}" if group else ""
        )

    def _measure(self, measure: Measure, names: Mapping[str, Expression]) -> str:
        argument = "*" if measure.argument is None else self._text(measure.argument, names)
        return f"{measure.function}({argument})"

    def _restrict(self, plan: Restrict) -> Rows:
        rows = self._rows(plan.input, *plan.keys)
        inside = {id.lower() for id in plan.among.columns} | _FUNCTIONS
        if any(name.name.lower() in inside for name in rows.names.values()):
            # Inside EXISTS such a name would mean one of the keys; or a function without
            # parentheses, which Spark prefers to a column of outside even if it is quoted.
            rows = self._nested(plan.input)
        same = " AND ".join(
            f"{_operand(self._text(key, rows.names), key)} IS NOT DISTINCT FROM "
            f"keys.{self._quote(touched)}"
            for key, touched in zip(plan.keys, plan.among.columns, strict=True)
        )
        keys = f"{indented(self._select(plan.among, 0))} AS keys"
        exists = f"EXISTS {indented(f'SELECT 1 FROM {keys} WHERE {same}')}"
        return rows._replace(where=(*rows.where, exists))


def _all(conditions: tuple[str, ...]) -> str:
    if len(conditions) == 1:
        return conditions[0]
    return " AND ".join(f"({condition})" for condition in conditions)


def _operand(sql: str, expression: Expression) -> str:
    return sql if isinstance(expression, exp.Column) else f"({sql})"


def _is_renaming(plan: Project) -> bool:
    return all(isinstance(output.expression, exp.Column) for output in plan.outputs)


def _weight(weights: tuple[str, ...], factor: int) -> str:
    product = " * ".join(weights) or "1"
    if factor == 1:
        return product if product == WEIGHT else f"{product} AS {WEIGHT}"
    return f"-{product if len(weights) < 2 else f'({product})'} AS {WEIGHT}"


def indented(sql: str) -> str:
    """Return a select in parentheses, to be selected from.

    Never a text of the user's own, which may have line breaks inside of quotes.

    >>> print(f"SELECT * FROM {indented('SELECT 1')}")
    SELECT * FROM (
      SELECT 1
    )
    """
    lines = sql.replace("\n", "\n  ")
    return f"(\n  {lines}\n)"


def on_one_line(
    expression: Expression, dialect: type[Dialect] = SparkDynamic, copy: bool = True
) -> str:
    """Return an expression as SQL that may be indented; `copy` unless nobody else has it.

    A text has escapes for its line breaks. A name cannot have any, such as that of a struct's
    field, so it would become another one.
    """
    sql = expression.sql(dialect, comments=False, copy=copy)
    if "\n" in sql:
        raise NotIncremental("SYNTAX_NOT_KNOWN", "a name with a line break")
    return sql


def _cast(sql: str, type: str) -> str:
    return f"CAST({sql} AS {type})" if type else sql


def _double_quote(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
