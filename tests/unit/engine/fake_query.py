"""A very small Spark SQL: queries are translated by sqlglot and run by SQLite."""

import itertools
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Expanded:
    """A query over leaves: all views are written out."""

    tree: exp.Query
    leaves: dict[str, Leaf]


Lookup = Callable[[TableName, int | None], "StoredView | Leaf"]


def expand(sql: str, schema: str, lookup: Lookup) -> Expanded:
    """Read a query and write out its views, as Spark's analyser does."""
    try:
        tree = sqlglot.parse_one(sql, dialect=SparkDynamic)
    except sqlglot.errors.SqlglotError as error:
        raise WarehouseError("PARSE_SYNTAX_ERROR", str(error)) from error
    assert isinstance(tree, exp.Query), sql
    leaves: dict[str, Leaf] = {}
    for table in _tables(tree):
        version = table.args.get("version")
        number = int(version.expression.name) if version else None
        parts = [part.name for part in table.parts]
        name = TableName.of(*parts) if len(parts) > 1 else TableName.of(schema, *parts)
        found = lookup(name, number)
        alias = table.alias or parts[-1]
        if isinstance(found, Leaf):
            leaves[found.name] = found
            named = exp.alias_(exp.to_table(found.name), alias, table=True, quoted=True)
            table.replace(named)
        else:
            inner = expand(found.text, found.schema, lookup)
            leaves |= inner.leaves
            pairs = zip(found.output_columns, found.columns, strict=True)
            shown = ", ".join(f"{quote(a)} AS {quote(b.name)}" for a, b in pairs)
            text = f"SELECT {shown} FROM ({inner.tree.sql(dialect=SparkDynamic)})"
            view = sqlglot.parse_one(text, dialect=SparkDynamic)
            assert isinstance(view, exp.Query)
            table.replace(view.subquery(alias))
    return Expanded(tree, leaves)


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
    for leaf in query.leaves.values():
        names = ", ".join(_sqlite_name(column.name) for column in leaf.columns)
        database.execute(f"CREATE TABLE {leaf.name} ({names})")
        marks = ", ".join("?" * len(leaf.columns))
        database.executemany(f"INSERT INTO {leaf.name} VALUES ({marks})", leaf.rows)
    try:
        cursor = database.execute(query.tree.sql(dialect="sqlite"))
    except sqlite3.OperationalError as error:
        raise WarehouseError("UNRESOLVED_COLUMN", str(error)) from error
    names = [column[0] for column in cursor.description]
    found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    database.close()
    return found


def _sqlite_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _schema(query: Expanded) -> dict[str, dict[str, str]]:
    return {
        leaf.name: {quote(column.name): column.type for column in leaf.columns}
        for leaf in query.leaves.values()
    }


def columns_of(query: Expanded) -> tuple[Column, ...]:
    """Return names and types of a query's columns."""
    schema = _schema(query)
    try:
        tree = qualify(query.tree.copy(), schema=schema, dialect=SparkDynamic)
        typed = annotate_types(tree, schema=schema, dialect=SparkDynamic)
    except sqlglot.errors.SqlglotError as error:
        raise WarehouseError("UNRESOLVED_COLUMN", str(error)) from error
    return tuple(Column(item.alias_or_name, _kind(item)) for item in typed.selects)


def _kind(item: exp.Expression) -> str:
    kind = item.type.sql(dialect=SparkDynamic).lower() if item.type else "string"
    return "string" if kind in ("unknown", "null") else _TYPES.get(kind, kind)


def explanation(query: Expanded) -> str:
    """Return what EXPLAIN EXTENDED prints, with new column numbers on every call."""
    columns = ", ".join(f"{column.name}: {column.type}" for column in columns_of(query))
    written = query.tree.sql(dialect=SparkDynamic)
    relations = "".join(
        f"\n:  +- Relation spark_catalog.{leaf.table}"
        f"[{','.join(f'{c.name}#{next(_NUMBERS)}' for c in leaf.columns)}] parquet"
        for leaf in query.leaves.values()
    )
    optimised = optimize(query.tree.copy(), schema=_schema(query), dialect=SparkDynamic)
    numbers: dict[str, int] = {}
    for column in list(optimised.find_all(exp.Column)):
        number = numbers.setdefault(column.sql(), next(_NUMBERS))
        column.replace(exp.column(exp.to_identifier(f"{column.name}#{number}L")))
    plan = optimised.sql(dialect=SparkDynamic)
    return (
        f"== Parsed Logical Plan ==\n'Project [*]\n\n== Analyzed Logical Plan ==\n{columns}\n"
        f"Project [{written}]{relations}\n\n== Optimized Logical Plan ==\nProject [{plan}]\n\n"
        "== Physical Plan ==\nAdaptiveSparkPlan isFinalPlan=false\n"
    )
