"""Which tables a query text names, and where in the text they stand."""

from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp

from spark_dynamic.names import TableName
from spark_dynamic.sql.dialect import SparkDynamic


@dataclass(frozen=True)
class Reference:
    """One mention of a table: the characters `start` to `end` (exclusive) of the text."""

    table: TableName
    start: int
    end: int
    name: str
    has_alias: bool


@dataclass(frozen=True)
class References:
    """What a text mentions, and whether a new column in a table could change its rows."""

    tables: tuple[Reference, ...]
    follows_schema: bool


class Unreadable(Exception):
    """The text cannot be read with certainty; Spark may still run it as it is."""


def find_references(text: str, schema: str) -> References:
    """Find the tables of a query; names without a schema belong to `schema`.

    Names of CTEs and tables read at a version that the text itself fixes are left out.

    >>> found = find_references("with a as (select * from t) select * from a, s.u x", "d")
    >>> [(str(r.table), r.start, r.end, r.has_alias) for r in found.tables]
    [('d.t', 25, 26, False), ('s.u', 45, 48, True)]
    """
    try:
        tree = sqlglot.parse_one(text, dialect=SparkDynamic)
    except Exception as error:
        # sqlglot raises more than its own errors on text it does not know.
        raise Unreadable(str(error).splitlines()[0]) from error
    if not isinstance(tree, exp.Query):
        raise Unreadable("it is not a query")
    found = [
        _reference(table, schema)
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier)
        and not _is_cte(table)
        and not (table.args.get("version") or table.args.get("when"))
    ]
    return References(tuple(sorted(found, key=lambda r: r.start)), _follows_schema(tree))


def _reference(table: exp.Table, schema: str) -> Reference:
    parts = [table.args.get(key) for key in ("catalog", "db", "this")]
    identifiers = [part for part in parts if isinstance(part, exp.Identifier)]
    if len(identifiers) != sum(part is not None for part in parts):
        raise Unreadable(f"the table name {table.name} has an unusual form")
    try:
        start, end = identifiers[0].meta["start"], identifiers[-1].meta["end"] + 1
    except KeyError as error:
        raise Unreadable(f"the place of {table.name} in the text is unknown") from error
    names = [identifier.name for identifier in identifiers]
    if len(names) == 1:
        names.insert(0, schema)
    return Reference(TableName.of(*names), start, end, names[-1], bool(table.alias))


def _is_cte(table: exp.Table) -> bool:
    """Tell whether a one-part name is that of a CTE that is visible where it stands."""
    if table.args.get("db"):
        return False
    name = table.name.lower()
    inside: Any = table
    outer = table.parent
    while outer is not None:
        with_ = outer.args.get("with_") or outer.args.get("with")
        if isinstance(with_, exp.With) and inside is not with_:
            if any(cte.alias.lower() == name for cte in with_.expressions):
                return True
        elif isinstance(outer, exp.With):
            # Inside a definition only the CTEs before it are visible, or all if recursive.
            for cte in outer.expressions:
                if cte is inside and not outer.args.get("recursive"):
                    break
                if cte.alias.lower() == name:
                    return True
        inside, outer = outer, outer.parent
    return False


def _follows_schema(tree: exp.Query) -> bool:
    for star in tree.find_all(exp.Star):
        parent = star.parent
        if not isinstance(parent, exp.Count):
            return True
    return any(join.args.get("method") == "NATURAL" for join in tree.find_all(exp.Join))
