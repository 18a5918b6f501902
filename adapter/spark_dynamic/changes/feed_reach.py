"""How far back can the change feed of a table be read with the columns that it has today?

Delta reads a feed with one schema. Columns that were added since are NULL in older changes; with
a column that was dropped, renamed or changed since, it refuses, whoever uses that column.
"""

from spark_dynamic.catalog import describe_query
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.compare import may_touch_columns
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse


def feed_reaches(table: TableName, version: int, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Tell whether all changes after a version can be read from the feed."""
    history = cycle.catalog.history(warehouse, table, since=version)
    if not may_touch_columns(commit for commit in history if commit.version > version):
        return True
    texts = (f"SELECT * FROM {table.sql} VERSION AS OF {v}" for v in (version, history[0].version))
    try:
        before, now = (set(describe_query(warehouse, text)) for text in texts)
    except WarehouseError:
        return False
    return before <= now


def feed_begins(table: TableName, version: int, cycle: Cycle, warehouse: Warehouse) -> int:
    """Return the first version from the given one on whose later changes are all in the feed."""
    if feed_reaches(table, version, cycle, warehouse):
        return version
    history = cycle.catalog.history(warehouse, table, since=version)
    touching = [c.version for c in history if c.version > version and may_touch_columns([c])]
    lost = (v for v in touching if not feed_reaches(table, v - 1, cycle, warehouse))
    return next(lost, version)
