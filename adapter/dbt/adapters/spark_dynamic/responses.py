"""What dbt prints and writes down about a refresh."""

from dataclasses import dataclass
from datetime import datetime

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.spark_dynamic.planned_refresh import QuietRefresh
from spark_dynamic.clock import stamp
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.run import Outcome
from spark_dynamic.support import Reason


@dataclass
class RefreshResponse(AdapterResponse):
    """The `adapter_response` of a dynamic table; its fields are a contract with tools."""

    refresh_action: str = ""
    refresh_mode: str = ""
    refresh_trigger: str = ""
    reason_code: str = ""
    reason: str = ""
    statements: int = 0
    rows_inserted: int | None = None
    rows_deleted: int | None = None
    data_timestamp: str | None = None


def refresh_response(outcome: Outcome) -> RefreshResponse:
    """Report an outcome."""
    plan = outcome.plan
    decision = plan.decision
    counted = outcome.rows_inserted is not None and outcome.rows_deleted is not None
    affected = (outcome.rows_inserted or 0) + (outcome.rows_deleted or 0)
    moment = outcome.data_timestamp
    return RefreshResponse(
        _message=status_line(outcome),
        code=decision.action,
        rows_affected=affected if counted else None,
        refresh_action=decision.action,
        refresh_mode=plan.request.config.refresh_mode.value,
        refresh_trigger=trigger(outcome),
        reason_code=decision.reason.code,
        reason=str(decision.reason),
        statements=len(outcome.statements),
        rows_inserted=outcome.rows_inserted,
        rows_deleted=outcome.rows_deleted,
        data_timestamp=stamp(moment) if moment else None,
    )


def quiet_response(quiet: QuietRefresh) -> RefreshResponse:
    """Report a table to which nothing has happened."""
    request = quiet.request
    return RefreshResponse(
        _message="NO_DATA",
        code="NO_DATA",
        refresh_action="NO_DATA",
        refresh_mode=request.config.refresh_mode.value,
        refresh_trigger=request.trigger,
        data_timestamp=stamp(quiet.cycle.data_timestamp),
    )


def held_response(
    line: str, request: Request, why: Reason, data_timestamp: datetime | None
) -> RefreshResponse:
    """Report a table that is not refreshed in this run; the line's first word is the action."""
    action = line.split()[0]
    return RefreshResponse(
        _message=line,
        code=action,
        refresh_action=action,
        refresh_mode=request.config.refresh_mode.value,
        refresh_trigger=request.trigger,
        reason_code=why.code,
        reason=str(why),
        data_timestamp=stamp(data_timestamp) if data_timestamp else None,
    )


def trigger(outcome: Outcome) -> str:
    """Say what made the refresh happen."""
    return outcome.plan.request.trigger if outcome.plan.stored else "CREATION"


def status_line(outcome: Outcome) -> str:
    """Return the line that dbt shows; its first word is the action."""
    decision = outcome.plan.decision
    match decision.action:
        case "FULL" | "REINITIALIZE":
            rows = f"+{outcome.rows_inserted} -{outcome.rows_deleted}"
            return f"{decision.action} {rows} ({decision.reason.code})"
        case "INCREMENTAL":
            return f"INCREMENTAL +{outcome.rows_inserted} -{outcome.rows_deleted}"
        case "WAITING":
            return f"WAITING for {decision.detail}"
    return decision.action
