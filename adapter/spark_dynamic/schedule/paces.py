"""How often each table is refreshed: the longest canonical period that keeps its lag.

A refresh i ends with a peak of the lag: its end minus the data timestamp of the refresh before.
That is p + w + d: the time between the two data timestamps, the time that it waits in its cycle
(for its upstreams, for a free thread, for other nodes of the run), and its own duration. Where
runs come from outside, one comes up to r after a grid point (its lateness), so p + r + w + d has
to stay below the target lag.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from spark_dynamic.config import DOWNSTREAM
from spark_dynamic.schedule.graph import Graph
from spark_dynamic.schedule.grid import LONGEST, SHORTEST, longest_below
from spark_dynamic.schedule.known import Known
from spark_dynamic.schedule.lags import EVERY_RUN, ON_DEMAND

_NONE = timedelta()
_UNKNOWN = Known()


class Pace(NamedTuple):
    """How often a table is refreshed, and from what that follows."""

    # None: on every run, or only on demand.
    period: timedelta | None
    # Whether the target lag can be kept, as far as is known.
    is_feasible: bool
    waiting: timedelta
    duration: timedelta


def find_paces(
    graph: Graph, known: Mapping[str, Known], lateness: timedelta = _NONE
) -> dict[str, Pace]:
    """Choose the period of every table; none is shorter than that of an upstream."""
    durations = {name: known.get(name, _UNKNOWN).expected_duration for name in graph.order}
    waiting = _waiting(graph, durations, known)
    around = {name: lateness + waiting[name] + durations[name] for name in graph.order}
    wishes = _wishes(graph, around)
    paces: dict[str, Pace] = {}
    # Through tables without a period, too: they cannot be fresher than what they read.
    at_least: dict[str, timedelta] = {}
    for name in graph.order:
        above = _NONE
        for upstream in graph.upstreams[name]:
            above = max(above, at_least[upstream])
        period, is_feasible = None, True
        if name in wishes:
            period = above = max(wishes[name], above)
            is_feasible = period + around[name] < graph.lags[name]
        paces[name] = Pace(period, is_feasible, waiting[name], durations[name])
        at_least[name] = above
    return paces


def _waiting(
    graph: Graph, durations: Mapping[str, timedelta], known: Mapping[str, Known]
) -> dict[str, timedelta]:
    """Return how long each table waits in a run: as it did, but at least for its upstreams.

    Refreshes of upstreams that took long may not have come together with its own yet.
    """
    waiting: dict[str, timedelta] = {}
    for name in graph.order:
        longest = known.get(name, _UNKNOWN).expected_wait
        for upstream in graph.upstreams[name]:
            longest = max(longest, waiting[upstream] + durations[upstream])
        waiting[name] = longest
    return waiting


def _wishes(graph: Graph, around: Mapping[str, timedelta]) -> dict[str, timedelta]:
    """Return the longest period with which each table and its consumers keep their lags.

    The tables at the end of a chain have waited the longest, so they need the shortest periods.
    An upstream follows them, as long as its own lag is not longer than theirs: then its lag was
    not meant for them (which `lag_warnings` tells). Lags that cannot be kept at all make only
    those upstreams faster that leave their lag to their consumers.
    """
    wishes: dict[str, timedelta] = {}
    for name in reversed(graph.order):
        lag = graph.lags[name]
        if lag in (EVERY_RUN, ON_DEMAND):
            continue
        fitting = longest_below(lag - around[name])
        wish = min(wishes.get(name, LONGEST), fitting or SHORTEST)
        wishes[name] = wish
        for upstream in graph.upstreams[name]:
            follows = fitting or graph.models[upstream].target_lag == DOWNSTREAM
            if follows and EVERY_RUN < graph.lags[upstream] <= lag:
                wishes[upstream] = min(wishes.get(upstream, LONGEST), wish)
    return wishes
