"""Short ways to write graphs and situations; minutes count from the start of a day."""

from datetime import UTC, datetime, timedelta
from typing import Any

from spark_dynamic.schedule.due import Verdict, what_is_due
from spark_dynamic.schedule.graph import Graph, Model
from spark_dynamic.schedule.known import Known
from spark_dynamic.schedule.lags import TargetLag
from spark_dynamic.schedule.situation import Asked, Situation

# A point of every period up to 48 · 2⁶ seconds: minutes count from a common grid point.
MIDNIGHT = datetime.fromtimestamp(48 * 2**6 * 575_000, UTC)

Lag = TargetLag | int


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def at(second: float) -> datetime:
    return MIDNIGHT + seconds(second)


def graph_of(**tables: tuple[Lag, str] | Lag) -> Graph:
    """Make a graph: `b=(5, "a c")` reads a and c and has a target lag of five minutes."""
    models = {}
    for name, given in tables.items():
        lag, upstreams = given if isinstance(given, tuple) else (given, "")
        lag = minutes(lag) if isinstance(lag, int) else lag
        models[name] = Model(lag, tuple(upstreams.split()))
    return Graph(models)


def built(*timestamps: float, took: float = 0, **others: Any) -> Known:
    """A table with these data timestamps, newest first."""
    durations = (seconds(took),) if took else ()
    return Known(tuple(at(t) for t in timestamps), durations, **others)


def decide(
    graph: Graph, now: float, asked: Asked | None = None, /, **known: Known
) -> dict[str, Verdict]:
    return what_is_due(Situation(graph, known, at(now), asked or Asked()))


def shown(verdicts: dict[str, Verdict]) -> dict[str, str]:
    """Write verdicts shortly: the cause, and the second of the data timestamp."""
    texts = {}
    for name, verdict in verdicts.items():
        moment = verdict.data_timestamp
        when = f" at {(moment - MIDNIGHT).total_seconds():g}" if moment else ""
        waits = f" for {' '.join(verdict.waits_for)}" if verdict.waits_for else ""
        texts[name] = f"{verdict.why}{when}{waits}"
    return texts
