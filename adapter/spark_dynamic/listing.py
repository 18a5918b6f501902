"""What the catalog lists about many relations at once."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName, quote
from spark_dynamic.warehouse import Warehouse

# Some catalogs turn a list of names into one condition each.
_AT_ONCE: Final = 25
# The pattern of a listing takes what is no letter for a regular expression, or for `*`.
_PLAIN: Final = re.compile(r"\w+", re.ASCII)
# What changes by itself, or when a view is made anew just as it was.
_PASSING: Final = ("Last Access:", "Created Time:", "Created By:", "Statistics:")
_MADE: Final = re.compile(r"^Created Time: .*$|\btransient_lastDdlTime=\d+", re.MULTILINE)
_LOCATION: Final = re.compile(r"^Location: (.+)$", re.MULTILINE)


def is_listable(name: TableName) -> bool:
    """Tell whether a relation can be asked for in a list."""
    parts = (name.schema, name.name)
    return not name.catalog and not name.is_path and all(map(_PLAIN.fullmatch, parts))


def list_relations(warehouse: Warehouse, names: Iterable[TableName]) -> dict[TableName, str]:
    """Return what the catalog says about some relations, as far as they can be listed."""
    schemas: dict[str, list[str]] = {}
    for name in sorted(set(names), key=str):
        if is_listable(name):
            schemas.setdefault(name.schema, []).append(name.name)
    found: dict[TableName, str] = {}
    for schema, wanted in schemas.items():
        for begin in range(0, len(wanted), _AT_ONCE):
            found |= _list(warehouse, schema, "|".join(wanted[begin : begin + _AT_ONCE]))
    return found


def location_of(text: str) -> str:
    """Return where a listed table is stored; "" for a view."""
    found = _LOCATION.search(text)
    return found[1].strip() if found else ""


@lru_cache(maxsize=4096)
def lasting(text: str) -> str:
    """Return what a relation is, without when it was made; many tables read the same sources."""
    lines = (line for line in text.splitlines() if not line.startswith(_PASSING))
    return _MADE.sub("", "\n".join(lines))


def made_at(text: str) -> str:
    """Return when a relation was made: another moment for another relation of the same form."""
    return ",".join(_MADE.findall(text))


def _list(warehouse: Warehouse, schema: str, pattern: str) -> dict[TableName, str]:
    try:
        rows = warehouse.rows(f"SHOW TABLE EXTENDED IN {quote(schema)} LIKE '{pattern}'")
    except WarehouseError:
        # There is no such schema, or one of its relations cannot be read: then each by itself.
        return {}
    return {TableName.of(schema, row["tableName"]): row["information"] for row in rows}
