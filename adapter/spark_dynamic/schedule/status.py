"""How a table stands: its lag, its target, when it is due next."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from spark_dynamic.config import DOWNSTREAM
from spark_dynamic.duration import format_duration
from spark_dynamic.schedule.grid import next_point
from spark_dynamic.schedule.lags import EVERY_RUN, ON_DEMAND
from spark_dynamic.schedule.situation import Situation


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
    # A moment in the past: it is due now.
    next_due: datetime | None


def status_of(situation: Situation, name: str) -> Status:
    """Return how a table stands."""
    moment = situation.known_of(name).data_timestamp
    lag, pace = situation.graph.lags[name], situation.paces[name]
    return Status(
        data_timestamp=moment,
        # A clock that was set back makes no table fresher than fresh.
        lag=max(situation.now - moment, timedelta()) if moment else None,
        target_lag=None if lag in (EVERY_RUN, ON_DEMAND) else lag,
        period=pace.period,
        is_feasible=pace.is_feasible,
        next_due=next_point(moment, pace.period) if moment and pace.period else None,
    )


def not_due_line(status: Status) -> str:
    """Return the status line of a table that is not due.

    >>> lag, target = timedelta(minutes=2), timedelta(minutes=10)
    >>> not_due_line(Status(None, lag, target, None, True, None))
    'NOT_DUE lag 2m of 10m'
    """
    lag = format_duration(status.lag or timedelta())
    # Without a target and not due: nobody reads it, so nobody sets the pace.
    target = format_duration(status.target_lag) if status.target_lag else DOWNSTREAM
    return f"NOT_DUE lag {lag} of {target}"
