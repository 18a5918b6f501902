from datetime import timedelta

import pytest
from fake_schedule import Lag, at, built, graph_of, minutes, seconds

from spark_dynamic.schedule.graph import Graph, Model
from spark_dynamic.schedule.known import Known, Refresh
from spark_dynamic.schedule.lag_numbers import LagNumbers, lag_numbers, teeth
from spark_dynamic.schedule.situation import Situation
from spark_dynamic.schedule.status import not_due_line, status_of


def refresh(moment: float | None, end: float, action: str = "INCREMENTAL") -> Refresh:
    stamp = None if moment is None else at(moment)
    return Refresh(action, at(end - 1), at(end), stamp, succeeded=action != "")


# Data timestamps 0, 100, 200; the ends 10, 120, 230.
THREE = [refresh(0, 10), refresh(100, 120), refresh(200, 230)]


def numbers(
    refreshes: list[Refresh], target: float | None, since: float, until: float
) -> LagNumbers | None:
    goal = None if target is None else seconds(target)
    return lag_numbers(refreshes, goal, at(since), at(until))


def test_the_lag_is_a_saw_tooth() -> None:
    found = teeth(reversed(THREE), at(0), at(300))
    assert [(t.begin, t.end) for t in found] == [
        (at(10), at(120)),
        (at(120), at(230)),
        (at(230), at(300)),
    ]
    # Peak: end minus the data timestamp before; trough: end minus its own.
    assert [t.peak for t in found] == [seconds(120), seconds(130), seconds(100)]
    assert [t.trough for t in found] == [seconds(10), seconds(20), seconds(30)]


@pytest.mark.parametrize(
    ("since", "until", "target", "peak", "trough", "share"),
    [
        (0, 300, 130, 130, 10, 1.0),
        (0, 300, 100, 130, 10, (90 + 80 + 70) / 290),
        (0, 300, 5, 130, 10, 0.0),
        (0, 300, None, 130, 10, None),
        (0, 300, 8e13, 130, 10, 1.0),
        # A part of a tooth.
        (20, 110, 50, 110, 20, 30 / 90),
        # The lag at the end counts, however long ago the last refresh was.
        (0, 1230, 100, 1030, 10, (90 + 80 + 70) / 1220),
        (900, 1000, 100, 800, 700, 0.0),
    ],
)
def test_numbers_over_some_time(
    since: float, until: float, target: float | None, peak: float, trough: float, share: float
) -> None:
    expected = LagNumbers(seconds(peak), seconds(trough), share)
    assert numbers(THREE, target, since, until) == expected


def test_before_the_first_build_there_are_none() -> None:
    assert numbers(THREE, 100, 0, 10) is None
    assert numbers([], 100, 0, 10) is None


def test_only_refreshes_with_newer_data_count() -> None:
    others = [
        refresh(None, 60, ""),
        refresh(0, 70, "WAITING"),
        refresh(100, 140, "COVERED"),
        refresh(50, 150),
    ]
    assert teeth(THREE + others, at(0), at(300)) == teeth(THREE, at(0), at(300))


def test_a_refresh_without_new_rows_brings_the_lag_down_too() -> None:
    assert len(teeth([*THREE, refresh(250, 251, "NO_DATA")], at(0), at(300))) == 4


@pytest.mark.parametrize(
    ("lag", "known", "line", "next_due"),
    [
        (10, built(0), "NOT_DUE lag 2m of 10m", 384),
        (10, built(130), "NOT_DUE lag 0s of 10m", 384),
        ("downstream", built(0), "NOT_DUE lag 2m of downstream", None),
    ],
)
def test_how_a_table_stands(lag: Lag, known: Known, line: str, next_due: float | None) -> None:
    status = status_of(Situation(graph_of(a=lag), {"a": known}, at(120)), "a")
    assert not_due_line(status, at(0)) == line
    assert status.next_due == (None if next_due is None else at(next_due))
    assert status.data_timestamp == known.data_timestamp


def test_the_target_of_a_table_may_be_its_consumers() -> None:
    graph = graph_of(a="downstream", b=(5, "a"))
    status = status_of(Situation(graph, {"a": built(0)}, at(120)), "a")
    assert (status.target_lag, status.lag) == (minutes(5), minutes(2))
    assert (status.period, status.is_feasible) == (seconds(192), True)


def test_a_table_that_is_overdue_was_due_in_the_past() -> None:
    status = status_of(Situation(graph_of(a=10), {"a": built(0)}, at(5000)), "a")
    assert status.next_due == at(384)


@pytest.mark.parametrize(
    ("lag", "known", "next_due"),
    [
        (10, Known(), 120),
        (None, Known(), 120),
        (10, built(0, errors_in_a_row=1), 120),
        (None, built(0, errors_in_a_row=1), 120),
        (10, built(0, is_edited=True), 120),
        (10, built(0, is_reconfigured=True), 120),
        (10, built(0, is_suspended=True), None),
        (10, built(0, errors_in_a_row=5), None),
        (10, Known(is_suspended=True), None),
        (None, built(0), None),
    ],
)
def test_what_is_due_is_due_now_and_what_is_suspended_never(
    lag: Lag, known: Known, next_due: float | None
) -> None:
    status = status_of(Situation(graph_of(a=lag), {"a": known}, at(120)), "a")
    assert status.next_due == (None if next_due is None else at(next_due))


@pytest.mark.parametrize(
    ("seen", "line", "next_due"),
    [(None, "NOT_DUE first build in 1m 12s", 192), (-100, "NOT_DUE first build in 0s", 0)],
)
def test_the_first_build_by_schedule_is_foretold(
    seen: float | None, line: str, next_due: float
) -> None:
    graph = Graph({"a": Model(minutes(5), is_built_by_schedule=True)})
    known = Known(seen_at=None if seen is None else at(seen))
    status = status_of(Situation(graph, {"a": known}, at(120)), "a")
    assert (not_due_line(status, at(120)), status.next_due) == (line, at(next_due))


def test_without_data_there_is_no_lag() -> None:
    status = status_of(Situation(graph_of(a=5), {}, at(120)), "a")
    assert (status.lag, status.next_due) == (None, at(120))
    assert timedelta() == status_of(Situation(graph_of(a=5), {"a": built(130)}, at(120)), "a").lag
