"""Dynamic tables in a dbt run: requests from models, one cycle per invocation, the state table."""

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.spark_dynamic.__version__ import version
from dbt.adapters.spark_dynamic.config import read_config
from dbt.adapters.spark_dynamic.connections import RESULT_SETTINGS
from dbt.adapters.spark_dynamic.errors import RefreshError
from dbt.adapters.spark_dynamic.responses import RefreshResponse, refresh_response, trigger
from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.apply.commit import carrying
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.frontier.state import (
    STATE_TABLE,
    KnownState,
    StateRow,
    append_rows,
    create_state_table,
    read_state,
    row_of,
    state_metadata,
)
from spark_dynamic.names import TableName, quote
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan, plan_refresh
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.run import Outcome, frontier_of, run_plan

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter

# So many runs may overlap without missing each other's summary in the state table.
_RECENT_RUNS = 10
# Unasked rebuilds: the user should hear of them.
_EXPECTED = {
    "INITIAL_BUILD",
    "REQUESTED",
    "CONFIGURED_FULL",
    "CHEAPER",
    "EMPTY_RUN",
    "AFTER_EMPTY_RUN",
    "",
}


# Besides ANSI mode and time zone, these change what a query returns.
_FURTHER_SETTINGS = (
    "spark.sql.caseSensitive", "spark.sql.timestampType", "spark.sql.mapKeyDedupPolicy",
)  # fmt: skip
_SETTING_FAMILIES = ("spark.sql.legacy.", "spark.sql.parser.", "spark.sql.decimalOperations.")


class PlannedRefresh:
    """A plan on its way through the materialization."""

    def __init__(self, plan: Plan, cycle: Cycle, started_at: datetime) -> None:
        self.plan = plan
        self.cycle = cycle
        self.started_at = started_at
        self.outcome: Outcome | None = None

    @property
    def writes(self) -> bool:
        """Tell whether rows will be written (or were, afterwards), so that hooks run."""
        return (self.outcome.plan if self.outcome else self.plan).decision.writes

    @property
    def sql(self) -> str:
        """Every statement that was run, for `target/run`."""
        statements = self.outcome.statements if self.outcome else []
        return ";\n\n".join(statements) + ";" if statements else "-- nothing to do"

    @property
    def builds_storage(self) -> bool:
        """Tell whether a new table was made, which has no constraints yet."""
        return self.outcome is not None and self.outcome.plan.builds_generation


class DynamicTables:
    """All that the adapter keeps about dynamic tables while dbt runs."""

    def __init__(self, adapter: "SparkDynamicAdapter") -> None:
        self._adapter = adapter
        self._lock = threading.Lock()
        self._cycle: Cycle | None = None
        self._written: dict[TableName, datetime] = {}

    def plan(self, request: Request) -> PlannedRefresh:
        """Plan a refresh; the first one of an invocation opens its cycle."""
        started_at = datetime.now(UTC)
        warehouse = DbtWarehouse(self._adapter)
        cycle = self._open(warehouse)
        with self._reported(request, cycle, started_at):
            plan = plan_refresh(request, cycle, warehouse)
        if plan.stored and plan.stored.tail.newest:
            self._heal_state(plan, cycle)
        if plan.decision.warning:
            self._adapter.warn(f"{request.view}: {plan.decision.warning}")
        return PlannedRefresh(plan, cycle, started_at)

    def look(self) -> tuple[Cycle, DbtWarehouse]:
        """Return a cycle for looking only: nothing of it is kept or written down."""
        warehouse = DbtWarehouse(self._adapter)
        return Cycle(_invocation_id(), warehouse.now(), self._known_state(warehouse)), warehouse

    def run(self, planned: PlannedRefresh) -> RefreshResponse:
        """Run what was planned."""
        plan, cycle = planned.plan, planned.cycle
        with self._reported(plan.request, cycle, planned.started_at):
            outcome = run_plan(plan, cycle, DbtWarehouse(self._adapter))
        planned.outcome = outcome
        self._add_event(_success(outcome, cycle, planned.started_at), cycle)
        decision = outcome.plan.decision
        if decision.writes and decision.reason.code not in _EXPECTED:
            self._adapter.warn(f"{plan.request.view} was rebuilt in full. {decision.reason} ")
        return refresh_response(outcome)

    def note_written(self, table: TableName) -> None:
        """Remember what another node of this invocation wrote."""
        now = datetime.now(UTC)
        with self._lock:
            self._written[table] = now
            if self._cycle:
                self._cycle.note_written(table, now)

    def flush(self) -> None:
        """Append the events of this invocation to the state table, in one statement."""
        with self._lock:
            cycle, self._cycle = self._cycle, None
            self._written.clear()
        if cycle is None or not cycle.events:
            return
        warehouse = DbtWarehouse(self._adapter)
        table = self.state_table
        try:
            if not cycle.known.exists:
                warehouse.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(table.schema)}")
                warehouse.execute(create_state_table(table))
            with carrying(warehouse, state_metadata(cycle.known, cycle.events)):
                warehouse.execute(append_rows(table, cycle.events))
        except WarehouseError as error:
            # The commits hold the same facts; the next run writes them again.
            self._adapter.warn(f"The refreshes could not be written to {table}: {error}")

    @property
    def state_table(self) -> TableName:
        """Where refreshes are listed."""
        credentials = self._adapter.config.credentials
        return TableName.of(credentials.state_schema or credentials.schema, STATE_TABLE)

    def _open(self, warehouse: DbtWarehouse) -> Cycle:
        with self._lock:
            if self._cycle is None:
                known = self._known_state(warehouse)
                self._cycle = Cycle(_invocation_id(), warehouse.now(), known)
                for table, at in self._written.items():
                    self._cycle.note_written(table, at)
            return self._cycle

    def _known_state(self, warehouse: DbtWarehouse) -> KnownState:
        try:
            known = read_state(warehouse.history(self.state_table, _RECENT_RUNS))
            if known.newest_timestamp is None:
                # Maintenance of the state table may have made many commits in a row.
                known = read_state(warehouse.history(self.state_table, 100 * _RECENT_RUNS))
            return known
        except WarehouseError as error:
            if error.condition in ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"):
                return KnownState()
            raise

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
        row = _failure(error, self._request, self._cycle, self._started_at)
        self._tables._add_event(row, self._cycle)
        if isinstance(error, EngineError):
            raise RefreshError(str(error)) from error
        if isinstance(error, WarehouseError):
            raise DbtDatabaseError(str(error)) from error


