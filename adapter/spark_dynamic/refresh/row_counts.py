"""How many rows users see of a table, before and after a rebuild."""

from spark_dynamic.apply.groups import VISIBLE
from spark_dynamic.apply.storage import storage_name
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan
from spark_dynamic.warehouse import Commit, Warehouse


def visible_rows(plan: Plan, commit: Commit, warehouse: Warehouse) -> int:
    """Return how many rows users see after a rebuild."""
    if plan.condition:
        return _count(plan.storage, commit.version, plan.condition, warehouse)
    return int(commit.metrics.get("numOutputRows", 0))


def previous_rows(plan: Plan, cycle: Cycle, warehouse: Warehouse) -> int:
    """Return how many rows were there before; the write itself does not count them."""
    if plan.stored is None:
        return 0
    table = storage_name(plan.request.view, plan.stored.generation)
    if plan.record is not None and plan.record.state.get("filtered"):
        return _count(table, plan.stored.version, VISIBLE, warehouse)
    return cycle.rows(warehouse, table, plan.stored.version, plan.record)


def _count(table: TableName, version: int, condition: str, warehouse: Warehouse) -> int:
    [row] = warehouse.rows(
        f"SELECT count(*) AS n FROM {table.sql} VERSION AS OF {version} WHERE {condition}"
    )
    return int(row["n"])
