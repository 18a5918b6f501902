"""Bugs planted in change queries: random histories have to show every one of them."""

from contextlib import ExitStack
from typing import Any

from fuzz import slides
from fuzz.changes import run_changes
from fuzz.mutants import Mutant, patch, planted
from spark_dynamic.apply.net_slide import NetSlide
from spark_dynamic.changes import append_only, min_delta, states
from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.changes.layout import Layout


def is_found(mutant: Mutant, seed: int, cases: int) -> bool:
    """Tell whether one of so many change queries shows a bug."""
    with planted(mutant):
        try:
            run_changes(seed, cases)
        except AssertionError:
            return True
    return False


def every_insert_is_new(patches: ExitStack) -> None:
    """A row that is deleted and inserted again shows up twice."""
    patch(
        patches,
        append_only,
        "first_inserts",
        lambda rows, *_: f"SELECT * FROM ({rows}) WHERE __dyn_weight = 1",
    )


def nothing_is_consolidated(patches: ExitStack) -> None:
    """What cancels out is shown."""

    def wrong(self: Layout, rows: str, by: Any = ()) -> str:
        sql: str = right(self, rows, by)
        return sql.replace("HAVING sum(__dyn_weight) <> 0", "")

    right = patch(patches, Layout, "consolidated", wrong)


def every_difference_is_minimal(patches: ExitStack) -> None:
    """Rows that became equal when a column was left out are not consolidated."""
    patch(
        patches,
        min_delta,
        "is_net",
        lambda delta, columns, facts: all(known.net_by is not None for known in facts.values()),
    )


def everything_is_an_insert(patches: ExitStack) -> None:
    """Every interval is taken for one with inserts only."""

    def wrong(*arguments: Any) -> Any:
        found = right(*arguments)
        return found and Interval(found.table, found.old, found.new, Kind.INSERTS)

    right = patch(patches, states, "interval_between", wrong)


def nothing_leaves_a_window(patches: ExitStack) -> None:
    """What happened at the beginning of a window stays in it."""

    def wrong(*, removed: Any, **more: Any) -> NetSlide:
        return NetSlide(**more)

    patch(patches, slides, "NetSlide", wrong)


CHANGE_MUTANTS: tuple[Mutant, ...] = (
    every_insert_is_new,
    nothing_is_consolidated,
    every_difference_is_minimal,
    everything_is_an_insert,
    nothing_leaves_a_window,
)
