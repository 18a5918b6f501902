"""A very small Spark SQL: queries are translated by sqlglot and run by SQLite."""

import itertools
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.optimizer import optimize
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope

from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName, quote
from spark_dynamic.sql.dialect import SparkDynamic
from spark_dynamic.warehouse import Column

_NUMBERS = itertools.count(100)
# A moment that the engine wrote down, in either language.
_MOMENT = re.compile(r"CAST\(('[^']*') AS TIMESTAMP_?LTZ\)")
_TYPES = {"int": "int", "bigint": "bigint", "text": "string", "varchar": "string"}


@dataclass(frozen=True)
class StoredView:
    """A view as the catalog keeps it: its columns stay what they were when it was made."""

    name: TableName
    text: str
    schema: str
    columns: tuple[Column, ...]
    output_columns: tuple[str, ...]
    properties: dict[str, str]
    settings: dict[str, str]
    comment: str = ""


@dataclass(frozen=True)
class Leaf:
    """A stored table in a query: under which name, with which columns and rows."""

    name: str
    table: TableName
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]


class Texts(NamedTuple):
    """A query over leaves, in both languages."""

    spark: str
    sqlite: str


@dataclass(frozen=True)
class Expanded:
    """A query over leaves: all views are written out."""

    texts: Texts
    leaves: dict[str, Leaf]


# What Spark makes a number of, before it compares or shows anything.
_CLOCK = re.compile(
    rf"CAST\({_MOMENT.pattern} AS DATE\)|{_MOMENT.pattern}|CURRENT_(DATE|TIMESTAMP)\b(\(\))?"
)

Lookup = Callable[[TableName, int | None], "StoredView | Leaf"]


def expand(sql: str, schema: str, lookup: Lookup) -> Expanded:
    """Read a query and write out its views, as Spark's analyser does."""
    leaves: dict[str, Leaf] = {}
    places: list[str] = []
    for name, version in _mentions(sql, schema):
        found = lookup(name, version)
        if isinstance(found, Leaf):
            leaves[found.name] = found
            places.append(found.name)
        else:
            inner = expand(found.text, found.schema, lookup)
            leaves |= inner.leaves
            pairs = zip(found.output_columns, found.columns, strict=True)
            shown = ", ".join(f"{quote(a)} AS {quote(b.name)}" for a, b in pairs)
            places.append(f"SELECT {shown} FROM ({inner.texts.spark})")
    return Expanded(_written_out(sql, tuple(places)), leaves)


@cache
def _mentions(sql: str, schema: str) -> list[tuple[TableName, int | None]]:
    """Return the tables that a text names, in a fixed order, with their versions."""
    found = []
    for table in _tables(_parsed(sql)):
        version = table.args.get("version")
        parts = [part.name for part in table.parts]
        name = TableName.of(*parts) if len(parts) > 1 else TableName.of(schema, *parts)
        found.append((name, int(version.expression.name) if version else None))
    return found


@cache
def _written_out(sql: str, places: tuple[str, ...]) -> Texts:
    """Put the name of a leaf, or the query of a view, in the place of each table."""
    tree = _parsed(sql).copy()
    for table, place in zip(_tables(tree), places, strict=True):
        alias = table.alias or table.name
        if place.startswith("SELECT "):
            view = sqlglot.parse_one(place, dialect=SparkDynamic)
            assert isinstance(view, exp.Query)
            table.replace(view.subquery(alias))
        else:
            named = exp.alias_(exp.to_table(place), alias, table=True, quoted=True)
            table.replace(named)
    return Texts(tree.sql(dialect=SparkDynamic), _MOMENT.sub(r"\1", tree.sql(dialect="sqlite")))


@cache
def _parsed(sql: str) -> exp.Query:
    try:
        tree = sqlglot.parse_one(sql, dialect=SparkDynamic)
    except sqlglot.errors.SqlglotError as error:
        raise WarehouseError("PARSE_SYNTAX_ERROR", str(error)) from error
    assert isinstance(tree, exp.Query), sql
    return tree


