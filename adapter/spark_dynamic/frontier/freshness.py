"""When the rows of a table last changed, as its history tells."""

from datetime import datetime
from typing import Final

from spark_dynamic.apply.view import storage_behind
from spark_dynamic.catalog import describe_relation
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.history import changes_rows
from spark_dynamic.names import TableName
from spark_dynamic.sql.pin import MODEL_PROPERTY
from spark_dynamic.warehouse import Warehouse

# Most tables changed lately; behind much maintenance one has to look further back.
_LOOKS: Final = (10, 1000, 100_000)


def last_change(warehouse: Warehouse, table: TableName) -> datetime:
    """Return when a commit last changed rows; at the latest, when the kept history begins."""
    table = _with_history(warehouse, table)
    for limit in _LOOKS:
        commits = warehouse.history(table, limit)
        changed = next((commit for commit in commits if changes_rows(commit)), None)
        if changed is not None:
            return changed.timestamp
        if len(commits) < limit:
            break
    return commits[-1].timestamp


def _with_history(warehouse: Warehouse, table: TableName) -> TableName:
    """Return the Delta table that a name stands for: itself, or a dynamic table's storage."""
    relation = describe_relation(warehouse, table)
    if relation is None:
        raise EngineError("SOURCE_MISSING", f"The table {table} does not exist.")
    if relation.is_delta:
        return table
    if relation.view is not None and MODEL_PROPERTY in relation.properties:
        return storage_behind(relation, table)
    raise EngineError(
        "NO_HISTORY",
        f"{table} is not a Delta table, so nothing tells when it was loaded. "
        "Give the source a loaded_at_field.",
    )
