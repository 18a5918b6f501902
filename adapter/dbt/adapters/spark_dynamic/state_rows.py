"""What is written down about a dynamic table: rows of the state table."""

from datetime import datetime, timedelta

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.spark_dynamic.__version__ import version
from dbt.adapters.spark_dynamic.planned_refresh import QuietRefresh
from dbt.adapters.spark_dynamic.responses import trigger
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.frontier.settled import Settled
from spark_dynamic.frontier.state import StateRow
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.run import Outcome, frontier_of
from spark_dynamic.schedule.remembered import NOT_DUE, Marks

# Begin and end.
Times = tuple[datetime, datetime]


def success_row(
    outcome: Outcome, cycle: Cycle, times: Times, marks: Marks, settled: Settled | None = None
) -> StateRow:
    """Return the row of a refresh."""
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
        started_at=times[0],
        ended_at=times[1],
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
        shape=outcome.shape if plan.decision.action == "INCREMENTAL" else None,
        inserts_only=outcome.inserts_only,
        marks=marks,
        settled=settled,
        waited=_waited(outcome.data_timestamp, cycle, times),
    )


def quiet_row(quiet: QuietRefresh, times: Times, marks: Marks) -> StateRow:
    """Return the row of a table to which nothing has happened."""
    request, settled, cycle = quiet.request, quiet.settled, quiet.cycle
    return StateRow(
        relation=str(request.view),
        model_id=request.model,
        refresh_action="NO_DATA",
        refresh_mode=request.config.refresh_mode.value,
        refresh_trigger=request.trigger,
        state="SUCCEEDED",
        reason_code="",
        reason="",
        cycle_id=cycle.id,
        invocation_id=cycle.invocation,
        started_at=times[0],
        ended_at=times[1],
        engine_version=version,
        incarnation=settled.incarnation,
        refresh_number=cycle.known.refresh_numbers.get(str(request.view)),
        data_timestamp=cycle.data_timestamp,
        frontier=settled.frontier,
        version=settled.version,
        fingerprint=settled.fingerprint or None,
        guard_verdict="PASSED",
        settings=request.settings,
        rows_inserted=0,
        rows_deleted=0,
        statements=0,
        jobs=0,
        marks=marks,
        settled=settled,
        waited=_waited(cycle.data_timestamp, cycle, times),
    )


def failure_row(
    error: Exception, request: Request, cycle: Cycle, times: Times, marks: Marks
) -> StateRow:
    """Return the row of a failed try; what dbt or a hook raised has no code of its own."""
    message = error.msg if isinstance(error, DbtRuntimeError) else error
    if isinstance(error, DbtDatabaseError):
        error = WarehouseError.of(str(message))
    code, text = "FAILED", f"FAILED: {message}"
    if isinstance(error, EngineError):
        code, text = error.code, str(error)
    elif isinstance(error, WarehouseError):
        code, text = error.code, error.report
    return StateRow(
        relation=str(request.view),
        model_id=request.model,
        refresh_action="",
        refresh_mode=request.config.refresh_mode.value,
        refresh_trigger=request.trigger,
        state="FAILED",
        reason_code=code,
        reason=text.splitlines()[0],
        cycle_id=cycle.id,
        invocation_id=cycle.invocation,
        started_at=times[0],
        ended_at=times[1],
        engine_version=version,
        settings=request.settings,
        error=text,
        marks=marks,
    )


def event_row(
    relation: str, model: str, mode: str, action: str, cycle: Cycle, now: datetime
) -> StateRow:
    """Return the row of what is no refresh: a table was suspended, resumed, or first met."""
    return StateRow(
        relation=relation,
        model_id=model,
        refresh_action=action,
        refresh_mode=mode,
        refresh_trigger="SCHEDULED" if action == NOT_DUE else "MANUAL",
        state="SUCCEEDED",
        reason_code="",
        reason="",
        cycle_id=cycle.id,
        invocation_id=cycle.invocation,
        started_at=now,
        ended_at=now,
        engine_version=version,
    )


def _waited(moment: datetime | None, cycle: Cycle, times: Times) -> timedelta | None:
    """Return how long a refresh waited in its cycle; with an older cut that cannot be told."""
    return times[0] - moment if moment and moment == cycle.data_timestamp else None
