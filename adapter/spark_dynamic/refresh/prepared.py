"""The changes of an incremental refresh, computed before its pre-hooks and written after them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from spark_dynamic.changes.interval import Kind
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.incremental import (
    CachedViews,
    IncrementalRefresh,
    Work,
    Write,
    settings_for,
)
from spark_dynamic.refresh.new_record import next_number
from spark_dynamic.refresh.plan import Plan
from spark_dynamic.refresh.sources import beyond_travel, intervals, rows_touched
from spark_dynamic.settings import holding
from spark_dynamic.warehouse import Warehouse


@dataclass(frozen=True)
class Prepared:
    """What the write of a refresh needs. All of it is read at versions that no hook can change."""

    work: Work
    # None if the changes cancel out.
    write: Write | None
    _settings: Mapping[str, str]
    _views: CachedViews

    @contextmanager
    def statement(self, warehouse: Warehouse) -> Iterator[Write | None]:
        """Let the statement be run; what was computed for it goes with the block."""
        with holding(warehouse, self._settings):
            try:
                yield self.write
            finally:
                self.drop()

    def drop(self) -> None:
        """Let go of what was computed, if it is still there."""
        self._views.drop()


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


def prepare(work: Work, warehouse: Warehouse) -> Prepared:
    """Compute the changes and keep them; the settings for it do not reach the hooks."""
    views, settings = CachedViews(warehouse), settings_for(work, warehouse)
    try:
        with holding(warehouse, settings):
            write = IncrementalRefresh(work, views, warehouse).statement()
    except BaseException:
        views.drop()
        raise
    return Prepared(work, write, settings, views)
