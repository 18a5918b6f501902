"""The constraints of a contract on the storage of a dynamic table.

Delta checks them on every write; rows that are there already are checked when one is added. A
new generation gets them before anybody sees its rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from spark_dynamic.apply.constraints import (
    conditions_found,
    conditions_in_storage,
    constraint_statements,
)
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan
from spark_dynamic.warehouse import Warehouse


def enforce(plan: Plan, cycle: Cycle, warehouse: Warehouse) -> None:
    """Give the storage of a plan just the constraints that its contract has."""
    constraints = plan.request.constraints
    if plan.builds_generation and not constraints:
        return
    wanted = conditions_in_storage(constraints, plan.columns, plan.condition)
    rows = warehouse.rows(f"SHOW TBLPROPERTIES {plan.storage.sql}")
    found = conditions_found({row["key"]: row["value"] for row in rows})
    statements = constraint_statements(plan.storage, wanted, found)
    for statement in statements:
        warehouse.execute(statement)
    if statements:
        cycle.catalog.forget(plan.storage)


@contextmanager
def reported_violation(view: TableName) -> Iterator[None]:
    """Say in our words that rows break a constraint."""
    try:
        yield
    except WarehouseError as error:
        if not error.breaks_constraint:
            raise
        raise EngineError(
            "CONSTRAINT_VIOLATED",
            f"Rows of {view} break a constraint of its contract, so it was left as it was. "
            f"{error.sentences}",
        ) from error
