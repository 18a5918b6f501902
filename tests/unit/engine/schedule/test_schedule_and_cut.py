"""The schedule and `frontier/cut.py` agree: what is due finds a cut that is one instant."""

import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from fake_records import record_of
from fake_schedule import minutes, seconds
from simulation.clockwork import Clockwork, Done
from simulation.projects import Project, random_project
from simulation.weather import Weather, checked

from spark_dynamic.frontier.cut import Cut, Upstream, choose_cut
from spark_dynamic.frontier.record import Pin, Recorded
from spark_dynamic.names import TableName
from spark_dynamic.schedule.causes import Why
from spark_dynamic.schedule.due import Verdict
from spark_dynamic.schedule.lags import EVERY_RUN
from spark_dynamic.schedule.situation import Asked
from spark_dynamic.warehouse import Commit

LAGS = [minutes(5), minutes(10), minutes(30), "downstream", None]
REBUILT = (Why.EDITED, Why.REQUESTED, Why.RECONFIGURED)
INSTANT = timedelta(microseconds=1)

pytestmark = pytest.mark.thorough


class WithRealCuts(Clockwork):
    """Every table reads a base table of its own, too; base tables change every other minute."""

    def __init__(self, project: Project, seed: int, is_rough: bool, threads: int = 4) -> None:
        super().__init__(project, seed, threads=threads)
        self.is_rough = is_rough
        self.records: dict[str, list[Recorded]] = {name: [] for name in self.graph.order}
        self.chosen: dict[str, Cut] = {}

    def asks(self, moment: datetime) -> Asked:
        if not self.is_rough or self.rng.random() < 0.8:
            return Asked()
        chosen = {name for name in self.graph.order if self.rng.random() < 0.5}
        return Asked(chosen, force=self.rng.random() < 0.3)

    def fails(self, name: str) -> bool:
        return self.is_rough and self.rng.random() < 0.05

    def pin_at(self, table: TableName, moment: datetime) -> Pin:
        # Each base table has its own rhythm, so that some are unchanged while others are not.
        rhythm = 60 + 30 * (len(self.graph.models) - int(table.name.removeprefix("base_t")))
        version = int(moment.timestamp() // rhythm)
        return Pin(table, f"/{table.name}", version, moment)

    def cut(self, name: str, verdict: Verdict, now: datetime) -> datetime | None:
        own = self.records[name][0].record if self.records[name] else None
        after = own.data_timestamp if own else None
        if after and verdict.why in REBUILT:
            after -= INSTANT
        found = choose_cut(
            now,
            after,
            [TableName("shop", f"base_{name}")],
            [self.upstream(u) for u in self.graph.upstreams[name]],
            self.pin_at,
            lambda old, new: old.version == new.version,
            own,
            verdict.data_timestamp,
        )
        if not isinstance(found, Cut):
            return None
        self.chosen[name] = found
        return found.data_timestamp

    def upstream(self, name: str) -> Upstream:
        storage = TableName("shop", f"{name}__dyn")
        return Upstream(TableName("shop", name), storage, tuple(self.records[name]))

    def keep(self, name: str, done: Done) -> None:
        super().keep(name, done)
        cut = self.chosen[name]
        for taken in cut.upstreams.values():
            for pin in taken.record.frontier:
                assert cut.pins[pin.table].version == pin.version
        frontier = tuple(cut.pins.values())
        record = replace(record_of(name), data_timestamp=cut.data_timestamp, frontier=frontier)
        commit = Commit(len(self.done[name]), done.refresh.ended_at, "WRITE")
        self.records[name] = [Recorded(record, commit), *self.records[name]][:10]


def world(seed: int, is_rough: bool) -> WithRealCuts:
    project = random_project(random.Random(seed), 15, LAGS, seconds(5))
    made = WithRealCuts(project, seed, is_rough)
    made.run_for(timedelta(hours=4))
    return made


@pytest.mark.parametrize("seed", range(4))
def test_on_calm_days_only_tables_without_lag_wait(seed: int) -> None:
    made = world(seed, is_rough=False)
    waiting = {name for run in made.runs for name in run.waiting}
    assert {made.graph.lags[name] for name in waiting} <= {EVERY_RUN}


@pytest.mark.parametrize("seed", range(4))
def test_what_is_decided_for_now_is_refreshed_now(seed: int) -> None:
    made = world(seed, is_rough=True)
    refreshes = [done for kept in made.done.values() for done in kept]
    assert {Why.NEEDED, Why.FORCED, Why.FAILED, Why.CROSSED} <= {d.verdict.why for d in refreshes}
    others = 0
    for done in refreshes:
        decided = done.verdict.data_timestamp
        if decided == done.cycle:
            assert done.data_timestamp == decided
        # A refresh also knows which tables have not changed, so it may find something newer; then
        # a consumer may have to be content with something older, which is a valid cut as well.
        others += decided is not None and decided != done.data_timestamp
    assert others < len(refreshes) / 10


class RealCutsInWeather(WithRealCuts, Weather):
    """Nobody interferes, but refreshes vary and fail, and some nights no run comes."""

    def asks(self, moment: datetime) -> Asked:
        return Asked()

    def fails(self, name: str) -> bool:
        return Weather.fails(self, name)


@pytest.mark.parametrize(
    ("tables", "days", "peaks"),
    [(100, 4, 2_000), pytest.param(1000, 7, 40_000, marks=pytest.mark.nightly)],
)
def test_many_tables_keep_their_lags_by_real_cuts_whatever_fails(
    tables: int, days: int, peaks: int
) -> None:
    lags = [minutes(60), minutes(120), minutes(240), "downstream"]
    project = random_project(random.Random(3), tables, lags, seconds(5), 0.5, group=25)
    made = RealCutsInWeather(project, 3, is_rough=False, threads=20)
    # That cuts agree is looked at whenever one is kept.
    made.run_for(timedelta(days=days))
    assert sum(map(len, made.failed.values())) > tables / 2
    # A table waits only if something that it reads has failed.
    waiting = sum(len(run.waiting) for run in made.runs)
    assert waiting < sum(run.refreshed for run in made.runs) / 100
    count, exceeded = checked(made)
    assert count > peaks and exceeded == []
