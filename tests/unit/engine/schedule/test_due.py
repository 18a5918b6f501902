"""Which tables are due, and why. 192 s is the period of a lag of five minutes, 3072 of an hour."""

import pytest
from fake_schedule import Lag, at, built, decide, graph_of, seconds, shown

from spark_dynamic.schedule.causes import Why
from spark_dynamic.schedule.due import Verdict
from spark_dynamic.schedule.graph import Graph, Model
from spark_dynamic.schedule.known import Known
from spark_dynamic.schedule.situation import Asked

FORCE = Asked(force=True)
FULL = Asked(full_refresh=True)


@pytest.mark.parametrize(
    ("lag", "known", "now", "asked", "expected"),
    [
        (5, built(10), 191, None, "NOT_DUE"),
        (5, built(10), 192, None, "CROSSED at 192"),
        (5, built(192), 192, None, "NOT_DUE"),
        (5, built(10), 5000, None, "CROSSED at 5000"),
        (None, built(10), 11, None, "NO_LAG at 11"),
        ("downstream", built(10), 999_999, None, "NOT_DUE"),
        (5, Known(), 11, None, "MISSING at 11"),
        ("downstream", Known(), 11, None, "MISSING at 11"),
        (5, built(10, is_edited=True), 11, None, "EDITED at 11"),
        (5, built(10, is_reconfigured=True), 11, None, "RECONFIGURED at 11"),
        (5, built(10, errors_in_a_row=1), 11, None, "FAILED at 11"),
        (5, built(10), 11, FORCE, "FORCED at 11"),
        ("downstream", built(10), 11, FORCE, "FORCED at 11"),
        (5, built(10), 11, FULL, "REQUESTED at 11"),
        # The more telling one first.
        (5, Known(), 11, FULL, "MISSING at 11"),
        (5, built(10, is_edited=True, is_reconfigured=True), 999, None, "EDITED at 999"),
        (5, built(10, is_reconfigured=True, errors_in_a_row=1), 999, None, "RECONFIGURED at 999"),
        (5, built(10, errors_in_a_row=1), 999, FORCE, "FAILED at 999"),
        (None, built(10), 999, FORCE, "FORCED at 999"),
        # Suspended is suspended, whatever is asked for.
        (5, built(10, errors_in_a_row=5), 999, FULL, "SUSPENDED_BY_ERRORS"),
        (5, built(10, errors_in_a_row=4), 999, None, "FAILED at 999"),
        (5, built(10, is_suspended=True, is_edited=True), 999, FORCE, "SUSPENDED_BY_A_PERSON"),
        (None, Known(is_suspended=True, errors_in_a_row=9), 999, None, "SUSPENDED_BY_A_PERSON"),
    ],
)
def test_one_table(lag: Lag, known: Known, now: float, asked: Asked | None, expected: str) -> None:
    assert shown(decide(graph_of(a=lag), now, asked, a=known)) == {"a": expected}


def test_a_table_nobody_knows_is_missing() -> None:
    assert shown(decide(graph_of(a=5), 11)) == {"a": "MISSING at 11"}


def test_only_what_is_due_says_so() -> None:
    due = {why for why in Why if Verdict(why).is_due}
    assert set(Why) - due == {
        Why.SUSPENDED_BY_A_PERSON, Why.SUSPENDED_BY_ERRORS, Why.WAITING, Why.NOT_DUE
    }  # fmt: skip


def test_tables_with_longer_periods_are_refreshed_together_with_shorter_ones() -> None:
    graph = graph_of(a=5, b=(60, "a"))
    known = {"a": built(3000), "b": built(10)}
    assert shown(decide(graph, 3071, **known)) == {"a": "NOT_DUE", "b": "NOT_DUE"}
    assert shown(decide(graph, 3075, **known)) == {"a": "CROSSED at 3075", "b": "CROSSED at 3075"}


def test_a_due_table_reads_the_data_that_all_its_upstreams_have() -> None:
    # A run that selected only the upstreams came first.
    graph = graph_of(a=5, b=5, c=(5, "a b"))
    known = {"a": built(200, 10), "b": built(200, 10), "c": built(10)}
    assert shown(decide(graph, 250, **known)) == {
        "a": "NOT_DUE",
        "b": "NOT_DUE",
        "c": "CROSSED at 200",
    }


def test_a_due_table_takes_its_upstreams_along_when_they_disagree() -> None:
    graph = graph_of(z=5, a=(5, "z"), b=5, c=(5, "a b"))
    known = {"z": built(200), "a": built(200, 10), "b": built(210, 10), "c": built(10)}
    assert shown(decide(graph, 250, **known)) == {
        "z": "NEEDED at 250",
        "a": "NEEDED at 250",
        "b": "NEEDED at 250",
        "c": "CROSSED at 250",
    }


