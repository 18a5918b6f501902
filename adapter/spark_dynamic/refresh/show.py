"""What stands around the rows: constraints, the view that shows them, comments, properties."""

from dataclasses import dataclass

from spark_dynamic.apply.constraints import CONSTRAINTS_PROPERTY, constraints_mark
from spark_dynamic.apply.groups import VISIBLE
from spark_dynamic.apply.storage import properties_sql, storage_name
from spark_dynamic.apply.unique_key import UNIQUE_KEY_PROPERTY
from spark_dynamic.apply.view import (
    KEYS_PROPERTY,
    Before,
    described_before,
    generation_shown,
    has_applied,
    show_storage,
    shows,
)
from spark_dynamic.config import OnConfigurationChange
from spark_dynamic.conflicts import despite_conflicts
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.names import TableName
from spark_dynamic.refresh.constraints import enforce
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan
from spark_dynamic.refresh.prune import useless_generations
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.stored import find_stored
from spark_dynamic.warehouse import Relation, Warehouse


@dataclass(frozen=True)
class _Shown:
    """A table with rows, and the view that is to show them."""

    request: Request
    storage: TableName
    columns: tuple[StoredColumn, ...]
    condition: str
    is_built_now: bool = False


def show(plan: Plan, cycle: Cycle, warehouse: Warehouse) -> None:
    """Point the view at the rows, and bring everything around them up to date."""
    request = plan.request
    if not plan.columns or _is_outdated(plan, cycle, warehouse):
        return
    enforces = plan.changes_constraints or (plan.builds_generation and bool(request.constraints))

    def show_rows() -> None:
        if enforces:
            view = cycle.catalog.relation(warehouse, request.view)
            _enforce(plan, view, cycle, warehouse)
        _show_rows(plan, enforces, cycle, warehouse)

    # Another refresh may just have made the view, or described the same storage.
    despite_conflicts(show_rows, lambda: cycle.catalog.forget(request.view))
    if plan.builds_generation and plan.stored:
        _drop_useless(plan, cycle, warehouse)


def _is_outdated(plan: Plan, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Tell whether the view shows a generation that was built after this plan was made."""
    view = cycle.catalog.relation(warehouse, plan.request.view)
    if plan.decision.writes or plan.stored is None or view is None or shows(view, plan.storage):
        return False
    return generation_shown(view) > plan.stored.all_generations[0]


def _show_rows(plan: Plan, enforces: bool, cycle: Cycle, warehouse: Warehouse) -> None:
    request = plan.request
    shown = _Shown(request, plan.storage, plan.columns, plan.condition, plan.builds_generation)
    view = cycle.catalog.relation(warehouse, request.view)
    statements = show_storage(
        request.view, request.model, view, plan.columns, plan.storage, plan.condition
    )
    statements += _descriptions(shown, view, cycle, warehouse)
    if enforces:
        mark = properties_sql({CONSTRAINTS_PROPERTY: constraints_mark(request.constraints)})
        statements.append(f"ALTER VIEW {request.view.sql} SET TBLPROPERTIES ({mark})")
    _run(statements, shown, cycle, warehouse)


def describe_as_it_is(request: Request, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Apply comments and properties to a table that is not refreshed now; False if there is none.

    Constraints wait for the next refresh: they are about rows.
    """
    stored = find_stored(request.view, cycle, warehouse)
    view = cycle.catalog.relation(warehouse, request.view)
    if stored is None or stored.tail.newest is None:
        return False
    record = stored.tail.newest.record
    condition = VISIBLE if record.state.get("filtered") else ""
    shown = _Shown(request, stored.storage, record.columns, condition)
    if not shows(view, shown.storage):
        # Something was left half done, which the next refresh repairs.
        return False
    _run(_descriptions(shown, view, cycle, warehouse), shown, cycle, warehouse)
    return True


def _descriptions(
    shown: _Shown, view: Relation | None, cycle: Cycle, warehouse: Warehouse
) -> list[str]:
    """Return the statements that bring comments and properties up to date."""
    request, description = shown.request, shown.request.description
    is_new = not shows(view, shown.storage)
    applies = request.config.on_configuration_change is OnConfigurationChange.APPLY
    with_config = is_new or (applies and not has_applied(view, description.config_mark))
    with_docs = is_new or not has_applied(view, description.docs_mark)
    before: Before | None = None
    if not shown.is_built_now and (with_config or with_docs):
        storage = cycle.catalog.relation(warehouse, shown.storage)
        before = described_before(view, storage, _keys(view, warehouse))
    return description.statements(
        request.view,
        request.model,
        shown.storage,
        shown.columns,
        with_config=with_config,
        with_docs=with_docs,
        condition=shown.condition,
        before=before,
    )


def _keys(view: Relation | None, warehouse: Warehouse) -> str:
    """Return the view's list of the user's properties, if it has one."""
    if view is None or view.view is None or KEYS_PROPERTY not in view.properties:
        return ""
    rows = warehouse.rows(f"SHOW TBLPROPERTIES {view.name.sql}")
    return next((str(row["value"]) for row in rows if row["key"] == KEYS_PROPERTY), "")


def _run(statements: list[str], shown: _Shown, cycle: Cycle, warehouse: Warehouse) -> None:
    for statement in statements:
        warehouse.execute(statement)
    if statements:
        cycle.catalog.forget(shown.request.view)
    if any(UNIQUE_KEY_PROPERTY in statement for statement in statements):
        # Whoever reads the changes of this table in the same cycle goes by its key.
        cycle.catalog.forget(shown.storage)


def _enforce(plan: Plan, view: Relation | None, cycle: Cycle, warehouse: Warehouse) -> None:
    """Check the rows; a generation that nobody has seen is dropped if they are not right."""
    try:
        enforce(plan, cycle, warehouse)
    except WarehouseError as error:
        if error.is_conflict:
            # Another refresh uses it by now.
            raise
        if plan.builds_generation or (error.breaks_constraint and _is_left(plan, view)):
            warehouse.execute(f"DROP TABLE {plan.storage.sql}")
            cycle.catalog.forget(plan.storage)
        raise


def _is_left(plan: Plan, view: Relation | None) -> bool:
    """Tell whether a run that was killed here built the generation: the view shows one before."""
    numbers = plan.stored.all_generations if plan.stored else ()
    older = (storage_name(plan.request.view, n) for n in numbers if n < plan.generation)
    return any(shows(view, storage) for storage in older)


def _drop_useless(plan: Plan, cycle: Cycle, warehouse: Warehouse) -> None:
    """Drop the old generations that nobody can need."""
    assert plan.stored is not None
    view, retention = plan.request.view, plan.request.config.history_retention
    numbers = plan.stored.all_generations
    for left in useless_generations(view, numbers, retention, cycle, warehouse, plan.storage):
        warehouse.execute(left.statement)
        cycle.catalog.forget(left.name)
