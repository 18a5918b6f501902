"""Two weeks as they are: refreshes vary and fail now and then, and some nights no run comes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from simulation.clockwork import START, Clockwork, Done

# Until it is known how long refreshes take and how late runs come.
WARM_UP = timedelta(hours=12)
_FIRST_GAP = START + timedelta(days=2, hours=2)
_BETWEEN, _GAP = timedelta(days=3), timedelta(hours=2)


class Weather(Clockwork):
    """One refresh in fifty fails; every third night the machine is down for two hours."""

    failing = 0.02

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.failed: dict[str, list[datetime]] = {name: [] for name in self.graph.order}

    def comes(self, moment: datetime) -> bool:
        return not is_down(moment, moment)

    def fails(self, name: str) -> bool:
        has_failed = self.rng.random() < self.failing
        if has_failed:
            self.failed[name].append(self.moment)
        return has_failed


def is_down(begin: datetime, end: datetime) -> bool:
    """Tell whether the machine was down at some time between two moments."""
    nights = (_FIRST_GAP + n * _BETWEEN for n in range((end - _FIRST_GAP) // _BETWEEN + 1))
    return any(begin < night + _GAP and night <= end for night in nights)


@dataclass(frozen=True)
class Exceeded:
    """A peak that was not below the target lag, although nothing had happened."""

    name: str
    peak: timedelta
    target: timedelta
    at: datetime


def checked(world: Weather) -> tuple[int, list[Exceeded]]:
    """Return how many peaks had nothing in their way, and which of them exceeded the target.

    A table is late with reason if it or something that it reads has failed meanwhile, if no run
    came, or if its lag cannot be kept by what is known of its refreshes.
    """
    count, found = 0, []
    troubles = _troubles(world)
    for name, before, after in _pairs(world):
        begin, end = before.data_timestamp, after.refresh.ended_at
        target = world.graph.lags[name]
        has_failed = any(begin <= moment <= end for moment in troubles[name])
        if begin < START + WARM_UP or has_failed or not after.is_feasible or is_down(begin, end):
            continue
        count += 1
        if end - begin >= target:
            found.append(Exceeded(name, end - begin, target, end))
    return count, found


def _pairs(world: Clockwork) -> Iterator[tuple[str, Done, Done]]:
    for name, done in world.done.items():
        if world.graph.lags[name] and done and done[-1].period:
            yield from ((name, before, after) for before, after in pairwise(done))


def _troubles(world: Weather) -> dict[str, list[datetime]]:
    """Return when a table or something that it reads has failed."""
    found: dict[str, list[datetime]] = {}
    for name in world.graph.order:
        moments = set(world.failed[name])
        for upstream in world.graph.upstreams[name]:
            moments.update(found[upstream])
        found[name] = sorted(moments)
    return found
