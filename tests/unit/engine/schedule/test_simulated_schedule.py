"""What holds for weeks of random projects, whoever fails and however late the runs come.

The clock and the warehouse are simulated (`tests/simulation`); the schedule is the real one, and
finds out by itself how late runs come. With runs every r seconds, the lag of a table stays below
p + r + w + d.
"""

import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise

import pytest
from fake_schedule import graph_of, minutes, seconds
from simulation.clockwork import START, Clockwork, Done
from simulation.projects import Project, Work, random_project
from simulation.weather import Weather, checked

from spark_dynamic.schedule.causes import BLOCKED, Why
from spark_dynamic.schedule.due import Verdict, what_is_due
from spark_dynamic.schedule.grid import crossed, next_point
from spark_dynamic.schedule.situation import Asked, Situation
from spark_dynamic.schedule.suspension import resumed

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LAGS = [minutes(5), minutes(10), minutes(30), HOUR, 4 * HOUR, "downstream"]
SEEDS = range(4)
# Until it is known how late runs come.
WARM_UP = minutes(30)

pytestmark = pytest.mark.thorough


def situation(world: Clockwork) -> Situation:
    return Situation(world.graph, world.known, world.moment, lateness=world.lateness())


def pairs(world: Clockwork) -> Iterator[tuple[str, Done, Done]]:
    for name, done in world.done.items():
        yield from ((name, before, after) for before, after in pairwise(done))