def test_an_upstream_that_is_ahead_is_taken_along_with_one_that_is_due() -> None:
    graph = graph_of(a=5, b=5, c=(5, "a b"))
    known = {"a": built(200, 10), "b": built(10), "c": built(10)}
    assert shown(decide(graph, 250, **known)) == {
        "a": "NEEDED at 250",
        "b": "CROSSED at 250",
        "c": "CROSSED at 250",
    }


def test_data_from_before_the_grid_point_do_not_serve() -> None:
    # They would leave the table due again at once.
    graph = graph_of(a=5, b=5, c=(5, "a b"))
    known = {"a": built(200, 150), "b": built(210, 150), "c": built(10)}
    assert shown(decide(graph, 250, **known))["c"] == "CROSSED at 250"


def test_a_table_without_lag_follows_its_upstreams() -> None:
    graph = graph_of(a=60, b=(None, "a"))
    known = {"a": built(200, 100)}
    assert shown(decide(graph, 250, **known, b=built(100)))["b"] == "NO_LAG at 200"
    # It is tried, but it does not make its upstream faster.
    verdicts = decide(graph, 250, **known, b=built(200))
    assert shown(verdicts) == {"a": "NOT_DUE", "b": "NO_LAG"}
    assert verdicts["b"].is_due


def test_a_new_table_reuses_data_within_its_lag() -> None:
    graph = graph_of(a=5, b=(5, "a"))
    assert shown(decide(graph, 180, a=built(20))) == {"a": "NOT_DUE", "b": "MISSING at 20"}


def test_a_chain_that_grows_by_a_table_each_run_is_not_refreshed_again() -> None:
    chain = {f"t{n}": (60, f"t{n - 1}") for n in range(30)}
    known: dict[str, Known] = {}
    for length in range(1, 31):
        graph = graph_of(**dict(list(chain.items())[:length]))
        verdicts = decide(graph, 10.0 * length, **known)
        assert {n for n, v in verdicts.items() if v.is_due} == {f"t{length - 1}"}
        moment = verdicts[f"t{length - 1}"].data_timestamp
        assert moment
        known[f"t{length - 1}"] = Known((moment,))


def test_several_new_tables_reuse_the_same_data() -> None:
    graph = graph_of(a=5, b=(5, "a"), c=(5, "a b"))
    assert shown(decide(graph, 180, a=built(20))) == {
        "a": "NOT_DUE",
        "b": "MISSING at 20",
        "c": "MISSING at 20",
    }


def test_a_new_table_takes_along_what_is_older_than_its_lag() -> None:
    # The warning about such lags is given anyway.
    graph = graph_of(a=60, b=(5, "a"))
    assert shown(decide(graph, 299, a=built(0)))["b"] == "MISSING at 0"
    assert shown(decide(graph, 300, a=built(0)))["b"] == "MISSING at 0"
    assert shown(decide(graph, 301, a=built(0))) == {"a": "NEEDED at 301", "b": "MISSING at 301"}


@pytest.mark.parametrize("lag", [5, None])
def test_a_new_table_that_waited_in_vain_takes_its_upstreams_along(lag: Lag) -> None:
    # Something that b reads is younger than what a has.
    graph = graph_of(a=60, b=(lag, "a"))
    waited = Known(waited_at=at(100))
    assert shown(decide(graph, 180, a=built(20), b=waited)) == {
        "a": "NEEDED at 180",
        "b": "MISSING at 180",
    }
    # What has come since then is worth trying.
    assert shown(decide(graph, 180, a=built(110, 20), b=waited))["b"] == "MISSING at 110"


def test_so_does_an_edited_one() -> None:
    graph = graph_of(a=60, b=(5, "a"))
    edited = built(20, is_edited=True, waited_at=at(100))
    assert shown(decide(graph, 180, a=built(20), b=edited)) == {
        "a": "NEEDED at 180",
        "b": "EDITED at 180",
    }


def test_but_not_what_follows_its_upstreams_or_has_no_choice() -> None:
    graph = graph_of(a=60, b=(None, "a"))
    known = {"a": built(20), "b": built(20, waited_at=at(100))}
    assert shown(decide(graph, 180, **known)) == {"a": "NOT_DUE", "b": "NO_LAG"}
    alone = Asked({"b"})
    assert shown(decide(graph, 180, alone, a=built(20), b=Known(waited_at=at(100)))) == {
        "b": "MISSING"
    }


def test_a_new_table_without_lag_reuses_whatever_its_upstream_has() -> None:
    graph = graph_of(a=60, b=(None, "a"))
    assert shown(decide(graph, 3000, a=built(0)))["b"] == "MISSING at 0"


