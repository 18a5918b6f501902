"""Why a table is due by itself, or is not."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from spark_dynamic.config import DOWNSTREAM
from spark_dynamic.schedule.lags import EVERY_RUN
from spark_dynamic.schedule.situation import Situation
from spark_dynamic.schedule.suspension import Suspension, suspension


class Why(StrEnum):
    """Why a table is refreshed in this cycle, or is not. The first one that applies is told."""

    SUSPENDED_BY_A_PERSON = Suspension.BY_A_PERSON
    SUSPENDED_BY_ERRORS = Suspension.BY_ERRORS
    # It is due, but an upstream is suspended and has nothing newer for it.
    WAITING = "WAITING"
    MISSING = "MISSING"
    REQUESTED = "REQUESTED"
    EDITED = "EDITED"
    RECONFIGURED = "RECONFIGURED"
    FAILED = "FAILED"
    FORCED = "FORCED"
    NO_LAG = "NO_LAG"
    CROSSED = "CROSSED"
    # Not due by itself: a consumer that is due could not be refreshed without it.
    NEEDED = "NEEDED"
    NOT_DUE = "NOT_DUE"


BLOCKED = frozenset({Why.SUSPENDED_BY_A_PERSON, Why.SUSPENDED_BY_ERRORS, Why.WAITING})
NOT_REFRESHED = BLOCKED | {Why.NOT_DUE}
# These compute the table anew, which is also right at the data timestamp that it has.
_REBUILDS = frozenset({Why.REQUESTED, Why.EDITED, Why.RECONFIGURED})

# What `downstream` makes of a table: it goes by its consumers' periods, or waits for them.
_FOR_CONSUMERS = frozenset({Why.CROSSED, Why.NO_LAG, Why.NOT_DUE})


@dataclass(frozen=True)
class Causes:
    """Why each table of the project is due, selected or not, and whom the waiting wait for."""

    whys: dict[str, Why] = field(default_factory=dict)
    waits_for: dict[str, tuple[str, ...]] = field(default_factory=dict)


def find_causes(situation: Situation) -> Causes:
    """Find out for every table why it is due, upstreams first."""
    causes = Causes()
    for name in situation.graph.order:
        why = _own_cause(situation, name)
        if why not in NOT_REFRESHED:
            blocked = _blocked_by(situation, causes, name, why)
            if blocked:
                causes.waits_for[name], why = blocked, Why.WAITING
        causes.whys[name] = why
    _leave_unneeded(situation, causes)
    return causes


def _leave_unneeded(situation: Situation, causes: Causes) -> None:
    """Let tables be that are refreshed for their consumers, if none of these can go on.

    Whoever is due for a reason of its own still takes along what it needs.
    """
    graph, idle = situation.graph, set[str]()
    for name in reversed(graph.order):
        why = causes.whys[name]
        if graph.models[name].target_lag == DOWNSTREAM and why in _FOR_CONSUMERS:
            consumers = graph.consumers[name]
            if consumers and idle.issuperset(consumers):
                idle.add(name)
                causes.whys[name] = Why.NOT_DUE
        elif why in BLOCKED:
            idle.add(name)


def _own_cause(situation: Situation, name: str) -> Why:
    known, asked = situation.known_of(name), situation.asked
    suspended = suspension(known, situation.graph.models[name].suspend_after)
    if suspended:
        return Why(suspended)
    if not known.timestamps:
        return Why.NOT_DUE if _awaits_first_point(situation, name) else Why.MISSING
    if asked.full_refresh:
        return Why.REQUESTED
    if known.is_edited:
        return Why.EDITED
    if known.is_reconfigured:
        return Why.RECONFIGURED
    if known.errors_in_a_row:
        return Why.FAILED
    if asked.force:
        return Why.FORCED
    point = situation.last_point(name)
    if point is not None:
        return Why.CROSSED if known.timestamps[0] < point else Why.NOT_DUE
    return Why.NO_LAG if situation.graph.lags[name] == EVERY_RUN else Why.NOT_DUE


def _awaits_first_point(situation: Situation, name: str) -> bool:
    """Tell whether a new table is left to the schedule, and no grid point has come yet."""
    asked, point = situation.asked, situation.last_point(name)
    is_left = situation.graph.models[name].is_built_by_schedule and point is not None
    if not is_left or asked.full_refresh or asked.force:
        return False
    seen_at = situation.known_of(name).seen_at
    return seen_at is None or (point is not None and point <= seen_at)


def _blocked_by(situation: Situation, causes: Causes, name: str, why: Why) -> tuple[str, ...]:
    """Return the upstreams that do not go on and have nothing for this table."""
    own = situation.known_of(name).data_timestamp
    return tuple(
        upstream
        for upstream in situation.graph.upstreams[name]
        if (causes.whys[upstream] in BLOCKED or _is_left_out(situation, causes, upstream, why))
        and not is_gain(situation.known_of(upstream).data_timestamp, own, why)
    )


def _is_left_out(situation: Situation, causes: Causes, upstream: str, why: Why) -> bool:
    """Tell whether an upstream is not built yet, and nobody takes it along."""
    is_missing = not situation.known_of(upstream).timestamps
    return why is Why.NO_LAG and is_missing and causes.whys[upstream] is Why.NOT_DUE


def is_gain(moment: datetime | None, own: datetime | None, why: Why) -> bool:
    """Tell whether data of a moment bring a table on that is due and has its `own`."""
    if moment is None or own is None:
        return moment is not None
    return moment >= own if why in _REBUILDS else moment > own
