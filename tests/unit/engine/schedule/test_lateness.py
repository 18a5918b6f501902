from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from fake_schedule import at, built, decide, graph_of, seconds
from simulation.clockwork import START, Clockwork
from simulation.projects import Project, Work

from spark_dynamic.schedule.known import Known
from spark_dynamic.schedule.lateness import expected_lateness, lateness_of
from spark_dynamic.schedule.situation import Situation

GRAPH = graph_of(a=5, b=60, c=None)


def late(now: float, **known: Known) -> timedelta | None:
    situation = Situation(GRAPH, known, at(now))
    return lateness_of(situation, decide(GRAPH, now, **known))


@pytest.mark.parametrize(
    ("now", "a", "b", "expected"),
    [
        (192, 10, 20, 0),
        (200, 10, 20, 8),
        (500, 10, 20, 308),
        # b has been due since 3072, a since 3264; when a was refreshed, b could not be.
        (3300, 3100, 10, 36),
        # Both have become due since the last refresh, one after the other.
        (3300, 3020, 3000, 228),
        # a since 2880, b since 3072: the longer of the two.
        (3300, 2870, 10, 420),
        (180, 10, 20, None),
    ],
)
def test_a_run_comes_some_time_after_a_grid_point(
    now: float, a: float, b: float, expected: float | None
) -> None:
    found = late(now, a=built(a), b=built(b), c=built(0))
    assert found == (None if expected is None else seconds(expected))


def test_what_is_due_for_another_reason_tells_nothing() -> None:
    assert late(300, a=Known(), b=built(20), c=built(0)) is None
    assert late(180, a=built(10, errors_in_a_row=1), b=built(20), c=built(0)) is None


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], 0),
        # One may have come after days; of few, the latest is far from the latest possible.
        ([300_000], 0),
        ([10, 30], 45),
        ([30, 10, 20, 5, 25], 36),
        ([*[5] * 19, 30, *[10] * 10], 33),
        # A night does not count, once there is enough to compare it with; a second one does.
        ([5, 30_000, 7], 40_000),
        ([10, 30_000, 8, 9], 12.5),
        ([*[10] * 9, 30_000], 11),
        ([*[10] * 8, 30_000, 30_000], 33_000),
        # Old ones are forgotten.
        ([600, 600, *[10] * 30], 11),
    ],
)
def test_runs_are_expected_as_late_as_they_recently_were(
    samples: list[float], expected: float
) -> None:
    found = expected_lateness(seconds(sample) for sample in samples)
    assert found.total_seconds() == pytest.approx(expected)


def exceeded(world: Clockwork, since: timedelta) -> list[tuple[str, timedelta]]:
    """Return the peaks that were not below the target lag, from some time after the start on."""
    found = []
    for name, done in world.done.items():
        assert len(done) > 40
        for before, after in pairwise(done):
            peak = after.refresh.ended_at - before.data_timestamp
            if before.data_timestamp > START + since and peak >= world.graph.lags[name]:
                found.append((name, peak))
    return found


# Some of these lags are just above p + r for one of the rhythms below.
MANY = graph_of(a=60, b=(60, "a"), c=120, d=240, e=(240, "c d"), f=30, g=(30, "f"))
WORK = {name: Work(seconds(3)) for name in MANY.order}


@pytest.mark.parametrize("every", [30, 60, 61, 97, 300, 420, 900, 1000])
def test_whatever_the_rhythm_of_the_runs_the_lags_are_kept(every: int) -> None:
    world = Clockwork(Project(MANY, WORK), every=seconds(every)).run_for(timedelta(days=7))
    assert 0.7 < world.lateness() / seconds(every) < 1.2
    assert exceeded(world, since=timedelta(hours=12)) == []


@pytest.mark.parametrize("most", [3, 10, 20])
def test_runs_without_any_rhythm_keep_them_too(most: int) -> None:
    class Irregular(Clockwork):
        next_run = START

        def comes(self, moment: datetime) -> bool:
            if moment < self.next_run:
                return False
            self.next_run = moment + self.every * self.rng.randint(1, most)
            return True

        def next_due(self, situation: Situation) -> datetime:
            return situation.now

    world = Irregular(Project(MANY, WORK)).run_for(timedelta(days=7))
    assert exceeded(world, since=timedelta(hours=12)) == []