def test_a_new_table_that_a_consumer_needs_now_is_built_now() -> None:
    # b alone would reuse the data of a; d needs b and the due c at one moment.
    graph = graph_of(a=5, b=(5, "a"), c=5, d=(5, "b c"), e=(5, "b"))
    known = {"a": built(200), "c": built(10), "d": built(10)}
    assert shown(decide(graph, 250, **known)) == {
        "a": "NEEDED at 250",
        "b": "MISSING at 250",
        "c": "CROSSED at 250",
        "d": "CROSSED at 250",
        "e": "MISSING at 250",
    }


def test_an_edited_table_is_rebuilt_at_the_data_timestamp_that_it_has() -> None:
    graph = graph_of(a=5, b=(5, "a"))
    known = {"a": built(200), "b": built(200, is_edited=True)}
    assert shown(decide(graph, 250, **known)) == {"a": "NOT_DUE", "b": "EDITED at 200"}


def test_old_data_of_an_edited_table_do_not_serve_its_consumers() -> None:
    graph = graph_of(a=5, b=5, c=(5, "a b"))
    known = {"a": built(200, is_edited=True), "b": built(200), "c": built(10)}
    assert shown(decide(graph, 250, **known)) == {
        "a": "EDITED at 250",
        "b": "NEEDED at 250",
        "c": "CROSSED at 250",
    }


def test_a_table_that_failed_catches_up_with_its_upstreams() -> None:
    graph = graph_of(a=5, b=(5, "a"))
    known = {"a": built(200, 10), "b": built(10, errors_in_a_row=1)}
    assert shown(decide(graph, 250, **known)) == {"a": "NOT_DUE", "b": "FAILED at 200"}


# Selection


def test_what_is_not_selected_is_not_taken_along() -> None:
    graph = graph_of(a=5, b=5, c=(5, "a b"))
    known = {"a": built(200, 10), "b": built(210, 10), "c": built(10)}
    verdicts = decide(graph, 250, Asked({"b", "c"}), **known)
    # Nothing is gained by refreshing b; the refresh of c looks for a cut that is valid.
    assert shown(verdicts) == {"b": "NOT_DUE", "c": "CROSSED"}
    assert verdicts["c"].is_due


def test_a_selected_table_alone_uses_what_its_upstream_has() -> None:
    graph = graph_of(a=5, b=(5, "a"))
    only = Asked({"b"}, force=True)
    assert shown(decide(graph, 250, only, a=built(210), b=built(200))) == {"b": "FORCED at 210"}
    assert shown(decide(graph, 250, only, a=built(200), b=built(200))) == {"b": "FORCED"}


def test_forced_tables_are_refreshed_after_the_command() -> None:
    graph = graph_of(a=5, b=(5, "a"), c=(5, "b"))
    known = {name: built(210) for name in "abc"}
    verdicts = shown(decide(graph, 250, Asked({"a", "b"}, force=True), **known))
    assert verdicts == {"a": "FORCED at 250", "b": "FORCED at 250"}


# Suspension


def test_consumers_of_a_suspended_table_wait_and_the_rest_goes_on() -> None:
    graph = graph_of(a=5, b=(5, "a"), c=(5, "b"), d=5, e=(5, "d"))
    known = {name: built(10) for name in "bcde"}
    assert shown(decide(graph, 250, **known, a=built(10, errors_in_a_row=5))) == {
        "a": "SUSPENDED_BY_ERRORS",
        "b": "WAITING for a",
        "c": "WAITING for b",
        "d": "CROSSED at 250",
        "e": "CROSSED at 250",
    }


def test_a_consumer_may_catch_up_with_a_suspended_table() -> None:
    graph = graph_of(a=5, b=(5, "a"))
    known = {"a": built(200, is_suspended=True), "b": built(10)}
    assert shown(decide(graph, 250, **known))["b"] == "CROSSED at 200"
    known["b"] = built(200)
    assert shown(decide(graph, 250, **known))["b"] == "NOT_DUE"
    assert shown(decide(graph, 500, **known))["b"] == "WAITING for a"
    known["b"] = built(200, is_edited=True)
    assert shown(decide(graph, 250, **known))["b"] == "EDITED at 200"


def test_a_table_on_a_suspended_one_that_was_never_built_waits() -> None:
    graph = graph_of(a=5, b=(5, "a"))
    known = {"a": Known(errors_in_a_row=5)}
    assert shown(decide(graph, 250, **known))["b"] == "WAITING for a"


def test_nothing_is_taken_along_in_vain() -> None:
    # d cannot come to now, because b is suspended; so c stays as it is.
    graph = graph_of(b=5, c=5, d=(5, "b c"))
    known = {"b": built(200, is_suspended=True), "c": built(210), "d": built(10)}
    verdicts = shown(decide(graph, 250, **known))
    assert verdicts == {"b": "SUSPENDED_BY_A_PERSON", "c": "NOT_DUE", "d": "CROSSED"}


