"""What an incremental refresh starts from."""

from spark_dynamic.changes.interval import Kind
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.incremental import Work
from spark_dynamic.refresh.new_record import next_number
from spark_dynamic.refresh.plan import Plan
from spark_dynamic.refresh.sources import beyond_travel, intervals, rows_touched
from spark_dynamic.warehouse import Warehouse


def work_of(plan: Plan, cycle: Cycle, warehouse: Warehouse) -> Work:
    """Return what an incremental refresh starts from."""
    record, cut, stored = plan.record, plan.cut, plan.stored
    assert plan.maintenance and record and cut and stored
    found = intervals(record, cut, plan.analysis, cycle, warehouse)
    touched = rows_touched(found, cycle, warehouse)
    # An update is counted once there; changes as they are read are counted later.
    inserted = {str(t): rows for t, rows in touched.items() if found[t].kind is Kind.INSERTS}
    return Work(
        maintenance=plan.maintenance,
        storage=plan.storage,
        version=stored.version,
        refresh=next_number(plan, cycle),
        intervals=found,
        versions=cut.versions(),
        beyond_travel=beyond_travel(found, cycle, warehouse),
        rows_changed=inserted,
        rows_touched=sum(touched.values()) if touched.keys() == found.keys() else None,
        rows_stored=lambda: cycle.rows(warehouse, plan.storage, stored.version, record),
    )
