"""Tables of our own that an earlier version made, with fewer columns than they have now."""

from collections.abc import Callable, Mapping

from spark_dynamic.catalog import describe_relation
from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName, quote
from spark_dynamic.warehouse import Warehouse


def append_to(
    warehouse: Warehouse, table: TableName, columns: Mapping[str, str], append: Callable[[], None]
) -> None:
    """Append; if that fails because columns are missing, add them and append again."""
    try:
        append()
    except WarehouseError:
        known = describe_relation(warehouse, table)
        names = {column.name for column in known.columns} if known else set(columns)
        missing = [f"{quote(name)} {kind}" for name, kind in columns.items() if name not in names]
        if not missing:
            raise
        warehouse.execute(f"ALTER TABLE {table.sql} ADD COLUMNS ({', '.join(missing)})")
        append()
