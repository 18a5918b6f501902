"""DuckDB as the judge: the three states of each table, and rows as weighted bags."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from fuzz.case import Case
from fuzz.schemas import COLLATED, KINDS, NAN, Row, literal
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import Plan, State
from spark_dynamic.sql.dialect import SparkDynamic
from spark_dynamic.sql.write import WEIGHT, Relation, Writer
from spark_dynamic.warehouse import Column

Bag = Counter[Row]


class Duck:
    """A database with the tables of one case at a time, one schema per state."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1; SET TimeZone = 'UTC'; PRAGMA disable_optimizer")
        self._connection.execute(_DIVIDED)
        for state in State:
            self._connection.execute(f"CREATE SCHEMA {state.value}")

    def load(self, case: Case) -> None:
        """Fill the tables of a case."""
        statements = []
        mentioned = set(re.findall(r"\w+", case.sql))
        for name, table in case.tables.items():
            if name not in mentioned:
                continue
            kinds = tuple(table.columns.values())
            changes = case.batches[name].changes if name in case.batches else ()
            weighted = [(*row, weight) for weight, row in changes]
            for state, rows in (("old", table.rows), ("new", case.new_rows(name))):
                statements.append(_table(f"{state}.{name}", table.columns, rows, kinds))
            columns = {**table.columns, WEIGHT: "int"}
            statements.append(_table(f"delta.{name}", columns, weighted, (*kinds, "int")))
        self._connection.execute(";\n".join(statements))

    def text(self, sql: str, state: State) -> tuple[Bag, list[str]]:
        """Return rows and types of a query in DuckDB's words over one state of the tables."""
        self._connection.execute(f"SET schema = '{state.value}'")
        return self._bag(sql, None)

    def weighted(self, sql: str, columns: tuple[str, ...]) -> tuple[Bag, list[str]]:
        """Return rows and types of weighted SQL."""
        names = ", ".join(f'"{column}"' for column in (*columns, WEIGHT))
        return self._bag(f"SELECT {names} FROM ({sql})", len(columns))

    def raw(self, sql: str, columns: tuple[str, ...]) -> list[tuple[Any, int]]:
        """Return the rows of weighted SQL as they come, each with its own weight."""
        names = ", ".join(f'"{column}"' for column in (*columns, WEIGHT))
        rows = self._connection.execute(f"SELECT {names} FROM ({sql})").fetchall()
        return [(canonical(row[:-1]), row[-1]) for row in rows]

    def describe(self, plan: Plan) -> tuple[Column, ...]:
        """Return the columns of a plan with DuckDB's types."""
        sql = Writer(PlainStates(), StrictDuckDB).select(plan).sql
        rows = self._connection.execute(f"DESCRIBE {sql}").fetchall()
        return tuple(Column(row[0], row[1]) for row in rows)

    def _bag(self, sql: str, weight: int | None) -> tuple[Bag, list[str]]:
        result = self._connection.execute(sql)
        # DuckDB's sum is wider than Spark's; whole numbers are not told apart.
        types = [str(c[1]).replace("HUGEINT", "BIGINT") for c in result.description or ()]
        bag: Bag = Counter()
        for row in result.fetchall():
            values = row if weight is None else row[:weight]
            bag[canonical(values)] += 1 if weight is None else row[weight]
        return nonzero(bag), types if weight is None else types[:weight]


class PlainStates:
    """Every state is a table of its own."""

    def relation(self, table: TableName, state: State) -> Relation:
        """Return the table."""
        return Relation(f"{state.value}.{table.name}", state is State.DELTA)


class OldFromNew:
    """The old state is the new one minus the changes, as on a source without time travel."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def relation(self, table: TableName, state: State) -> Relation:
        """Return the table, or the difference."""
        if state is not State.OLD:
            return PlainStates().relation(table, state)
        columns = ", ".join(f'"{column}"' for column in self._case.tables[table.name].columns)
        return Relation(
            f"(SELECT {columns}, 1 AS {WEIGHT} FROM new.{table.name} UNION ALL "
            f"SELECT {columns}, -{WEIGHT} FROM delta.{table.name})",
            True,
        )


def canonical(row: Iterable[Any]) -> Row:
    """Return a row in which values are equal exactly if SQL groups them together."""
    return tuple(map(_canonical, row))


def _canonical(value: Any) -> Any:
    if isinstance(value, float):
        if math.isnan(value):
            return NAN
        # Averages of the same values may differ in their last digits.
        return float(f"{value:.10g}") + 0.0
    if isinstance(value, Decimal):
        return value.normalize() + 0
    if isinstance(value, dict):
        return canonical(value.values())
    return value


def nonzero(bag: Bag) -> Bag:
    """Return a bag without rows of weight zero."""
    return Counter({row: weight for row, weight in bag.items() if weight})


def added(one: Bag, other: Bag) -> Bag:
    """Return the sum of two weighted bags."""
    total = Counter(one)
    for row, weight in other.items():
        total[row] += weight
    return nonzero(total)


def _table(name: str, columns: Any, rows: Iterable[Row], kinds: tuple[str, ...]) -> str:
    declared = ", ".join(f'"{column}" {KINDS[kind].duck}' for column, kind in columns.items())
    sql = f"CREATE OR REPLACE TABLE {name} ({declared})"
    values = ", ".join(f"({', '.join(map(_value, row, kinds))})" for row in rows)
    return f"{sql};\nINSERT INTO {name} VALUES {values}" if values else sql


def _value(value: Any, kind: str) -> str:
    if kind in ("string", COLLATED) and value is not None:
        return exp.Literal.string(value).sql(dialect=DuckDB)
    return literal(value, kind).replace("timestamp_ntz", "timestamp")


def _literal(generator: DuckDBGenerator, node: exp.Literal) -> str:
    """Write a line break as an escape: DuckDB's SQL is indented as if it were Spark's."""
    text = str(generator.literal_sql(node))
    if "\n" not in text:
        return text
    return "E" + text.replace("\\", "\\\\").replace("\n", "\\n")


def _bound(generator: DuckDBGenerator, node: exp.Var) -> str:
    """Write a bound, which the engine hands over in Spark's words."""
    if not node.name.startswith("'"):
        return node.name
    return str(generator.sql(sqlglot.parse_one(node.name, dialect=SparkDynamic)))


class StrictDuckDB(DuckDB):
    """DuckDB's SQL, but a division by zero is an error, as it is in Spark."""

    class Generator(DuckDBGenerator):
        """Divides by a function, and has its own name for the one collation there is."""

        TRANSFORMS = {
            **DuckDBGenerator.TRANSFORMS,
            exp.Div: lambda self, e: self.func("divided", e.this, e.expression),
            exp.Collate: lambda self, e: f"{self.sql(e, 'this')} COLLATE NOCASE",
            exp.Literal: _literal,
            exp.Var: _bound,
        }


_DIVIDED = """CREATE TEMP MACRO divided(a, b) AS
CASE WHEN b = 0 THEN error('a division by zero')::DOUBLE ELSE a / b END"""


def duck_sql(sql: str) -> str:
    """Return a query's text in DuckDB's words."""
    tree = sqlglot.parse_one(sql, dialect=SparkDynamic)
    for node in list(tree.find_all(exp.CountIf)):
        # DuckDB's own is NULL where there are no rows.
        when = exp.Case(ifs=[exp.If(this=node.this.copy(), true=exp.Literal.number(1))])
        node.replace(exp.Count(this=when))
    return tree.sql(dialect=StrictDuckDB)
