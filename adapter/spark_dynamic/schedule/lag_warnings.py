"""Target lags that cannot mean what they say."""

from dataclasses import dataclass
from datetime import timedelta

from spark_dynamic.duration import format_duration
from spark_dynamic.schedule.graph import Graph
from spark_dynamic.schedule.lags import EVERY_RUN, ON_DEMAND


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
    """A table that leaves its lag to its consumers, and has none."""

    model: str

    def __str__(self) -> str:
        return (
            f"{self.model} has target_lag 'downstream', but no dynamic table with a pace of its "
            "own reads it: it is refreshed only when that is asked for. "
            "Give it a duration, or no target_lag."
        )


LagWarning = SlowerUpstream | NoConsumer


def lag_warnings(graph: Graph) -> list[LagWarning]:
    """Find the target lags of a project that cannot mean what they say."""
    warnings: list[LagWarning] = []
    # The slowest table that each one depends on, however far up, and its lag.
    slowest: dict[str, tuple[timedelta, str]] = {}
    for name in graph.order:
        lag, target = graph.lags[name], graph.models[name].target_lag
        above = max((slowest[u] for u in graph.upstreams[name]), default=(EVERY_RUN, ""))
        slowest[name] = max(above, (lag, name))
        if isinstance(target, timedelta) and target < above[0]:
            warnings.append(SlowerUpstream(name, target, above[1], above[0]))
        elif lag == ON_DEMAND and not graph.consumers[name]:
            warnings.append(NoConsumer(name))
    return warnings