@cache
def calm(seed: int) -> Clockwork:
    """Nobody fails, every run comes, and each ends before the next one."""
    project = random_project(random.Random(seed), 40, LAGS, seconds(2))
    return Clockwork(project, seed, threads=40).run_for(DAY / 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_table_exceeds_its_lag_if_that_is_feasible(seed: int) -> None:
    world = calm(seed)
    assert not world.skipped
    paces, lags = situation(world).paces, world.graph.lags
    feasible = {name for name in paces if paces[name].is_feasible and paces[name].period}
    assert len(feasible) > 20
    checked = 0
    for name, before, after in pairs(world):
        peak = after.refresh.ended_at - before.data_timestamp
        pace = paces[name]
        if before.data_timestamp < START + WARM_UP:
            continue
        if after.period:
            assert peak < after.period + world.every + pace.waiting + pace.duration
        if name in feasible:
            assert peak < lags[name], name
            checked += 1
    assert checked > 200


@pytest.mark.parametrize("seed", SEEDS)
def test_lags_are_feasible_unless_there_is_a_reason(seed: int) -> None:
    # With these durations a lag can be kept, unless an upstream is slower.
    world = calm(seed)
    paces, graph = situation(world).paces, world.graph
    for name, pace in paces.items():
        if not pace.is_feasible:
            above = {u: paces[u].period or timedelta() for u in graph.upstreams[name]}
            assert max(above.values()) == pace.period
            assert any(graph.lags[u] > graph.lags[name] for u in ancestors(world, name))


def ancestors(world: Clockwork, name: str) -> set[str]:
    direct = world.graph.upstreams[name]
    return set(direct).union(*(ancestors(world, upstream) for upstream in direct))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_is_refreshed_by_the_first_run_after_its_grid_point(seed: int) -> None:
    project = random_project(random.Random(seed), 20, LAGS, seconds(5), spread=0.5)
    world = Clockwork(project, seed, threads=3).run_for(DAY / 4)
    starts = {run.start for run in world.runs}
    for _, before, after in pairs(world):
        if after.period:
            point = next_point(before.data_timestamp, after.period)
            assert after.data_timestamp - world.every < point <= after.data_timestamp
            assert after.data_timestamp in starts


@pytest.mark.parametrize("seed", SEEDS)
def test_no_table_is_refreshed_more_often_than_anyone_needs(seed: int) -> None:
    world = calm(seed)
    whys = {done.verdict.why for refreshes in world.done.values() for done in refreshes}
    assert whys <= {Why.MISSING, Why.CROSSED}
    for name, refreshes in world.done.items():
        period = situation(world).paces[name].period
        if period is None:
            assert len(refreshes) == 1
        else:
            assert len(refreshes) <= DAY / 2 / period + 2


def test_quiet_runs_may_be_left_out_of_the_simulation() -> None:
    class EveryRun(Clockwork):
        def next_due(self, situation: Situation) -> datetime:
            return situation.now

    project = calm(1).project
    assert EveryRun(project).run_for(2 * HOUR).done == Clockwork(project).run_for(2 * HOUR).done


# Bad days


class Rough(Clockwork):
    """Refreshes fail, runs do not come for hours, people edit, force and select at random."""

    partly_due = 0

    def comes(self, moment: datetime) -> bool:
        hours = (moment - START) // HOUR
        return hours % 7 not in (3, 4)

    def asks(self, moment: datetime) -> Asked:
        name = self.rng.choice(self.graph.order)
        if self.known.get(name) and self.rng.random() < 0.1:
            self.known[name] = replace(self.known[name], is_edited=True)
        if self.known.get(name) and self.rng.random() < 0.1:
            self.known[name] = resumed(self.known[name])
        is_rare = self.rng.random() < 0.1
        chosen = {n for n in self.graph.order if self.rng.random() < 0.7} if is_rare else None
        return Asked(chosen, self.rng.random() < 0.01, self.rng.random() < 0.02)

    def decided(self, situation: Situation, verdicts: dict[str, Verdict]) -> None:
        """Compare with `--select tag:due`: the due ones alone are refreshed in the same way."""
        everything = replace(situation, asked=replace(situation.asked, selected=None))
        due = {
            name: verdict for name, verdict in what_is_due(everything).items() if verdict.is_due
        }
        asked = replace(situation.asked, selected=due.keys())
        assert what_is_due(replace(everything, asked=asked)) == due
        self.partly_due += 0 < len(due) < len(self.graph.order)

    def fails(self, name: str) -> bool:
        return self.rng.random() < 0.1

    def next_due(self, situation: Situation) -> datetime:
        return situation.now


@cache
def rough(seed: int) -> Rough:
    project = random_project(random.Random(seed), 25, [*LAGS, None], seconds(20), 1.0)
    world = Rough(project, seed, threads=4)
    world.run_for(DAY / 2)
    return world


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_of_only_what_is_due_refreshes_the_same_at_the_same_moments(seed: int) -> None:
    # That is looked at whenever something is decided.
    assert rough(seed).partly_due > 100


@pytest.mark.parametrize("seed", SEEDS)
def test_the_cut_is_the_one_that_was_decided(seed: int) -> None:
    world = rough(seed)
    whys = {done.verdict.why for refreshes in world.done.values() for done in refreshes}
    assert {Why.NEEDED, Why.EDITED, Why.FAILED, Why.FORCED, Why.CROSSED, Why.NO_LAG} <= whys
    older = 0
    for refreshes in world.done.values():
        for done in refreshes:
            assert done.verdict.data_timestamp in (None, done.data_timestamp)
            older += done.data_timestamp < done.cycle
    assert older > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_data_timestamps_only_grow_and_every_skip_is_covered(seed: int) -> None:
    world = rough(seed)
    assert world.skipped
    for _, before, after in pairs(world):
        is_rebuilt = after.verdict.why in (Why.EDITED, Why.REQUESTED)
        assert before.data_timestamp < after.data_timestamp or is_rebuilt
        if after.verdict.data_timestamp and after.period:
            # No grid point up to this run is left open, however many runs did not come.
            assert not crossed(after.data_timestamp, after.cycle, after.period)


@pytest.mark.parametrize("seed", SEEDS)
def test_when_the_weather_clears_everybody_catches_up(seed: int) -> None:
    world = rough(seed)
    after = Clockwork(world.project, seed, threads=40)
    after.known = {name: resumed(known) for name, known in world.known.items()}
    after.readable, after.moment = deepcopy(world.readable), world.moment
    after.run_for(HOUR)
    now = situation(after)
    # What is without lag follows its upstreams, and may have to wait for the slowest.
    late = {n for n, v in what_is_due(now).items() if v.is_due and v.why is not Why.NO_LAG}
    on_grid = {n for n in late if crossed(now.known_of(n).timestamps[0], after.runs[-1].start,
                                          now.paces[n].period or DAY)}  # fmt: skip
    assert not on_grid


def test_a_failing_table_is_suspended_and_only_its_consumers_wait() -> None:
    class Broken(Clockwork):
        is_mended = False

        def fails(self, name: str) -> bool:
            return name == "b" and not self.is_mended and self.moment > START + HOUR

    graph = graph_of(a=5, b=(5, "a"), c=(5, "b"), d=(10, "c a"), e=(5, "a"))
    world = Broken(Project(graph, {name: Work(seconds(1)) for name in graph.order}))
    world.run_for(4 * HOUR)
    verdicts = what_is_due(situation(world))
    assert verdicts["b"].why is Why.SUSPENDED_BY_ERRORS
    assert world.known["b"].errors_in_a_row == graph.models["b"].suspend_after
    assert {n for n, v in verdicts.items() if v.why in BLOCKED} == {"b", "c", "d"}
    healthy = [lag_now(world, name) for name in "ae"]
    assert max(healthy) < minutes(5)
    world.is_mended = True
    world.known["b"] = resumed(world.known["b"])
    world.run_for(minutes(15))
    assert all(lag_now(world, name) < graph.lags[name] for name in graph.order)


def lag_now(world: Clockwork, name: str) -> timedelta:
    moment = world.known[name].data_timestamp
    assert moment
    return world.moment - moment


# Too much to do


@cache
def overloaded(seed: int) -> Clockwork:
    """Two threads, and more work in each minute than a minute has."""
    project = random_project(random.Random(seed), 60, LAGS[:3], seconds(40), 0.5)
    return Clockwork(project, seed, threads=2).run_for(DAY)


@pytest.mark.parametrize("seed", SEEDS)
def test_overload_degrades_by_skipping_and_never_by_queueing(seed: int) -> None:
    world = overloaded(seed)
    assert len(world.skipped) > len(world.runs)
    # One run at a time, and none works off a backlog: after it no table is left due.
    assert all(run.end <= later.start for run, later in pairwise(world.runs))
    for done in world.done.values():
        assert not any(crossed(d.data_timestamp, d.cycle, d.period or DAY) for d in done)
        assert {d.cycle for d in done} <= {run.start for run in world.runs}
    # The runs do not get longer and longer.
    lengths = [run.end - run.start for run in world.runs]
    half = len(lengths) // 2
    assert max(lengths[half:]) <= max(lengths[:half]) * 1.2


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_starves(seed: int) -> None:
    world = overloaded(seed)
    longest = max(run.end - run.start for run in world.runs) + world.every
    for _, before, after in pairs(world):
        assert before.period and after.period
        period = max(before.period, after.period)
        assert after.data_timestamp - before.data_timestamp <= period + longest
    assert all(done[-1].data_timestamp > START + DAY * 0.9 for done in world.done.values())


def test_two_thousand_tables_over_two_weeks_of_failures_and_nights_without_runs() -> None:
    lags = [16 * HOUR, DAY, 2 * DAY, "downstream"]
    project = random_project(random.Random(7), 2000, lags, seconds(5), 0.5, group=25)
    world = Weather(project, threads=20)
    world.run_for(14 * DAY)
    assert sum(run.refreshed for run in world.runs) > 15_000
    assert sum(map(len, world.failed.values())) > 300
    count, exceeded = checked(world)
    assert count > 10_000 and exceeded == []
    # Also who has failed is refreshed again, and nobody is forgotten.
    slack = max(run.end - run.start for run in world.runs) + world.every
    paces, lags_kept = situation(world).paces, world.graph.lags
    for name, pace in paces.items():
        if pace.period:
            assert lag_now(world, name) < min(pace.period, lags_kept[name]) + slack


@pytest.mark.parametrize("seed", SEEDS)
def test_failures_and_nights_without_runs_make_late_only_whom_they_meet(seed: int) -> None:
    lags = [HOUR, 2 * HOUR, 4 * HOUR, "downstream"]
    project = random_project(random.Random(seed), 200, lags, seconds(10), 0.5, group=25)
    world = Weather(project, seed, threads=20)
    world.run_for(4 * DAY)
    assert sum(map(len, world.failed.values())) > 100
    count, exceeded = checked(world)
    assert count > 3000 and exceeded == []


class Steady(Weather):
    """Nothing fails, and every run comes."""

    failing = 0.0

    def comes(self, moment: datetime) -> bool:
        return True


def test_tables_that_wait_for_threads_keep_their_lags() -> None:
    lags = [minutes(15), HOUR]
    project = random_project(random.Random(1), 100, lags, seconds(20), 0.5, group=5)
    world = Steady(project, threads=4)
    world.run_for(DAY * 0.75)
    # There is much more to do in a run than there are threads.
    assert world.skipped
    count, exceeded = checked(world)
    assert count > 1500 and exceeded == []
