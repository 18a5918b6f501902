"""Change queries over random histories, by the SQL that the engine writes."""

import random
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from fuzz import slides
from fuzz.changes import run_changes

from spark_dynamic.apply.net_slide import NetSlide
from spark_dynamic.changes import append_only, min_delta, states
from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.changes.layout import Layout

FIXED_SEED = 40
# Another one in each run; a failure names it.
VARYING_SEED = random.SystemRandom().randrange(2_000_000, 2**31)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("seed", "cases"), [(FIXED_SEED, 25), (VARYING_SEED, 10)], ids=("fixed", "varying")
)
def test_changes_lead_from_one_state_to_the_next(seed: int, cases: int) -> None:
    print(f"from seed {seed}")
    counts = run_changes(seed, cases)
    assert counts.cases >= 0.8 * cases, counts.skipped
    if seed == FIXED_SEED:
        wanted = {
            "min_delta ADDED_ONLY", "min_delta MINIMIZE", "min_delta DIFFERENCE", "row_keys",
            "min_delta REMOVED_ONLY", "redo_log REMOVED_ONLY", "upserts",
            "append_only APPEND_ONLY", "redo_log MINIMIZE", "redo_log ADDED_ONLY", "by key",
            "append_only by key", "min_delta MINIMAL", "redo_log MINIMAL", "slides",
        }  # fmt: skip
        assert wanted <= {shape for shape, count in counts.shapes.items() if count}


def every_insert_is_new() -> Any:
    """A row that is deleted and inserted again shows up twice."""
    return mock.patch.object(
        append_only,
        "first_inserts",
        lambda rows, *_: f"SELECT * FROM ({rows}) WHERE __dyn_weight = 1",
    )


def nothing_is_consolidated() -> Any:
    """What cancels out is shown."""
    right = Layout.consolidated

    def wrong(self: Layout, rows: str, by: Any = ()) -> str:
        return right(self, rows, by).replace("HAVING sum(__dyn_weight) <> 0", "")

    return mock.patch.object(Layout, "consolidated", wrong)


def every_rewrite_is_minimal() -> Any:
    """Rows that became equal when a column was left out are not consolidated."""
    return mock.patch.object(
        min_delta,
        "is_net",
        lambda delta, columns, facts: all(known.net_by is not None for known in facts.values()),
    )


def nothing_leaves_a_window() -> Any:
    """What happened at the beginning of a window stays in it."""

    def wrong(*, removed: Any, **more: Any) -> NetSlide:
        return NetSlide(**more)

    return mock.patch.object(slides, "NetSlide", wrong)


def everything_is_an_insert() -> Any:
    """Every interval is taken for one with inserts only."""
    right = states.interval_between

    def wrong(*arguments: Any) -> Any:
        found = right(*arguments)
        return found and Interval(found.table, found.old, found.new, Kind.INSERTS)

    return mock.patch.object(states, "interval_between", wrong)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mutant", "seed"),
    [
        # Few histories insert a row again: this is the first case of one that shows it.
        (every_insert_is_new, 3044),
        (nothing_is_consolidated, 300),
        (every_rewrite_is_minimal, 300),
        (everything_is_an_insert, 300),
        (nothing_leaves_a_window, 300),
    ],
)
def test_a_planted_bug_is_found(mutant: Callable[[], Any], seed: int) -> None:
    with mutant(), pytest.raises(AssertionError):
        run_changes(seed, 60)