def _tables(tree: exp.Query) -> list[exp.Table]:
    found = {
        id(source): source
        for scope in traverse_scope(tree)
        for source in scope.sources.values()
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier)
    }
    return list(found.values())


def run_query(query: Expanded) -> list[dict[str, Any]]:
    """Return the rows of a query."""
    database = sqlite3.connect(":memory:")
    # SQLite has dates as texts.
    database.create_function("to_date", 1, lambda text: text)
    for leaf in query.leaves.values():
        names = ", ".join(_sqlite_name(column.name) for column in leaf.columns)
        database.execute(f"CREATE TABLE {leaf.name} ({names})")
        marks = ", ".join("?" * len(leaf.columns))
        database.executemany(f"INSERT INTO {leaf.name} VALUES ({marks})", leaf.rows)
    try:
        cursor = database.execute(query.texts.sqlite)
    except sqlite3.OperationalError as error:
        raise WarehouseError("UNRESOLVED_COLUMN", str(error)) from error
    names = [column[0] for column in cursor.description]
    found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    database.close()
    return found


def _sqlite_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


Schema = tuple[tuple[str, tuple[Column, ...]], ...]


def _schema(query: Expanded) -> Schema:
    return tuple((leaf.name, leaf.columns) for leaf in query.leaves.values())


def _as_dict(schema: Schema) -> dict[str, dict[str, str]]:
    return {name: {quote(c.name): c.type for c in columns} for name, columns in schema}


def columns_of(query: Expanded) -> tuple[Column, ...]:
    """Return names and types of a query's columns."""
    return _columns(query.texts.spark, _schema(query))


@cache
def _columns(sql: str, schema: Schema) -> tuple[Column, ...]:
    known = _as_dict(schema)
    try:
        tree = qualify(_parsed(sql).copy(), schema=known, dialect=SparkDynamic)
        typed = annotate_types(tree, schema=known, dialect=SparkDynamic)
    except sqlglot.errors.SqlglotError as error:
        raise WarehouseError("UNRESOLVED_COLUMN", str(error)) from error
    return tuple(Column(item.alias_or_name, _kind(item)) for item in typed.selects)


def _kind(item: exp.Expression) -> str:
    kind = item.type.sql(dialect=SparkDynamic).lower() if item.type else "string"
    return "string" if kind in ("unknown", "null") else _TYPES.get(kind, kind).replace(", ", ",")


def explanation(query: Expanded) -> str:
    """Return what EXPLAIN EXTENDED prints, with new column numbers on every call."""
    columns = ", ".join(f"{column.name}: {column.type}" for column in columns_of(query))
    written = query.texts.spark
    # Spark writes every function with parentheses.
    shown = re.sub(r"\bCURRENT_DATE\b(?!\()", "current_date(Some(Etc/UTC))", written)
    relations = "".join(
        f"\n:  +- Relation spark_catalog.{leaf.table}"
        f"[{','.join(f'{c.name}#{next(_NUMBERS)}' for c in leaf.columns)}] parquet"
        for leaf in query.leaves.values()
    )
    numbers: dict[str, str] = {}
    plan = re.sub(
        r"#\d+L",
        lambda match: numbers.setdefault(match[0], f"#{next(_NUMBERS)}L"),
        _CLOCK.sub("20260101", _optimised(written, _schema(query))),
    )
    return (
        f"== Parsed Logical Plan ==\n'Project [*]\n\n== Analyzed Logical Plan ==\n{columns}\n"
        f"Project [{shown}]{relations}\n\n== Optimized Logical Plan ==\nProject [{plan}]\n\n"
        "== Physical Plan ==\nAdaptiveSparkPlan isFinalPlan=false\n"
    )


@cache
def _optimised(sql: str, schema: Schema) -> str:
    tree = optimize(_parsed(sql).copy(), schema=_as_dict(schema), dialect=SparkDynamic)
    numbers: dict[str, int] = {}
    for column in list(tree.find_all(exp.Column)):
        number = numbers.setdefault(column.sql(), len(numbers))
        column.replace(exp.column(exp.to_identifier(f"{column.name}#{number}L")))
    return tree.sql(dialect=SparkDynamic)
