"""What people give to macros and configs: relations, names, keys."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spark_dynamic.names import TableName

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter


def is_relation(value: Any) -> bool:
    """Tell whether a value came from `ref` or `source`."""
    return hasattr(value, "identifier") and hasattr(value, "schema")


def names_of(value: Any) -> Sequence[str]:
    """Return one name or several as a list."""
    if not value:
        return []
    return [value] if isinstance(value, str) else [str(name) for name in value]


def row_keys_of(adapter: "SparkDynamicAdapter", given: Any) -> dict[TableName, tuple[str, ...]]:
    """Return the keys of sources; a name without a schema is in the target's."""
    keys: dict[TableName, tuple[str, ...]] = {}
    for table, columns in dict(given or {}).items():
        if is_relation(table):
            name = TableName.of(table.schema, table.identifier)
        elif "." in str(table):
            name = TableName.parse(str(table))
        else:
            name = TableName.of(adapter.config.credentials.schema, str(table))
        keys[name] = tuple(names_of(columns))
    return keys
