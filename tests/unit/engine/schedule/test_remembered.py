import json
from dataclasses import replace
from typing import Any

from fake_records import minute
from fake_schedule import at, seconds

from spark_dynamic.clock import stamp
from spark_dynamic.frontier.state import KnownState, StateRow, read_state, state_metadata
from spark_dynamic.schedule.known import Refresh
from spark_dynamic.schedule.lateness import SAMPLES
from spark_dynamic.schedule.remembered import (
    Event,
    Marks,
    Remembered,
    merge_remembered,
    read_remembered,
    remember,
    write_remembered,
)
from spark_dynamic.warehouse import Commit

MARKS = Marks("definition", "text", "config")
EDITED = Marks("other", "text", "config")


def done(
    action: str,
    moment: float | None,
    end: float,
    marks: Marks | None = MARKS,
    waited: float | None = None,
) -> Event:
    stamp = None if moment is None else at(moment)
    late = None if waited is None else seconds(waited)
    return Event("shop.a", Refresh(action, at(end - 1), at(end), stamp, waited=late), marks)


def failed(end: float, marks: Marks | None = MARKS) -> Event:
    return Event("shop.a", Refresh("", at(end - 1), at(end), succeeded=False), marks)


def after(*events: Event, before: Remembered | None = None) -> Remembered:
    return remember({"shop.a": before} if before else {}, events)["shop.a"]


def test_refreshes_are_noted_in_the_order_in_which_they_ended() -> None:
    found = after(done("NO_DATA", 20, 21), done("FULL", 10, 15))
    assert found.known.timestamps == (at(20), at(10))
    assert found.known.durations == (seconds(1),)
    assert (found.marks, found.noted_at) == (MARKS, at(21))


def test_what_was_written_again_from_a_commit_has_no_duration() -> None:
    healed = Event("shop.a", Refresh("FULL", at(5), at(5), at(4)))
    assert after(healed).known.timestamps == (at(4),)
    assert after(healed).known.durations == ()
    assert not after(healed).now(MARKS).is_edited


def test_an_empty_run_leaves_no_timestamp() -> None:
    assert after(done("FULL", 10, 11), done("FULL", None, 20)).known.timestamps == ()


def test_waiting_leaves_no_more_than_when_it_was() -> None:
    before = after(done("FULL", 10, 11))
    found = after(done("WAITING", 20, 21), before=before)
    assert found.known == replace(before.known, waited_at=at(20))
    assert (found.marks, found.noted_at) == (before.marks, at(21))


def test_other_marks_are_an_edit_or_a_reconfiguration() -> None:
    found = after(done("FULL", 10, 11))
    assert found.now(MARKS) == found.known
    assert found.now(EDITED).is_edited and not found.now(EDITED).is_reconfigured
    assert found.now(Marks("definition", "text", "new")).is_reconfigured


def test_marks_of_a_failed_try_are_not_those_of_the_table() -> None:
    found = after(done("FULL", 10, 11), failed(20, EDITED))
    assert found.known.errors_in_a_row == 1
    assert found.now(EDITED).is_edited and found.now(EDITED).errors_in_a_row == 1


def test_an_edit_begins_to_count_errors_anew() -> None:
    found = after(done("FULL", 10, 11), *(failed(20 + n) for n in range(5)))
    assert found.now(MARKS).errors_in_a_row == 5
    assert found.now(EDITED).errors_in_a_row == 0
    assert after(failed(30, EDITED), before=found).known.errors_in_a_row == 1
    # Back to what it was, the table is right as it is.
    back = after(failed(30, EDITED), before=found).now(MARKS)
    assert not back.is_edited and back.errors_in_a_row == 0


def test_suspended_and_resumed() -> None:
    found = after(failed(1), failed(2), done("SUSPENDED", None, 3, None))
    assert found.known.is_suspended and found.known.errors_in_a_row == 2
    found = after(done("RESUMED", None, 4, None), before=found)
    assert not found.known.is_suspended and found.known.errors_in_a_row == 0


