from dataclasses import replace

import pytest
from fake_schedule import at, seconds

from spark_dynamic.schedule.known import Known, Refresh, known_from, noted
from spark_dynamic.schedule.suspension import Suspension, resumed, suspended, suspension


def refresh(action: str, moment: float | None, took: float = 1, start: float = 0) -> Refresh:
    stamp = None if moment is None else at(moment)
    return Refresh(action, at(start), at(start + took), stamp)


FAILURE = Refresh("", at(0), at(1), None, succeeded=False)


def test_what_is_known_is_made_of_refreshes() -> None:
    known = known_from(
        [refresh("FULL", 10, 300), refresh("INCREMENTAL", 20, 2), refresh("NO_DATA", 30, 0)]
    )
    assert known.timestamps == (at(30), at(20), at(10))
    assert known.data_timestamp == at(30)
    assert known.expected_duration == seconds(2)


def test_the_first_build_counts_until_another_refresh_writes() -> None:
    first = [refresh("FULL", 10, 300), refresh("NO_DATA", 20, 0), refresh("NO_DATA", 30, 0)]
    assert known_from(first).expected_duration == seconds(300)
    second = [*first, refresh("INCREMENTAL", 40, 2)]
    assert known_from(second).expected_duration == seconds(2)
    assert known_from([*second, refresh("FULL", 50, 9)]).expected_duration == seconds(9)


def test_the_longest_of_the_last_five_is_expected() -> None:
    took = [1, 50, 3, 4, 5, 6]
    rows = [refresh("INCREMENTAL", 10 * n, t) for n, t in enumerate(took, 1)]
    assert known_from(rows).expected_duration == seconds(50)
    assert known_from([*rows, refresh("INCREMENTAL", 99, 2)]).expected_duration == seconds(6)
    assert len(known_from(rows).timestamps) == 5


def test_only_what_was_computed_is_compared() -> None:
    rows = [refresh("FULL", 10, 300), refresh("FULL", 20, 80), refresh("INCREMENTAL", 30, 2)]
    before = known_from(rows)
    # The first build did not only compute the table, but made it.
    assert (before.build, before.fulls) == (seconds(300), (seconds(80),))
    assert before.incrementals == (seconds(2),)
    # A look that found nothing to do took a moment, and so does what is known by its commit alone.
    looks = [refresh("NO_DATA", 40, 0.1), refresh("FULL", 50, 0), refresh("INCREMENTAL", 60, 0)]
    after = known_from([*rows, *looks])
    assert (after.fulls, after.incrementals) == (before.fulls, before.incrementals)
    assert after.durations == before.durations


@pytest.mark.parametrize("action", ["NOT_DUE", "SUSPENDED"])
def test_what_is_no_refresh_changes_nothing(action: str) -> None:
    known = Known((at(5),), errors_in_a_row=2)
    assert noted(known, refresh(action, 99)) == known


def test_it_is_known_when_a_table_waited_until_it_is_refreshed() -> None:
    waited = known_from([FAILURE, refresh("FULL", 5), refresh("WAITING", None, start=20)])
    assert (waited.waited_at, waited.timestamps) == (at(20), (at(5),))
    assert noted(waited, FAILURE).waited_at == at(20)
    assert noted(waited, refresh("NO_DATA", 30)).waited_at is None


def waiting(moment: float, waited: float | None, action: str = "INCREMENTAL") -> Refresh:
    late = None if waited is None else seconds(waited)
    return replace(refresh(action, moment), waited=late)


def test_the_longest_of_the_last_waits_is_expected() -> None:
    rows = [waiting(1, 900, "FULL"), waiting(50, 9.5), waiting(100, -0.1)]
    # The first build says nothing of later runs.
    assert known_from(rows[:1]).expected_wait == seconds(0)
    assert known_from(rows).expected_wait == seconds(10)
    # A data timestamp of an earlier run says nothing of this one.
    assert known_from([*rows, waiting(150, None)]).expected_wait == seconds(10)
    # A table to which nothing has happened has waited as well.
    assert known_from([*rows, waiting(150, 30, "NO_DATA")]).expected_wait == seconds(30)
    assert known_from([*rows, refresh("FULL", None)]).waits == ()


def test_the_wait_of_a_busy_run_is_remembered_until_points_of_that_kind_came_twice() -> None:
    # Points of 48 seconds, and now and then of 384: then there is more to do. Of these, every
    # other one is a point of 768 seconds or more, too.
    moments = range(1, 48 * 8 * 6, 48)
    waits = [(m, 100 if m == 385 else 60 if m % 384 == 1 else 2) for m in moments]
    known = known_from([waiting(m, waited) for m, waited in waits if m < 1900])
    assert known.expected_wait == seconds(100)
    assert known_from([waiting(*each) for each in waits]).expected_wait == seconds(60)


def test_data_never_get_older() -> None:
    known = known_from([refresh("FULL", 30), refresh("COVERED", 30), refresh("FULL", 20)])
    assert known.timestamps == (at(30), at(20))


def test_an_empty_run_leaves_a_table_that_has_to_be_built() -> None:
    assert known_from([refresh("FULL", 30), refresh("FULL", None)]).data_timestamp is None


def test_errors_in_a_row_end_with_a_refresh() -> None:
    assert known_from([FAILURE, refresh("WAITING", 1), FAILURE]).errors_in_a_row == 2
    assert known_from([FAILURE, refresh("NO_DATA", 1)]).errors_in_a_row == 0
    assert known_from([FAILURE, refresh("FULL", None)]).errors_in_a_row == 0


def test_the_error_of_a_suspended_table_is_not_another_failure() -> None:
    row = Refresh("SUSPENDED", at(0), at(1), None, succeeded=False)
    assert known_from([FAILURE, row]).errors_in_a_row == 1


def test_post_hooks_are_owed_from_their_failure_to_the_next_refresh() -> None:
    after_it = Refresh("INCREMENTAL", at(0), at(2), None, succeeded=False)
    known = known_from([refresh("INCREMENTAL", 1), after_it])
    assert (known.errors_in_a_row, known.owes_hooks, known.timestamps) == (1, True, (at(1),))
    assert known_from([refresh("FULL", 1), after_it, FAILURE]).owes_hooks
    assert not known_from([refresh("FULL", 1), after_it, refresh("NO_DATA", 2)]).owes_hooks
    assert not known_from([refresh("FULL", 1), FAILURE]).owes_hooks


@pytest.mark.parametrize(
    ("errors", "suspend_after", "expected"),
    [
        (4, 5, None),
        (5, 5, Suspension.BY_ERRORS),
        (6, 5, Suspension.BY_ERRORS),
        (1, 1, Suspension.BY_ERRORS),
        (0, 1, None),
        (0, 0, None),
        (1000, 0, None),
    ],
)
def test_errors_suspend_a_table(
    errors: int, suspend_after: int, expected: Suspension | None
) -> None:
    assert suspension(Known(errors_in_a_row=errors), suspend_after) is expected


def test_a_person_suspends_and_resumes() -> None:
    known = Known((at(7),), errors_in_a_row=5)
    assert suspension(suspended(known), 5) is Suspension.BY_A_PERSON
    again = resumed(suspended(known))
    assert suspension(again, 5) is None
    assert again == Known((at(7),))
    assert suspension(noted(again, FAILURE), 5) is None
