from datetime import timedelta

import pytest
from fake_schedule import Lag, graph_of, minutes

from spark_dynamic.schedule.graph import Graph
from spark_dynamic.schedule.lag_warnings import NoConsumer, SlowerUpstream, lag_warnings
from spark_dynamic.schedule.lags import EVERY_RUN, ON_DEMAND


@pytest.mark.parametrize(
    ("consumers", "expected"),
    [
        ({"b": (5, "a")}, minutes(5)),
        ({"b": (60, "a"), "c": (5, "a")}, minutes(5)),
        ({"b": (5, "a"), "c": (60, "a")}, minutes(5)),
        ({"b": ("downstream", "a"), "c": (7, "b")}, minutes(7)),
        ({"b": ("downstream", "a"), "c": (7, "b"), "d": (3, "c")}, minutes(7)),
        ({"b": (None, "a"), "c": (7, "a")}, EVERY_RUN),
        ({}, ON_DEMAND),
        ({"b": ("downstream", "a")}, ON_DEMAND),
        ({"b": ("downstream", "a"), "c": (7, "a")}, minutes(7)),
    ],
)
def test_downstream_is_the_least_lag_of_the_consumers(
    consumers: dict[str, tuple[Lag, str]], expected: timedelta
) -> None:
    assert graph_of(a="downstream", **consumers).lags["a"] == expected


def test_a_lag_of_its_own_is_kept_whatever_the_consumers_ask_for() -> None:
    graph = graph_of(a=60, b=(5, "a"), c=None)
    assert graph.lags == {"a": minutes(60), "b": minutes(5), "c": EVERY_RUN}


def test_upstreams_come_first_and_strangers_do_not_count() -> None:
    graph = graph_of(c=(1, "b b elsewhere"), b=(1, "a"), a=1)
    assert graph.order == ("a", "b", "c")
    assert graph.upstreams["c"] == ("b",)
    assert graph.consumers == {"a": ["b"], "b": ["c"], "c": []}


def warned(graph: Graph) -> list[tuple[str, str]]:
    return [(w.model, getattr(w, "upstream", "")) for w in lag_warnings(graph)]


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (graph_of(a=10, b=(5, "a")), [("b", "a")]),
        (graph_of(a=5, b=(5, "a")), []),
        (graph_of(a=5, b=(10, "a")), []),
        (graph_of(a=None, b=(5, "a")), []),
        # It says nothing about its own lag, so it asks for nothing that it cannot have.
        (graph_of(a=10, b=(None, "a")), []),
        (graph_of(a="downstream", b=(5, "a")), []),
        # However far up, and past tables that take their lag from this one.
        (graph_of(a=60, b=("downstream", "a"), c=(5, "b")), [("c", "a")]),
        (graph_of(a=60, b=(None, "a"), c=(5, "b")), [("c", "a")]),
        # The slowest is named.
        (graph_of(a=60, b=30, c=(5, "b a")), [("c", "a")]),
        (graph_of(a=60, b=(30, "a"), c=(5, "b")), [("b", "a"), ("c", "a")]),
        # Nobody who reads it has a lag, however far down.
        (graph_of(a="downstream"), [("a", "")]),
        (graph_of(a="downstream", b=("downstream", "a")), [("a", ""), ("b", "")]),
        (graph_of(a="downstream", b=(None, "a")), [("a", "")]),
        (graph_of(a="downstream", b=("downstream", "a"), c=(5, "b")), []),
        (graph_of(a="downstream", b=(None, "a"), c=(5, "a")), []),
        # The lag of c is not handed on by b, which has none.
        (graph_of(a="downstream", b=(None, "a"), c=(5, "b")), [("a", "")]),
    ],
)
def test_lags_that_cannot_be_meant_are_warned_about(
    graph: Graph, expected: list[tuple[str, str]]
) -> None:
    assert warned(graph) == expected


def test_a_warning_says_what_becomes_of_a_table_that_nobody_sets_a_lag_for() -> None:
    assert lag_warnings(graph_of(a="downstream")) == [NoConsumer("a")]
    followed = lag_warnings(graph_of(a="downstream", b=(None, "a")))
    assert followed == [NoConsumer("a", follows_runs=True)]


def test_a_warning_names_both_tables_and_both_lags() -> None:
    text = str(SlowerUpstream("orders", minutes(5), "raw_orders", minutes(60)))
    assert text.startswith("orders has target_lag 5m, but reads raw_orders,")
    assert "a lag of 1h" in text
    assert "orders has target_lag 'downstream'" in str(NoConsumer("orders"))
    assert "only when that is asked for" in str(NoConsumer("orders"))
    assert "refreshed on every run" in str(NoConsumer("orders", follows_runs=True))
