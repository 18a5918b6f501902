"""From a plan to SQL: nested selects, with a weight column wherever rows are weighted."""

from textwrap import indent
from typing import NamedTuple, Protocol

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from spark_dynamic.names import TableName, quote
from spark_dynamic.plan.expressions import used
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
)
from spark_dynamic.sql.dialect import SparkDynamic

WEIGHT = "__dyn_weight"


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


class Writer:
    """Writes plans over given sources."""

    def __init__(self, sources: Sources, dialect: type[Dialect] = SparkDynamic) -> None:
        self._sources = sources
        self._dialect = dialect
        self._quote = quote if dialect is SparkDynamic else _double_quote
        # By identity; an expression is kept with its text, so that no other takes its place.
        self._known: dict[int, tuple[Expression, str]] = {}

    def weighted(self, plan: Plan) -> str:
        """Return a plan's rows with their weights; 1 if nothing says otherwise."""
        written = self.select(plan)
        if written.is_weighted:
            return written.sql
        return f"SELECT *, 1 AS {WEIGHT} FROM (\n{indent(written.sql, '  ')}\n)"

    def select(self, plan: Plan) -> Written:
        """Return a plan as a select."""
        match plan:
            case Scan():
                return self._scan(plan)
            case Filter():
                inner = self.select(plan.input)
                condition = self.expression(plan.condition)
                return Written(
                    f"SELECT * FROM {_nested(inner)} WHERE {condition}", inner.is_weighted
                )
            case Project():
                return self._project(plan)
            case UnionAll():
                return self._union(plan)
            case Join():
                return self._join(plan)
            case Aggregate():
                return self._aggregate(plan)
            case Sum():
                return self._sum(plan)
            case Negate():
                rows = indent(self.weighted(plan.input), "  ")
                columns = [self._quote(column) for column in plan.columns]
                columns.append(f"-{WEIGHT} AS {WEIGHT}")
                return Written(f"SELECT {', '.join(columns)} FROM (\n{rows}\n)", True)
            case Restrict():
                return self._restrict(plan)
        raise TypeError(type(plan).__name__)

    def expression(self, expression: Expression) -> str:
        """Return an expression over the columns of a plan; one that recurs is written once."""
        known = self._known.get(id(expression))
        if known is None:
            known = self._known[id(expression)] = (expression, expression.sql(self._dialect))
        return known[1]

    def column(self, id: str) -> str:
        """Return a column of a plan."""
        return self._quote(id)

    def _scan(self, scan: Scan) -> Written:
        relation = self._sources.relation(scan.table, scan.state)
        columns = [f"{self._quote(f.name)} AS {self._quote(f.id)}" for f in scan.fields]
        if relation.is_weighted:
            columns.append(WEIGHT)
        return Written(f"SELECT {', '.join(columns)} FROM {relation.sql}", relation.is_weighted)

    def _project(self, plan: Project) -> Written:
        inner = self.select(plan.input)
        columns = [self._named(output.expression, output.id) for output in plan.outputs]
        if inner.is_weighted:
            columns.append(WEIGHT)
        return Written(f"SELECT {', '.join(columns)} FROM {_nested(inner)}", inner.is_weighted)

    def _named(self, expression: Expression, id: str) -> str:
        if isinstance(expression, exp.Column) and expression.name == id:
            return self._quote(id)
        return f"{self.expression(expression)} AS {self._quote(id)}"

    def _union(self, plan: UnionAll) -> Written:
        branches = [self.select(branch) for branch in plan.branches]
        is_weighted = any(branch.is_weighted for branch in branches)
        types = plan.types or ("",) * len(plan.ids)
        selects = []
        for node, branch in zip(plan.branches, branches, strict=True):
            columns = [
                f"{_cast(self._quote(old), type)} AS {self._quote(new)}"
                for old, new, type in zip(node.columns, plan.ids, types, strict=True)
            ]
            if is_weighted:
                columns.append(WEIGHT if branch.is_weighted else f"1 AS {WEIGHT}")
            selects.append(f"SELECT {', '.join(columns)} FROM {_nested(branch)}")
        return Written("\nUNION ALL\n".join(selects), is_weighted)

    def _sum(self, plan: Sum) -> Written:
        if len(plan.terms) == 1:
            return self.select(plan.terms[0])
        columns = ", ".join([*(self._quote(column) for column in plan.columns), WEIGHT])
        terms = [indent(self.weighted(term), "  ") for term in plan.terms]
        return Written(
            "\nUNION ALL\n".join(f"SELECT {columns} FROM (\n{term}\n)" for term in terms), True
        )

    def _join(self, plan: Join) -> Written:
        """Join the members in their order, each condition as soon as its columns are there."""
        remaining = list(plan.conditions)
        seen: set[str] = set()
        weights: list[str] = []
        clauses: list[str] = []
        for number, member in enumerate(plan.members):
            written = self.select(member)
            alias = f"member_{number}"
            if written.is_weighted:
                weights.append(f"{alias}.{WEIGHT}")
            seen |= set(member.columns)
            clause = f"{_nested(written)} AS {alias}"
            if number:
                ready = [c for c in remaining if used(c) <= seen]
                remaining = [c for c in remaining if c not in ready]
                on = " AND ".join(f"({self.expression(c)})" for c in ready)
                clause = f"JOIN {clause} ON {on}" if ready else f"CROSS JOIN {clause}"
            clauses.append(clause)
        columns = [self._quote(column) for column in plan.columns]
        if weights:
            columns.append(f"{' * '.join(weights)} AS {WEIGHT}")
        body = "\n".join(clauses)
        return Written(f"SELECT {', '.join(columns)} FROM {body}", bool(weights))

    def _aggregate(self, plan: Aggregate) -> Written:
        inner = self.select(plan.input)
        if inner.is_weighted:
            raise ValueError("an aggregate of weighted rows")
        columns = [self._named(key.expression, key.id) for key in plan.keys]
        columns += [f"{self.measure(m)} AS {self._quote(m.id)}" for m in plan.measures]
        # Without keys there is one row, whether or not a measure of it is used.
        sql = f"SELECT {', '.join(columns) or 'count(*) AS one'} FROM {_nested(inner)}"
        if plan.keys:
            sql += f" GROUP BY {', '.join(self.expression(key.expression) for key in plan.keys)}"
        return Written(sql, False)

    def measure(self, measure: Measure) -> str:
        """Return an aggregate function over rows."""
        argument = "*" if measure.argument is None else self.expression(measure.argument)
        return f"{measure.function}({argument})"

    def _restrict(self, plan: Restrict) -> Written:
        inner, among = self.select(plan.input), self.select(plan.among)
        same = " AND ".join(
            f"({self.expression(key)}) IS NOT DISTINCT FROM keys.{self._quote(column)}"
            for key, column in zip(plan.keys, plan.among.columns, strict=True)
        )
        return Written(
            f"SELECT * FROM {_nested(inner)} AS members WHERE EXISTS "
            f"(SELECT 1 FROM {_nested(among)} AS keys WHERE {same or 'true'})",
            inner.is_weighted,
        )


def _nested(written: Written) -> str:
    return f"(\n{indent(written.sql, '  ')}\n)"


def _cast(sql: str, type: str) -> str:
    return f"CAST({sql} AS {type})" if type else sql


def _double_quote(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
