"""Which columns of tables have the type `char(n)`: Delta's own descriptions call them strings.

Spark pads what it reads from such a column, and this shows in its plans.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Column, Relation, Warehouse

# How Spark pads, as a function in its plans.
PADDING = "charvarcharcodegenutils."
# By table, then by column: its type. A column "*" stands for those that are not known.
CharColumns = Mapping[str, Mapping[str, str]]
UNKNOWN = "*"

_READ = re.compile(r"Project \[(.*readSidePadding.*)\]\n[\s:]*\+- Relation(?: ([^\[\n]+))?\[")
_PADDED = re.compile(r"readSidePadding\(([^#]+)#\d+, (\d+)\)\) AS \1#\d+")


def read_char_columns(tree: str) -> dict[str, dict[str, str]]:
    """Return the columns that an analysed plan pads as it reads them.

    >>> padded = "static_invoke(CharVarcharCodegenUtils.readSidePadding(c#1, 5)) AS c#2"
    >>> read_char_columns(f"Project [id#0, {padded}]\\n+- Relation spark_catalog.s.t[c#1] parquet")
    {'s.t': {'c': 'char(5)'}}
    """
    found: dict[str, dict[str, str]] = {}
    for projected, name in _READ.findall(tree):
        table = name.replace("`", "").strip().removeprefix("spark_catalog.") or UNKNOWN
        columns = {column: f"char({length})" for column, length in _PADDED.findall(projected)}
        if projected.count("readSidePadding(") != len(columns):
            # Inside of structs or arrays.
            columns[UNKNOWN] = "char"
        found.setdefault(table, {}).update(columns)
    if tree.count("readSidePadding(") and not found:
        found[UNKNOWN] = {UNKNOWN: "char"}
    return found


def find_char_columns(warehouse: Warehouse, relation: str) -> dict[str, dict[str, str]]:
    """Ask Spark for the columns of the type in a table, or in a version of it."""
    rows = warehouse.rows(f"EXPLAIN EXTENDED SELECT * FROM {relation}")
    return read_char_columns("\n".join(str(next(iter(row.values()))) for row in rows))


def are_known(chars: CharColumns) -> bool:
    """Tell whether all columns of the type are columns of tables that have a name."""
    return UNKNOWN not in chars and all(UNKNOWN not in columns for columns in chars.values())


def typed_columns(relation: Relation, chars: CharColumns) -> tuple[Column, ...]:
    """Return the columns of a relation, with what its plans tell about their types."""
    known = {name.lower(): type for name, type in chars.get(str(relation.name), {}).items()}
    return tuple(
        replace(column, type=known.get(column.name.lower(), column.type))
        for column in relation.columns
    )


def all_typed(
    relations: Iterable[Relation], chars: CharColumns
) -> dict[TableName, tuple[Column, ...]]:
    """Return the columns of relations by their names."""
    return {relation.name: typed_columns(relation, chars) for relation in relations}
