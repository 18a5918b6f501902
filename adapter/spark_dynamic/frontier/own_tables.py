"""Tables of our own: made when they are first needed, perhaps by an earlier version."""

from collections.abc import Callable, Mapping
from typing import Final

from spark_dynamic.catalog import describe_relation
from spark_dynamic.conflicts import despite_conflicts
from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName, quote
from spark_dynamic.warehouse import Warehouse

# They get one small commit per run and are seldom read: neither statistics nor a checkpoint every
# ten commits, which takes seconds, is worth its time.
_PROPERTIES: Final = "'delta.dataSkippingNumIndexedCols' = '0', 'delta.checkpointInterval' = '100'"


def create_own_table(table: TableName, columns: Mapping[str, str]) -> str:
    """Return the statement that makes a table, if there is none."""
    listed = ",\n  ".join(f"{name} {kind}" for name, kind in columns.items())
    return (
        f"CREATE TABLE IF NOT EXISTS {table.sql} (\n  {listed}\n) USING delta "
        f"TBLPROPERTIES ({_PROPERTIES})"
    )


def make(warehouse: Warehouse, table: TableName, create: str) -> None:
    """Make a table and its schema, which another run may be making at the same moment."""

    def run() -> None:
        warehouse.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(table.schema)}")
        warehouse.execute(create)

    despite_conflicts(run)


def append_to(
    warehouse: Warehouse, table: TableName, columns: Mapping[str, str], append: Callable[[], None]
) -> None:
    """Append; if that fails because columns are missing, add them and append again."""
    try:
        despite_conflicts(append)
    except WarehouseError:
        known = describe_relation(warehouse, table)
        names = {column.name for column in known.columns} if known else set(columns)
        missing = [f"{quote(name)} {kind}" for name, kind in columns.items() if name not in names]
        if not missing:
            raise
        warehouse.execute(f"ALTER TABLE {table.sql} ADD COLUMNS ({', '.join(missing)})")
        append()
