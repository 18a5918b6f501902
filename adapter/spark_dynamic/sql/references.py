"""Which tables a query text names, and where in the text they stand."""

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from spark_dynamic.names import TableName
from spark_dynamic.sql.clocks import ClockCall, find_clocks
from spark_dynamic.sql.dialect import parsed

_READ_NO_TABLE = {
    "range", "explode", "explode_outer", "posexplode", "posexplode_outer", "inline",
    "inline_outer", "stack", "json_tuple",
}  # fmt: skip
_CLOCK_WORDS = {"now", "today", "tomorrow", "yesterday"}


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
    """What a text mentions; `clock_literals` are literals such as date'today'."""

    tables: tuple[Reference, ...]
    clock_literals: bool
    clocks: tuple[ClockCall, ...] = ()


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
        tree = parsed(text)
    except (RecursionError, MemoryError):
        # The text is not at fault, and may be read the next time.
        raise
    except Exception as error:
        # sqlglot raises more than its own errors on text it does not know.
        raise Unreadable(str(error).splitlines()[0]) from error
    if not isinstance(tree, exp.Query):
        raise Unreadable("it is not a query")
    found = [
        _reference(table, schema)
        for table in tree.find_all(exp.Table)
        if not _is_harmless_function(table) and not _is_cte(table) and not _is_pinned(table)
    ]
    ordered = tuple(sorted(found, key=lambda r: r.start))
    return References(ordered, _has_clock_literals(tree), find_clocks(text))


def _is_harmless_function(table: exp.Table) -> bool:
    """Tell whether a table function stands here that reads no table."""
    if isinstance(table.this, exp.Identifier):
        return False
    name = table.this.name or table.this.sql_name() if isinstance(table.this, exp.Func) else ""
    if name.lower() not in _READ_NO_TABLE:
        raise Unreadable(f"it reads from the function {name or table.sql()}")
    return True


def _is_pinned(table: exp.Table) -> bool:
    """Tell whether the text itself fixes the version."""
    travel = table.args.get("version") or table.args.get("when")
    if travel is not None and not isinstance(travel.args.get("expression"), exp.Literal):
        raise Unreadable(f"it reads {table.name} at a version that is computed")
    return travel is not None


def _reference(table: exp.Table, schema: str) -> Reference:
    parts = [table.args.get(key) for key in ("catalog", "db", "this")]
    identifiers = [part for part in parts if isinstance(part, exp.Identifier)]
    if len(identifiers) != sum(part is not None for part in parts):
        raise Unreadable(f"the table name {table.name} has an unusual form")
    try:
        start, end = identifiers[0].meta["start"], identifiers[-1].meta["end"] + 1
    except KeyError as error:
        raise Unreadable(f"the place of {table.name} in the text is unknown") from error
    return Reference(
        table_name(table, schema), start, end, identifiers[-1].name, bool(table.alias)
    )


def table_name(table: exp.Table, schema: str) -> TableName:
    """Return the table that is meant; a name without a schema belongs to `schema`."""
    parts = [table.args.get(key) for key in ("catalog", "db", "this")]
    names = [part.name for part in parts if isinstance(part, exp.Identifier)]
    return TableName.of(*(names if len(names) > 1 else [schema, *names]))


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


def _has_clock_literals(tree: exp.Query) -> bool:
    """Tell whether a text such as 'today' stands in the query.

    Spark takes it for a moment wherever a date is expected, partly while parsing: no plan
    shows it. That it is a mere word cannot be told from here.
    """
    return any(
        literal.is_string and literal.name.strip().lower().split(" ")[0] in _CLOCK_WORDS
        for literal in tree.find_all(exp.Literal)
    )