def _success(outcome: Outcome, cycle: Cycle, started_at: datetime) -> StateRow:
    plan, recorded = outcome.plan, outcome.recorded
    newest = plan.stored.tail.newest if plan.stored else None
    holder = recorded or newest
    return StateRow(
        relation=str(plan.request.view),
        model_id=plan.request.model,
        refresh_action=plan.decision.action,
        refresh_mode=plan.request.config.refresh_mode.value,
        refresh_trigger=trigger(outcome),
        state="SUCCEEDED",
        reason_code=plan.decision.reason.code,
        reason=str(plan.decision.reason),
        cycle_id=cycle.id,
        invocation_id=cycle.invocation,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        engine_version=version,
        incarnation=holder.record.incarnation if holder else None,
        refresh_number=holder.record.refresh_number if holder else None,
        data_timestamp=outcome.data_timestamp,
        frontier=frontier_of(outcome),
        version=holder.commit.version if holder else None,
        fingerprint=(holder.record.fingerprint or None) if holder else None,
        rows_changed_per_source=outcome.rows_changed,
        guard_verdict=plan.verdict.code or "PASSED",
        settings=plan.request.settings,
        rows_inserted=outcome.rows_inserted or 0,
        rows_deleted=outcome.rows_deleted or 0,
        statements=len(outcome.statements),
    )


def _failure(error: Exception, request: Request, cycle: Cycle, started_at: datetime) -> StateRow:
    code = error.code if isinstance(error, EngineError) else "FAILED"
    return StateRow(
        relation=str(request.view),
        model_id=request.model,
        refresh_action="",
        refresh_mode=request.config.refresh_mode.value,
        refresh_trigger=request.trigger,
        state="FAILED",
        reason_code=code,
        reason=str(error).splitlines()[0] if str(error) else code,
        cycle_id=cycle.id,
        invocation_id=cycle.invocation,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        engine_version=version,
        settings=request.settings,
        error=str(error),
    )


def request_for(
    adapter: "SparkDynamicAdapter",
    model: Mapping[str, Any],
    relation: Any,
    sql: str,
    full_refresh: bool,
) -> Request:
    """Translate a dbt model into a request."""
    config = model["config"]
    docs = config.get("persist_docs") or {}
    columns = model.get("columns", {}).values() if docs.get("columns") else ()
    chosen = adapter.config.credentials.server_side_parameters
    keys = [*RESULT_SETTINGS, *_FURTHER_SETTINGS]
    keys += [key for key in sorted(chosen) if key.startswith(_SETTING_FAMILIES)]
    arguments = getattr(adapter.config, "args", None)
    is_partial = getattr(arguments, "EMPTY", False) or getattr(arguments, "SAMPLE", None)
    return Request(
        model=model["unique_id"],
        view=TableName.of(relation.schema, relation.identifier),
        sql=sql.strip().removesuffix(";"),
        schema=adapter.config.credentials.schema,
        config=read_config(model),
        settings={key: chosen[key] for key in keys if key in chosen},
        engine_version=version,
        full_refresh=full_refresh,
        full_refresh_forbidden=config.get("full_refresh") is False,
        leaves_no_state=bool(is_partial),
        comment=model.get("description") if docs.get("relation") else None,
        column_comments={c["name"]: c["description"] for c in columns if c.get("description")},
    )


def _invocation_id() -> str:
    from dbt_common.invocation import get_invocation_id

    return str(get_invocation_id())
