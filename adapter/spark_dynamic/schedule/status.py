"""How a table stands: its lag, its target, when it is due next."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from spark_dynamic.config import DOWNSTREAM
from spark_dynamic.duration import format_duration
from spark_dynamic.schedule.grid import next_point
from spark_dynamic.schedule.lags import EVERY_RUN, ON_DEMAND
from spark_dynamic.schedule.situation import Situation
from spark_dynamic.schedule.suspension import suspension


@dataclass(frozen=True)
class Status:
    """One table at the cycle's clock. What does not apply is None."""

    data_timestamp: datetime | None
    lag: timedelta | None
    # The lag that is to be kept: the table's own, or the least of its consumers'.
    target_lag: timedelta | None
    period: timedelta | None
    # Whether the target can be kept, by what its refreshes took so far.
    is_feasible: bool
    # A moment that is not to come: it is due now. None: on every run, on demand, or suspended.
    next_due: datetime | None


def status_of(situation: Situation, name: str) -> Status:
    """Return how a table stands."""
    known = situation.known_of(name)
    moment = known.data_timestamp
    lag, pace = situation.graph.lags[name], situation.paces[name]
    return Status(
        data_timestamp=moment,
        # A clock that was set back makes no table fresher than fresh.
        lag=max(situation.now - moment, timedelta()) if moment else None,
        target_lag=None if lag in (EVERY_RUN, ON_DEMAND) else lag,
        period=pace.period,
        is_feasible=pace.is_feasible,
        next_due=_next_due(situation, name),
    )


def _next_due(situation: Situation, name: str) -> datetime | None:
    known, model = situation.known_of(name), situation.graph.models[name]
    period, since = situation.paces[name].period, known.data_timestamp
    if suspension(known, model.suspend_after):
        return None
    if known.errors_in_a_row or known.is_edited or known.is_reconfigured:
        return situation.now
    if since is None:
        if period is None or not model.is_built_by_schedule:
            return situation.now
        since = known.seen_at or situation.now
    return next_point(since, period) if period else None


def not_due_line(status: Status, now: datetime) -> str:
    """Return the status line of a table that is not due.

    >>> now, lag, target = datetime(2026, 1, 1), timedelta(minutes=2), timedelta(minutes=10)
    >>> not_due_line(Status(now - lag, lag, target, None, True, None), now)
    'NOT_DUE lag 2m of 10m'
    """
    if status.data_timestamp is None and status.next_due is not None:
        return f"NOT_DUE first build in {format_duration(max(status.next_due - now, timedelta()))}"
    lag = format_duration(status.lag or timedelta())
    # Without a target and not due: nobody reads it, so nobody sets the pace.
    target = format_duration(status.target_lag) if status.target_lag else DOWNSTREAM
    return f"NOT_DUE lag {lag} of {target}"
