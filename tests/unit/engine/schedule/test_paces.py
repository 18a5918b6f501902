from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from fake_schedule import Lag, at, built, graph_of, seconds

from spark_dynamic.schedule.grid import (
    EPOCH,
    PERIODS,
    crossed,
    last_point,
    longest_below,
    next_point,
)
from spark_dynamic.schedule.known import Known
from spark_dynamic.schedule.paces import find_paces


def periods(
    graph: dict[str, tuple[Lag, str] | Lag], late: float = 0, **known: Known
) -> dict[str, float | None]:
    paces = find_paces(graph_of(**graph), known, seconds(late))
    return {n: p.period.total_seconds() if p.period else None for n, p in paces.items()}


def test_a_table_waits_as_long_as_it_did_and_at_least_for_its_upstreams() -> None:
    graph = {"a": 5, "b": (5, "a")}
    known = {"a": built(0, took=10), "b": built(0, took=2)}
    assert periods(graph, **known) == {"a": 192, "b": 192}
    # Both are quick, but b has waited for a thread for two minutes.
    known["b"] = replace(known["b"], waits=((120,),))
    paces = find_paces(graph_of(**graph), known)
    assert paces["b"].waiting == seconds(120) and paces["b"].is_feasible
    assert periods(graph, **known) == {"a": 96, "b": 96}
    known["b"] = replace(known["b"], waits=((4,),))
    assert find_paces(graph_of(**graph), known)["b"].waiting == seconds(10)


def test_every_period_is_twice_the_one_before() -> None:
    assert seconds(48) == PERIODS[0]
    assert all(longer == 2 * shorter for shorter, longer in pairwise(PERIODS))


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(48, None), (48.001, 48), (96, 48), (97, 96), (300, 192), (3600, 3072), (-5, None)],
)
def test_the_longest_period_is_really_shorter(limit: float, expected: float | None) -> None:
    found = longest_below(seconds(limit))
    assert (found.total_seconds() if found else None) == expected


@pytest.mark.parametrize(
    ("last", "now", "expected"),
    [
        (0, 0, False),
        (0, 47.999, False),
        (0, 48, True),
        (47.999, 48, True),
        (48, 48, False),
        (48, 95, False),
        (10, 500, True),
        # A clock that was set back.
        (100, 50, False),
    ],
)
def test_a_grid_point_belongs_to_the_time_after_it(
    last: float, now: float, expected: bool
) -> None:
    assert crossed(at(last), at(now), seconds(48)) is expected


def test_the_grid_begins_with_the_epoch() -> None:
    now = datetime(2026, 11, 16, 12, 34, 56, 789, UTC)
    for period in PERIODS:
        point = last_point(now, period)
        assert (point - EPOCH) % period == timedelta()
        assert point <= now < next_point(now, period) == point + period


def test_whoever_crosses_a_point_crosses_those_of_all_shorter_periods() -> None:
    for shorter, longer in pairwise(PERIODS[:8]):
        for second in range(0, 20_000, 37):
            if crossed(at(second), at(second + 60), longer):
                assert crossed(at(second), at(second + 60), shorter)


@pytest.mark.parametrize(
    ("lag", "took", "late", "expected"),
    [
        (5, 0, 0, 192),
        (5, 107, 0, 192),
        (5, 108, 0, 96),
        (5, 100, 8, 96),
        (5, 0, 107, 192),
        (5, 0, 108, 96),
        (10, 0, 0, 384),
        (60, 0, 0, 3072),
        (24 * 60, 0, 0, 49152),
        # Nothing fits: as often as possible.
        (5, 252, 0, 48),
        (5, 1000, 0, 48),
    ],
)
def test_a_period_and_what_comes_on_top_fit_into_the_lag(
    lag: int, took: float, late: float, expected: float
) -> None:
    assert periods({"a": lag}, late, a=built(0, took=took)) == {"a": expected}


def test_a_table_waits_for_the_longest_chain_above_it() -> None:
    graph = graph_of(a=60, b=(60, "a"), c=60, d=(60, "b c"))
    known = {n: built(0, took=t) for n, t in {"a": 10, "b": 20, "c": 25, "d": 7}.items()}
    paces = find_paces(graph, known)
    assert [paces[name].waiting for name in "abcd"] == [seconds(s) for s in (0, 10, 0, 30)]
    assert paces["d"].duration == seconds(7)


def test_waiting_makes_a_period_shorter_and_upstreams_follow() -> None:
    slow, slower = built(0, took=60), built(0, took=100)
    for upstream in ("downstream", 5, 3):
        graph: dict[str, tuple[Lag, str] | Lag] = {"a": upstream, "b": (5, "a")}
        expected = 96 if upstream == 3 else 192
        assert periods(graph, b=slower) == {"a": expected, "b": 192}
        assert periods(graph, a=slow, b=slower) == {"a": 96, "b": 96}


def test_upstreams_do_not_follow_what_their_lag_was_not_meant_for() -> None:
    slow = built(0, took=100)
    assert periods({"a": 6, "b": (5, "a")}, a=slow, b=slow) == {"a": 192, "b": 192}
    # Without lag, or on demand, there is nothing to follow with.
    assert periods({"a": None, "b": (5, "a")}, a=slow, b=slow) == {"a": None, "b": 96}


def test_a_lag_that_cannot_be_kept_hurries_only_who_left_it_to_the_consumers() -> None:
    hopeless = built(0, took=400)
    assert periods({"a": 5, "b": (5, "a")}, b=hopeless) == {"a": 192, "b": 192}
    assert periods({"a": "downstream", "b": (5, "a")}, b=hopeless) == {"a": 48, "b": 48}


def test_in_a_project_of_equal_lags_all_are_kept_that_can_be() -> None:
    chain = {f"t{n}": (10, f"t{n - 1}") for n in range(20)}
    known = {name: built(0, took=25) for name in chain}
    paces = find_paces(graph_of(**chain), known)
    assert {pace.period for pace in paces.values()} == {seconds(96)}
    assert all(pace.is_feasible for pace in paces.values())


def test_no_period_is_shorter_than_that_of_an_upstream() -> None:
    assert periods({"a": 60, "b": (5, "a"), "c": (5, "b")}) == {"a": 3072, "b": 3072, "c": 3072}
    assert periods({"a": 60, "b": (None, "a"), "c": (5, "b")}) == {"a": 3072, "b": None, "c": 3072}
    assert periods({"a": 5, "b": (60, "a")}) == {"a": 192, "b": 3072}


def test_without_lag_and_on_demand_there_is_no_period() -> None:
    assert periods({"a": None, "b": "downstream"}) == {"a": None, "b": None}


@pytest.mark.parametrize(
    ("graph", "took", "feasible"),
    [
        ({"a": 5, "b": (10, "a")}, 10, True),
        ({"a": 60, "b": (5, "a")}, 10, False),
        ({"a": 5, "b": (5, "a")}, 251, True),
        ({"a": 5, "b": (5, "a")}, 252, False),
        # Just as long as the lag is too long.
        ({"a": "downstream", "b": (5, "a")}, 251, True),
        ({"a": "downstream", "b": (5, "a")}, 252, False),
        ({"a": None, "b": (None, "a")}, 9999, True),
    ],
)
def test_a_lag_that_cannot_be_kept_is_known(
    graph: dict[str, tuple[Lag, str] | Lag], took: float, feasible: bool
) -> None:
    paces = find_paces(graph_of(**graph), {"a": built(0), "b": built(0, took=took)})
    assert paces["b"].is_feasible is feasible
