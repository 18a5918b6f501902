from datetime import timedelta

import pytest
from fake_schedule import at, built, decide, graph_of, minutes, seconds
from simulation.clockwork import Clockwork
from simulation.projects import Project, Work

from spark_dynamic.schedule.due import Verdict
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
        # b has been due since 3072, a since 3264.
        (3300, 3100, 10, 36),
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


def test_one_late_run_is_not_expected_again_and_old_ones_are_forgotten() -> None:
    assert expected_lateness([]) == expected_lateness([minutes(9)]) == timedelta()
    assert expected_lateness([seconds(5), minutes(900), seconds(7)]) == seconds(7)
    assert expected_lateness([minutes(9), minutes(9), *[seconds(5)] * 10]) == seconds(5)


@pytest.mark.parametrize("every", [seconds(30), minutes(1), minutes(5), minutes(15)])
def test_in_the_long_run_it_is_about_the_time_between_runs(every: timedelta) -> None:
    class Watching(Clockwork):
        samples: list[timedelta] = []

        def lateness(self) -> timedelta:
            return expected_lateness(self.samples)

        def decided(self, situation: Situation, verdicts: dict[str, Verdict]) -> None:
            found = lateness_of(situation, verdicts)
            if found is not None:
                self.samples = [*self.samples, found]

    graph = graph_of(a=60, b=(60, "a"), c=120)
    world = Watching(Project(graph, {n: Work(seconds(3)) for n in graph.order}), every=every)
    world.run_for(timedelta(days=3))
    assert every / 2 < world.lateness() < every
    peaks = [
        after.refresh.ended_at - before.data_timestamp
        for before, after in zip(world.done["b"][3:], world.done["b"][4:], strict=False)
    ]
    assert len(peaks) > 50 and max(peaks) < minutes(60) + every / 2
