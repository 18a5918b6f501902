"""What the fake Delta does about constraints: a row that is not known to be right is wrong."""

from fake_delta import DeltaTable, Snapshot
from fake_query import Leaf, expand, run_query

from spark_dynamic.errors import WarehouseError

PREFIX = "delta.constraints."


def check_rows(table: DeltaTable, snapshot: Snapshot) -> None:
    """Refuse rows that are written and break a constraint."""
    for key, condition in table.properties.items():
        if key.startswith(PREFIX) and _count_wrong(table, snapshot, condition):
            name = key.removeprefix(PREFIX)
            raise WarehouseError(
                "TASK_WRITE_FAILED",
                "[TASK_WRITE_FAILED] Task failed.\n"
                "Caused by: [DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] "
                f"CHECK constraint {name} ({condition}) violated by row with values: a row.",
            )


def add_constraint(table: DeltaTable, name: str, condition: str) -> None:
    """Add a constraint, unless rows that are there break it."""
    name = name.replace("``", "`").lower()
    if PREFIX + name in table.properties:
        raise WarehouseError("DELTA_CONSTRAINT_ALREADY_EXISTS", f"{name} is there already")
    if wrong := _count_wrong(table, table.newest, condition):
        message = f"{wrong} rows in {table.name} violate the new CHECK constraint ({condition})."
        condition = "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
        raise WarehouseError(condition, f"[{condition}] {message}")
    table.properties[PREFIX + name] = condition


def _count_wrong(table: DeltaTable, snapshot: Snapshot, condition: str) -> int:
    leaf = Leaf("r_rows", table.name, snapshot.columns, snapshot.rows)
    wrong = f"SELECT 1 FROM rows WHERE NOT coalesce({condition}, false)"
    return len(run_query(expand(wrong, "shop", lambda *_: leaf)))
