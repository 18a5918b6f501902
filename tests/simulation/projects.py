"""Random projects: who reads whom, with which lag, and how long a refresh takes."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from spark_dynamic.schedule.graph import Graph, Model
from spark_dynamic.schedule.lags import TargetLag


@dataclass(frozen=True)
class Work:
    """What a refresh costs: something always, and something for the time that it covers."""

    fixed: timedelta
    per_time: float = 0.0
    # The slowest refresh takes this much longer than the fastest.
    spread: float = 0.0

    def duration(self, covered: timedelta, rng: random.Random) -> timedelta:
        return (self.fixed + self.per_time * covered) * (1 + self.spread * rng.random())


@dataclass(frozen=True)
class Project:
    graph: Graph
    work: dict[str, Work]


def random_project(
    rng: random.Random,
    tables: int,
    lags: Sequence[TargetLag],
    longest: timedelta,
    spread: float = 0.0,
    sanity: float = 0.9,
    group: int = 0,
) -> Project:
    """Make a project of so many tables, each of which reads up to three earlier ones.

    `sanity` is the share of tables that do not ask for less lag than their upstreams have. With a
    `group`, tables read only others of the same group of that size, so that chains are not long.
    """
    names = [f"t{number}" for number in range(tables)]
    models: dict[str, Model] = {}
    for number, name in enumerate(names):
        # Mostly near ones, so that there are long chains; a fifth begins a chain.
        first = number // group * group if group else 0
        near = names[max(first, number - 20) : number]
        count = 0 if rng.random() < 0.2 else rng.randint(1, 3)
        upstreams = tuple(rng.sample(near, min(count, len(near))))
        lag = rng.choice(lags)
        if isinstance(lag, timedelta) and rng.random() < sanity:
            above = (models[upstream].target_lag for upstream in upstreams)
            lag = max([lag, *(other for other in above if isinstance(other, timedelta))])
        models[name] = Model(lag, upstreams)
    work = {name: Work(longest * rng.random(), spread=spread) for name in names}
    return Project(Graph(models), work)