def test_a_run_that_began_before_does_not_resume_a_table() -> None:
    before = after(done("FULL", 10, 11))
    by_person = after(done("SUSPENDED", None, 20, None), before=before)
    by_run = after(done("INCREMENTAL", 15, 30), before=before)
    for one, other in ((by_person, by_run), (by_run, by_person)):
        [found] = merge_remembered({"shop.a": one}, {"shop.a": other}).values()
        assert found.known.is_suspended
        assert found.known.data_timestamp == at(15)


def test_of_two_runs_the_later_one_is_believed() -> None:
    before = after(done("FULL", 10, 11))
    slow, quick = (after(done("FULL", t, t + 5), before=before) for t in (20, 30))
    merged = merge_remembered({"shop.a": slow, "shop.b": slow}, {"shop.a": quick})
    assert merged == {"shop.a": quick, "shop.b": slow}


def test_it_is_read_as_it_was_written() -> None:
    tables = {
        "shop.a": after(
            done("FULL", 10.000001, 11), done("SUSPENDED", None, 12, None), failed(13, EDITED)
        ),
        "shop.b": after(done("NOT_DUE", None, 12, None)),
        "shop.c": Remembered(),
        "shop.d": after(done("WAITING", None, 12, None)),
        "shop.f": remember(
            {}, [Event("shop.f", Refresh("FULL", at(1), at(2), succeeded=False), MARKS)]
        )["shop.f"],
        "shop.e": after(done("FULL", 10, 11), done("FULL", 200, 201, waited=7)),
    }
    assert tables["shop.b"].known.seen_at == at(12)
    assert tables["shop.e"].known.expected_wait == seconds(7)
    written = json.dumps(write_remembered(tables))
    assert read_remembered(json.loads(written)) == tables


def test_a_table_takes_a_bounded_part_of_the_summary() -> None:
    # Nine days, so that points of all kinds were crossed.
    events = [done("FULL", 800 * n, 800 * n + 0.123456, waited=n) for n in range(1000)]
    assert len(json.dumps(write_remembered(remember({}, events)))) < 600


# In the summary of the state table


def row(name: str, at_minute: int, **others: Any) -> StateRow:
    facts: dict[str, Any] = {
        "relation": name,
        "model_id": f"model.{name}",
        "refresh_action": "FULL",
        "refresh_mode": "auto",
        "refresh_trigger": "SCHEDULED",
        "state": "SUCCEEDED",
        "reason_code": "",
        "reason": "",
        "cycle_id": "c",
        "invocation_id": "i",
        "started_at": minute(at_minute),
        "ended_at": minute(at_minute + 1),
        "engine_version": "0.test",
        "data_timestamp": minute(at_minute),
        "marks": MARKS,
    }
    return StateRow(**(facts | others))


def commit(known: KnownState, *rows: StateRow, version: int = 1, **more: Any) -> Commit:
    written = state_metadata(known, list(rows), **more)
    return Commit(version, minute(9), "WRITE", user_metadata=written)


def test_a_cycle_knows_what_the_ones_before_noted() -> None:
    first = read_state([commit(KnownState(), row("shop.a", 1), row("shop.b", 1))])
    failure = row("shop.a", 5, state="FAILED", refresh_action="", data_timestamp=None)
    other = commit(KnownState(), row("shop.b", 9), version=2)
    found = read_state([commit(first, failure, version=3), other])
    assert found.tables["shop.a"].known.errors_in_a_row == 1
    assert found.tables["shop.a"].known.data_timestamp == minute(1)
    assert found.tables["shop.b"].known.data_timestamp == minute(9)


def test_a_summary_of_an_earlier_version_is_read() -> None:
    body = {"spark_dynamic_state": stamp(minute(1)), "pins": [], "refresh_numbers": {}}
    old = read_state([Commit(0, minute(1), "WRITE", user_metadata=json.dumps(body))])
    assert old.newest_timestamp == minute(1) and old.tables == {} and old.lateness == {}


def test_the_last_times_are_kept_that_runs_came_late() -> None:
    known = KnownState()
    for n in range(SAMPLES + 5):
        known = read_state([commit(known, row("shop.a", n), lateness={minute(n): seconds(n)})])
    assert known.lateness == {minute(n): seconds(n) for n in range(5, SAMPLES + 5)}