def test_suspend_after_is_the_models_own() -> None:
    graph = Graph({"a": Model(seconds(300), suspend_after=0), "b": Model(suspend_after=1)})
    known = {name: built(10, errors_in_a_row=1) for name in "ab"}
    verdicts = decide(graph, 11, **known)
    assert [v.why for v in verdicts.values()] == [Why.FAILED, Why.SUSPENDED_BY_ERRORS]


# Built by schedule


BY_SCHEDULE = Model(seconds(300), is_built_by_schedule=True)


@pytest.mark.parametrize(
    ("model", "known", "now", "asked", "expected"),
    [
        # A run that first meets it does not build it, wherever the last grid point is.
        (BY_SCHEDULE, Known(), 200, None, "NOT_DUE"),
        (BY_SCHEDULE, Known(seen_at=at(200)), 383, None, "NOT_DUE"),
        (BY_SCHEDULE, Known(seen_at=at(200)), 384, None, "MISSING at 384"),
        (BY_SCHEDULE, Known(seen_at=at(192)), 200, None, "NOT_DUE"),
        (BY_SCHEDULE, Known(), 200, FULL, "MISSING at 200"),
        (BY_SCHEDULE, Known(), 200, FORCE, "MISSING at 200"),
        # Without a period there is nothing to wait for.
        (Model(is_built_by_schedule=True), Known(), 200, None, "MISSING at 200"),
    ],
)
def test_a_first_build_by_schedule(
    model: Model, known: Known, now: float, asked: Asked | None, expected: str
) -> None:
    assert shown(decide(Graph({"a": model}), now, asked, a=known)) == {"a": expected}


def test_who_follows_its_upstreams_waits_until_the_schedule_has_built_them() -> None:
    reader = Model(upstreams=("a",))
    graph = Graph({"a": BY_SCHEDULE, "b": reader})
    known = {"a": Known(seen_at=at(200)), "b": built(10)}
    assert shown(decide(graph, 250, **known)) == {"a": "NOT_DUE", "b": "WAITING for a"}
    assert shown(decide(graph, 400, **known)) == {"a": "MISSING at 400", "b": "NO_LAG at 400"}
    # A new table is built at once, and what it needs with it.
    new = {"a": Known(seen_at=at(200))}
    assert shown(decide(graph, 250, **new)) == {"a": "NEEDED at 250", "b": "MISSING at 250"}


# Nobody needs it


SUSPENDED = built(10, is_suspended=True)


def test_a_downstream_table_is_left_alone_while_its_only_reader_is_suspended() -> None:
    graph = graph_of(a="downstream", b=(5, "a"))
    assert shown(decide(graph, 500, a=built(10), b=SUSPENDED)) == {
        "a": "NOT_DUE",
        "b": "SUSPENDED_BY_A_PERSON",
    }
    # As soon as it is resumed, both are due.
    resumed = decide(graph, 500, a=built(10), b=built(10))
    assert shown(resumed) == {"a": "CROSSED at 500", "b": "CROSSED at 500"}


def test_whom_no_reader_at_any_distance_needs_is_left_alone() -> None:
    # d waits for c, which is suspended; b and a would be refreshed for d alone.
    graph = graph_of(a="downstream", b=("downstream", "a"), c=5, d=(5, "b c"))
    known = {name: built(10) for name in "abd"}
    verdicts = shown(decide(graph, 500, c=SUSPENDED, **known))
    assert verdicts == {
        "a": "NOT_DUE",
        "b": "NOT_DUE",
        "c": "SUSPENDED_BY_A_PERSON",
        "d": "WAITING for c",
    }
    # Another reader needs a, a person wants b, or b has failed: then they are due.
    other = graph_of(a="downstream", b=("downstream", "a"), c=5, d=(5, "b c"), e=(5, "a"))
    found = shown(decide(other, 500, c=SUSPENDED, e=built(10), **known))
    assert (found["a"], found["b"]) == ("CROSSED at 500", "NOT_DUE")
    known["b"] = built(10, errors_in_a_row=1)
    found = shown(decide(graph, 500, c=SUSPENDED, **known))
    assert (found["a"], found["b"]) == ("CROSSED at 500", "FAILED at 500")
    found = shown(decide(graph, 500, FORCE, c=SUSPENDED, **known))
    assert (found["a"], found["b"]) == ("FORCED at 500", "FAILED at 500")


def test_a_table_with_a_lag_of_its_own_is_needed_for_itself() -> None:
    graph = graph_of(a=5, b=(5, "a"), c="downstream", d=(None, "c"))
    known = {"a": built(10), "b": SUSPENDED, "c": built(10), "d": SUSPENDED}
    found = shown(decide(graph, 500, **known))
    assert (found["a"], found["c"]) == ("CROSSED at 500", "NOT_DUE")
