"""Dynamic tables in a dbt run: one cycle per invocation, and the state table at its end."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dbt.adapters.spark_dynamic.asked import REFRESH_VARIABLE, asked_for
from dbt.adapters.spark_dynamic.change_windows import ChangeWindows
from dbt.adapters.spark_dynamic.errors import reported
from dbt.adapters.spark_dynamic.job_count import JobCount
from dbt.adapters.spark_dynamic.planned_refresh import PlannedRefresh, QuietRefresh
from dbt.adapters.spark_dynamic.project import Project, project_of
from dbt.adapters.spark_dynamic.responses import (
    RefreshResponse,
    quiet_response,
    refresh_response,
)
from dbt.adapters.spark_dynamic.run_schedule import (
    Listed,
    RunSchedule,
    listed_relations,
    listed_texts,
)
from dbt.adapters.spark_dynamic.state_rows import (
    event_row,
    failure_row,
    quiet_row,
    success_row,
)
from dbt.adapters.spark_dynamic.state_store import StateStore
from dbt.adapters.spark_dynamic.tries import Tries
from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.state import KnownState, StateRow, row_of
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan, plan_refresh
from spark_dynamic.refresh.prepared import Prepared
from spark_dynamic.refresh.quiet import quiet, settle
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.run import Outcome, foresee, run_plan
from spark_dynamic.refresh.show import describe_as_it_is
from spark_dynamic.refresh.windows import drop_unread
from spark_dynamic.schedule.remembered import NOT_DUE, Marks, remember
from spark_dynamic.schedule.situation import Asked

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter


class DynamicTables:
    """All that the adapter keeps about dynamic tables while dbt runs."""

    def __init__(self, adapter: "SparkDynamicAdapter") -> None:
        self._adapter = adapter
        self.state = StateStore(adapter.config.credentials)
        self.windows = ChangeWindows()
        self._lock = threading.Lock()
        self._cycle: Cycle | None = None
        self._schedule: RunSchedule | None = None
        self._written: dict[TableName, datetime] = {}
        self._tries = Tries()
        # What was computed before the pre-hooks of a table.
        self._prepared: dict[TableName, Prepared] = {}
        self._has_told_how_to_force = False
        self._looking = threading.Lock()
        self._looked_in: Cycle | None = None

    def held(self, request: Request) -> RefreshResponse | None:
        """Return what to report of a table that is not refreshed in this run; None if it is.

        The first dynamic table of an invocation opens its cycle; the others find it open, so
        that one which is not due costs no statement.
        """
        warehouse = DbtWarehouse(self._adapter)
        started_at = warehouse.now()
        cycle, schedule = self._open(warehouse)
        response = schedule.held(request)
        if response is None:
            self._tries.begin(request, started_at)
            return None
        if schedule.is_first_met(str(request.view)):
            mode = request.config.refresh_mode.value
            row = event_row(str(request.view), request.model, mode, NOT_DUE, cycle, started_at)
            self._add_event(row, cycle)
        if response.refresh_action == NOT_DUE:
            self._tell_how_to_force()
        return response

    def describe(self, request: Request) -> bool:
        """Bring what is said about a held table up to date; tell whether grants are to be, too.

        A model that was reconfigured is due, unless it is suspended or has to wait.
        """
        warehouse = DbtWarehouse(self._adapter)
        cycle, schedule = self._open(warehouse)
        if not schedule.situation.known_of(str(request.view)).is_reconfigured:
            return False
        with reported():
            return describe_as_it_is(request, cycle, warehouse)

    def plan(self, request: Request) -> PlannedRefresh | QuietRefresh:
        """Plan a refresh; the windows of changes that the model reads are refreshed first."""
        warehouse = DbtWarehouse(self._adapter)
        started_at = warehouse.now()
        cycle, schedule = self._open(warehouse)
        self._look_around(cycle, schedule, warehouse)
        began, jobs = cycle.catalog.now(), JobCount()
        with self._reported(request, cycle, started_at):
            request = replace(request, decided_at=schedule.data_timestamp(request))
            settled = quiet(request, cycle, warehouse)
            if settled:
                return QuietRefresh(request, settled, cycle, started_at)
            with jobs.counting(warehouse):
                windows = self._refresh_windows(request, cycle, warehouse)
                plan = plan_refresh(request, cycle, warehouse)
        if plan.stored and plan.stored.tail.newest:
            self._heal_state(plan, cycle)
        if plan.decision.warning:
            self._adapter.warn(f"{request.view}: {plan.decision.warning}")
        owes_hooks = schedule.situation.known_of(str(request.view)).owes_hooks
        return PlannedRefresh(plan, cycle, started_at, began, windows, jobs, owes_hooks)

    def foresee(self, planned: PlannedRefresh | QuietRefresh) -> None:
        """Find out whether rows will be written: hooks run only then."""
        if not isinstance(planned, PlannedRefresh):
            return
        warehouse, view = DbtWarehouse(self._adapter), planned.plan.request.view
        with planned.jobs.counting(warehouse):
            found = foresee(planned.plan, planned.cycle, warehouse, planned.statements)
        planned.plan, prepared = found
        if prepared is not None:
            self._prepared[view] = prepared

    def _refresh_windows(
        self, request: Request, cycle: Cycle, warehouse: DbtWarehouse
    ) -> list[Outcome]:
        """Bring the windows of changes up to date that a model reads."""
        outcomes = []
        started_at = warehouse.now()
        for outcome in self.windows.of(request).refresh(cycle, warehouse):
            plan, ended_at = outcome.plan, warehouse.now()
            if plan.stored and plan.stored.tail.newest:
                self._heal_state(plan, cycle)
            self._add_event(success_row(outcome, cycle, (started_at, ended_at), Marks()), cycle)
            outcomes.append(outcome)
            started_at = ended_at
        return outcomes

    def _look_around(self, cycle: Cycle, schedule: RunSchedule, warehouse: DbtWarehouse) -> None:
        """Look once, for all tables that are due, at what exists and where logs end."""
        with self._looking:
            if self._looked_in is cycle:
                return
            own = listed_texts(self._adapter, schedule.project)
            cycle.catalog.look(warehouse, schedule.settled(), own)
            self._looked_in = cycle

    def run(self, planned: PlannedRefresh | QuietRefresh) -> RefreshResponse:
        """Run what was planned."""
        warehouse = DbtWarehouse(self._adapter)
        if isinstance(planned, QuietRefresh):
            return self._leave(planned, warehouse.now())
        plan, cycle = planned.plan, planned.cycle
        reported = self._reported(plan.request, cycle, planned.started_at)
        prepared = self._prepared.get(plan.request.view)
        with reported, planned.jobs.counting(warehouse):
            outcome = run_plan(
                plan, cycle, warehouse, statements=planned.statements, prepared=prepared
            )
        planned.outcome = outcome
        planned.noted += cycle.take_warnings()
        _, schedule = self._open(warehouse)
        marks, times = schedule.marks_of(plan.request), (planned.started_at, warehouse.now())
        settled = settle(outcome, cycle, planned.began, warehouse)
        row = success_row(outcome, cycle, times, marks, settled)
        self._add_event(replace(row, jobs=planned.jobs.jobs), cycle)
        self._tries.refreshed(plan.request.view, planned.hooks_to_run)
        self._drop_unread_windows(planned, outcome, cycle, warehouse)
        return refresh_response(outcome)

    def _drop_unread_windows(
        self, planned: PlannedRefresh, outcome: Outcome, cycle: Cycle, warehouse: DbtWarehouse
    ) -> None:
        """Drop the windows that only a former definition of the model has read."""
        request, action = outcome.plan.request, outcome.plan.decision.action
        read = self.windows.of(request).windows
        is_rebuilt = action in ("FULL", "REINITIALIZE")
        is_settled = action in ("NO_DATA", "INCREMENTAL") and bool(read)
        if request.leaves_no_state or not (is_rebuilt or is_settled):
            return
        try:
            outcome.statements += drop_unread(request, read, cycle, warehouse)
        except WarehouseError as error:
            # The next refresh tries again.
            text = f"Former changes of {request.view} could not be dropped: {error}"
            planned.noted.append(text)

    def _leave(self, quiet: QuietRefresh, now: datetime) -> RefreshResponse:
        """Note that a table was looked at, and is right as it is."""
        _, schedule = self._open(DbtWarehouse(self._adapter))
        marks, times = schedule.marks_of(quiet.request), (quiet.started_at, now)
        self._add_event(quiet_row(quiet, times, marks), quiet.cycle)
        self._tries.refreshed(quiet.request.view)
        return quiet_response(quiet)

    def ended(self, table: TableName, error: BaseException | None) -> None:
        """Count it as an error if a model failed before its refresh or after it, in a hook."""
        prepared = self._prepared.pop(table, None)
        if prepared is not None:
            prepared.drop()
        failed = self._tries.end(table, error)
        if failed and self._cycle:
            why = error if isinstance(error, Exception) else RuntimeError("The refresh was left.")
            begun = failed.request, self._cycle, failed.started_at
            self.note_failure(why, *begun, failed.action)

    def note_failure(
        self,
        error: Exception,
        request: Request,
        cycle: Cycle,
        started_at: datetime,
        action: str = "",
    ) -> None:
        """Write down a failed try; with an action, its refresh was done but not its hooks."""
        warehouse = DbtWarehouse(self._adapter)
        _, schedule = self._open(warehouse)
        times = started_at, warehouse.now()
        row = failure_row(error, request, cycle, times, schedule.marks_of(request))
        self._add_event(replace(row, refresh_action=action), cycle)
        self._tries.end(request.view)

    def note_written(self, table: TableName) -> None:
        """Remember what another node of this invocation wrote."""
        now = datetime.now(UTC)
        with self._lock:
            self._written[table] = now
            if self._cycle:
                self._cycle.note_written(table, now)

    def look(self) -> tuple[Cycle, DbtWarehouse]:
        """Return a cycle for looking only: nothing of it is kept or written down."""
        warehouse = DbtWarehouse(self._adapter)
        with self._lock:
            known = self._known_so_far()
        known = known or self.state.read(warehouse)
        return Cycle(_invocation_id(), warehouse.now(), known), warehouse

    def cycle(self) -> Cycle:
        """Return the cycle of this invocation; whoever asks first opens it."""
        return self._open(DbtWarehouse(self._adapter))[0]

    def begin(self, asks: Callable[[Project], Asked]) -> RunSchedule:
        """Open a cycle for something else than what dbt has selected."""
        return self._open(DbtWarehouse(self._adapter), asks)[1]

    def schedule(self, cycle: Cycle, asked: Asked) -> RunSchedule:
        """Decide which tables are due in a cycle that is for looking only."""
        project, listed = self._project(), Listed()
        if self._cycle is None:
            # dbt's list does not have what this invocation makes; but a cycle has looked then.
            warehouse = DbtWarehouse(self._adapter)
            listed = listed_relations(self._adapter, project, cycle.catalog, warehouse)
        return RunSchedule(project, cycle.known, cycle.data_timestamp, asked, listed)

    def forecast(self, cycle: Cycle, selected: set[str]) -> RunSchedule:
        """Decide what a run of a selection, asked for in the same way, would find due."""
        asked = asked_for(self._adapter, self._project())
        return self.schedule(cycle, replace(asked, selected=selected))

    def due_models(self, manifest: Any) -> list[str]:
        """Return the unique ids of the models that a run of the whole project would refresh."""
        cycle, warehouse = self.look()
        project = project_of(manifest)
        listed: Listed = {
            schema: cycle.catalog.tables(warehouse, name)
            for schema, name in project.schemas.items()
        }
        # dbt has not selected anything yet.
        asked = replace(asked_for(self._adapter, project), selected=None)
        schedule = RunSchedule(project, cycle.known, cycle.data_timestamp, asked, listed)
        found = schedule.verdicts.items()
        return [project.tables[name].node.unique_id for name, v in found if v.is_due]

    def _project(self) -> Project:
        # dbt gives every adapter its manifest, as the place to look for macros.
        manifest: Any = self._adapter._macro_resolver
        return project_of(manifest)

    def _known_so_far(self) -> KnownState | None:
        """Return what is known with what this invocation did, which nobody has written yet."""
        if self._cycle is None:
            return None
        known, events = self._cycle.known, [row.event for row in self._cycle.events]
        return replace(known, tables=remember(known.tables, events))

    def flush(self) -> None:
        """Append the events of this invocation to the state table, in one statement."""
        with self._lock:
            cycle, self._cycle = self._cycle, None
            schedule, self._schedule = self._schedule, None
            self._written.clear()
        if cycle is None:
            return
        if cycle.events:
            self._write_state(cycle, schedule)
        # Those that no refresh has told.
        for text in cycle.take_warnings():
            self._adapter.warn(text)

    def _write_state(self, cycle: Cycle, schedule: RunSchedule | None) -> None:
        try:
            late = schedule.lateness if schedule else {}
            self.state.write(DbtWarehouse(self._adapter), cycle, late)
        except WarehouseError as error:
            # The commits hold the same facts; the next run writes them again.
            where = self.state.table
            self._adapter.warn(f"The refreshes could not be written to {where}: {error}")

    def _open(
        self, warehouse: DbtWarehouse, asks: Callable[[Project], Asked] | None = None
    ) -> tuple[Cycle, RunSchedule]:
        with self._lock:
            if self._cycle is None or self._schedule is None:
                known = self.state.read(warehouse)
                cycle = Cycle(_invocation_id(), warehouse.now(), known)
                for table, at in self._written.items():
                    cycle.note_written(table, at)
                project = self._project()
                asked = asks(project) if asks else asked_for(self._adapter, project)
                listed = listed_relations(self._adapter, project, cycle.catalog, warehouse)
                moment = cycle.data_timestamp
                self._schedule = RunSchedule(project, cycle.known, moment, asked, listed)
                self._cycle = cycle
            return self._cycle, self._schedule

    def _heal_state(self, plan: Plan, cycle: Cycle) -> None:
        """Write again what the state table does not know: a run was killed, or it was lost."""
        assert plan.stored is not None and plan.stored.tail.newest is not None
        known = cycle.known.refresh_numbers.get(str(plan.request.view), 0)
        for recorded in (plan.stored.tail.newest, *plan.stored.tail.older):
            if recorded.record.refresh_number > known and recorded.record.cycle != cycle.id:
                self._add_event(row_of(recorded, plan.request.view), cycle)

    def _add_event(self, row: StateRow, cycle: Cycle) -> None:
        with self._lock:
            cycle.events.append(row)

    def _tell_how_to_force(self) -> None:
        with self._lock:
            has_told, self._has_told_how_to_force = self._has_told_how_to_force, True
        if not has_told:
            self._adapter.tell(
                "Tables that are NOT_DUE are refreshed after their next grid point, or when a "
                "table that reads them needs it. To refresh everything that is selected now, set "
                f"{REFRESH_VARIABLE}=all."
            )

    def _reported(self, request: Request, cycle: Cycle, started_at: datetime) -> "_Reported":
        return _Reported(self, request, cycle, started_at)


class _Reported:
    """Notes a failed try and lets dbt show it as `CODE: sentence`."""

    def __init__(
        self, tables: DynamicTables, request: Request, cycle: Cycle, started_at: datetime
    ) -> None:
        self._tables = tables
        self._request = request
        self._cycle = cycle
        self._started_at = started_at

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception):
            return
        self._tables.note_failure(error, self._request, self._cycle, self._started_at)
        with reported():
            raise error


def _invocation_id() -> str:
    from dbt_common.invocation import get_invocation_id

    return str(get_invocation_id())
