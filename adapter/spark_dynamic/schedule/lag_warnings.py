"""Target lags that cannot mean what they say."""

from dataclasses import dataclass
from datetime import timedelta

from spark_dynamic.config import DOWNSTREAM
from spark_dynamic.duration import format_duration
from spark_dynamic.schedule.graph import Graph
from spark_dynamic.schedule.lags import EVERY_RUN


@dataclass(frozen=True)
class SlowerUpstream:
    """A table that asks for a shorter lag than one that it reads, which it cannot have."""

    model: str
    target_lag: timedelta
    upstream: str
    upstream_lag: timedelta

    def __str__(self) -> str:
        return (
            f"{self.model} has target_lag {format_duration(self.target_lag)}, but reads "
            f"{self.upstream}, which is refreshed for a lag of "
            f"{format_duration(self.upstream_lag)}. {self.model} cannot be fresher than that. "
            f"Give {self.upstream} a shorter target_lag, or 'downstream'."
        )


@dataclass(frozen=True)
class NoConsumer:
    """A table that leaves its lag to its consumers, of which none has one."""

    model: str
    # A consumer without a target lag wants it on every run.
    follows_runs: bool = False

    @property
    def result(self) -> str:
        """What becomes of it."""
        if self.follows_runs:
            return "it is refreshed on every run, as its consumers are"
        return "it is refreshed only when that is asked for"

    def __str__(self) -> str:
        return (
            f"{self.model} has target_lag 'downstream', but no dynamic table with a target lag of "
            f"its own reads it, however far down: {self.result}. "
            "Give it a duration, or no target_lag."
        )


LagWarning = SlowerUpstream | NoConsumer


def lag_warnings(graph: Graph) -> list[LagWarning]:
    """Find the target lags of a project that cannot mean what they say."""
    warnings: list[LagWarning] = []
    with_lag = _read_by_a_lag(graph)
    # The slowest table that each one depends on, however far up, and its lag.
    slowest: dict[str, tuple[timedelta, str]] = {}
    for name in graph.order:
        lag, target = graph.lags[name], graph.models[name].target_lag
        above = max((slowest[u] for u in graph.upstreams[name]), default=(EVERY_RUN, ""))
        slowest[name] = max(above, (lag, name))
        if isinstance(target, timedelta) and target < above[0]:
            warnings.append(SlowerUpstream(name, target, above[1], above[0]))
        elif target == DOWNSTREAM and name not in with_lag:
            warnings.append(NoConsumer(name, follows_runs=lag == EVERY_RUN))
    return warnings


def _read_by_a_lag(graph: Graph) -> set[str]:
    """Return the tables that are read by one with a duration, directly or through `downstream`."""
    found: set[str] = set()
    for name in reversed(graph.order):
        for consumer in graph.consumers[name]:
            target = graph.models[consumer].target_lag
            if isinstance(target, timedelta) or (target == DOWNSTREAM and consumer in found):
                found.add(name)
    return found
