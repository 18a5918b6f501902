"""What a run with a fast clock has noted does not rule the schedule of those after it."""

from datetime import datetime, timedelta

from fake_schedule import at

from spark_dynamic.frontier.state import KnownState, StateRow, read_state, state_metadata
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.schedule.causes import Why
from spark_dynamic.schedule.due import what_is_due
from spark_dynamic.schedule.graph import Graph, Model
from spark_dynamic.schedule.situation import Situation
from spark_dynamic.schedule.status import status_of
from spark_dynamic.warehouse import Commit

MONTH = timedelta(days=30)


def refreshed(name: str, moment: datetime, action: str = "NO_DATA") -> StateRow:
    """Return the row of a refresh, which ended as soon as it began."""
    return StateRow(
        *(f"shop.{name}", f"model.shop.{name}", action, "auto", "SCHEDULED", "SUCCEEDED"),
        *("", "", "cycle", "invocation", moment, moment, "0.test"),
        data_timestamp=None if action in ("WAITING", "NOT_DUE") else moment,
    )


def known_after(*runs: StateRow) -> KnownState:
    """Return what the state table says after runs with one row each."""
    known = KnownState(exists=True)
    for version, row in enumerate(runs):
        late = {row.started_at: timedelta(seconds=1)}
        summary = state_metadata(known, [row], late)
        known = read_state([Commit(version, row.ended_at, "WRITE", user_metadata=summary)])
    return known


def situation(known: KnownState, now: datetime, model: Model) -> Situation:
    cycle = Cycle("i", now, known)
    tables = {name: found.known for name, found in cycle.known.tables.items()}
    return Situation(Graph({"shop.a": model}), tables, cycle.data_timestamp)


def test_a_data_timestamp_that_no_clock_has_reached_does_not_rule_the_schedule() -> None:
    model, hour = Model(timedelta(minutes=10)), timedelta(hours=1)
    known = known_after(refreshed("a", at(0)), refreshed("a", at(0) + MONTH))
    found = situation(known, at(0) + hour, model)
    assert what_is_due(found)["shop.a"].why is Why.CROSSED
    # What it holds is at least as new as what it held before: the lag is not understated.
    assert status_of(found, "shop.a").lag == hour


def test_a_table_that_was_only_refreshed_in_the_future_is_due() -> None:
    model = Model(timedelta(days=1), is_built_by_schedule=True)
    known = known_after(refreshed("a", at(0) + MONTH))
    verdict = what_is_due(situation(known, at(0), model))["shop.a"]
    assert (verdict.is_due, verdict.data_timestamp) == (True, at(0))


def test_a_table_that_was_first_met_in_the_future_is_built() -> None:
    model = Model(timedelta(minutes=10), is_built_by_schedule=True)
    known = known_after(refreshed("a", at(0) + MONTH, "NOT_DUE"))
    assert what_is_due(situation(known, at(0), model))["shop.a"].is_due


def test_a_table_that_waited_in_the_future_takes_what_its_upstreams_have_now() -> None:
    known = known_after(refreshed("a", at(0)), refreshed("a", at(0) + MONTH, "WAITING"))
    assert known.tables["shop.a"].known.waited_at == at(0) + MONTH
    assert known.believed(at(9)).tables["shop.a"].known.waited_at is None


def test_the_state_table_forgets_the_future_with_the_next_run() -> None:
    known = known_after(refreshed("a", at(0)), refreshed("b", at(0) + MONTH))
    later = at(0) + timedelta(hours=1)
    cycle = Cycle("i", later, known)
    assert (cycle.data_timestamp, cycle.known.newest_timestamp) == (later, at(0))
    summary = state_metadata(cycle.known, [refreshed("a", later)])
    again = read_state([Commit(9, later, "WRITE", user_metadata=summary)])
    assert again.newest_timestamp == later
    assert again.believed(later) == again
