from collections.abc import Mapping
from datetime import datetime

import pytest
from fake_records import minute, pin_of, recorded_at

from spark_dynamic.frontier.cut import Cut, Upstream, Waiting, choose_cut
from spark_dynamic.frontier.record import Pin, Recorded
from spark_dynamic.names import TableName

NOW = 100


class Bases:
    """Base tables with the versions of `commits`; a version is committed at its minute."""

    def __init__(self, commits: Mapping[str, list[int]], same: set[tuple[str, int, int]]) -> None:
        self._commits = commits
        self._same = same

    def pin_at(self, table: TableName, moment: datetime) -> Pin:
        by_then = [v for v in self._commits[table.name] if minute(v) <= moment]
        return pin_of(table.name, max(by_then))

    def same_rows(self, old: Pin, new: Pin) -> bool:
        first, second = sorted((old.version, new.version))
        return first == second or (old.table.name, first, second) in self._same


def upstream(name: str, *records: Recorded) -> Upstream:
    return Upstream(TableName("shop", name), TableName("shop", f"{name}__dyn"), records)


def choose(
    commits: dict[str, list[int]],
    *upstreams: Upstream,
    bases: tuple[str, ...] = (),
    after: int | None = None,
    same: set[tuple[str, int, int]] | None = None,
    decided: int | None = None,
) -> Cut | Waiting:
    known = Bases(commits, same or set())
    return choose_cut(
        now=minute(NOW),
        after=None if after is None else minute(after),
        bases=[TableName("shop", base) for base in bases],
        upstreams=upstreams,
        pin_at=known.pin_at,
        same_rows=known.same_rows,
        decided=None if decided is None else minute(decided),
    )


def shown(cut: Cut | Waiting) -> tuple[int, dict[str, int]]:
    assert isinstance(cut, Cut)
    at = int((cut.data_timestamp - minute(0)).total_seconds() // 60)
    return at, {table.name: version for table, version in cut.versions().items()}


def test_base_tables_are_read_now() -> None:
    assert shown(choose({"o": [1, 5]}, bases=("o",))) == (NOW, {"o": 5})


def test_a_query_without_sources_has_an_empty_cut() -> None:
    assert shown(choose({})) == (NOW, {})


def test_a_chain_reads_the_upstream_of_this_cycle() -> None:
    a = upstream("a", recorded_at("a", 7, NOW, pin_of("o", 5)))
    assert shown(choose({"o": [1, 5]}, a)) == (NOW, {"o": 5, "a__dyn": 7})


def test_the_frontier_is_expanded_to_base_tables() -> None:
    a = upstream("a", recorded_at("a", 7, NOW, pin_of("o", 5), pin_of("c", 2)))
    cut = choose({"o": [5], "c": [2], "p": [3]}, a, bases=("p",))
    assert isinstance(cut, Cut)
    assert {table.name for table in cut.pins} == {"o", "c", "p"}


def test_a_diamond_reads_both_sides_at_one_cut() -> None:
    a = upstream("a", recorded_at("a", 7, NOW, pin_of("o", 5)))
    b = upstream("b", recorded_at("b", 3, NOW, pin_of("o", 5), pin_of("c", 2)))
    found = shown(choose({"o": [5], "c": [2]}, a, b, bases=("o",)))
    assert found == (NOW, {"o": 5, "c": 2, "a__dyn": 7, "b__dyn": 3})


def test_an_upstream_whose_sources_did_not_change_is_valid_now() -> None:
    """NO_DATA writes nothing, so the record is old; its contents are still right."""
    a = upstream("a", recorded_at("a", 7, 10, pin_of("o", 5)))
    assert shown(choose({"o": [5]}, a)) == (NOW, {"o": 5, "a__dyn": 7})


def test_a_rewrite_with_the_same_rows_leaves_an_upstream_valid() -> None:
    a = upstream("a", recorded_at("a", 7, 10, pin_of("o", 5)))
    found = choose({"o": [5, 50]}, a, same={("o", 5, 50)})
    assert shown(found) == (NOW, {"o": 50, "a__dyn": 7})


def test_an_upstream_that_was_not_refreshed_gives_an_older_cut() -> None:
    a = upstream("a", recorded_at("a", 7, 10, pin_of("o", 5)))
    found = choose({"o": [5, 50], "c": [2, 60]}, a, bases=("o", "c"), after=4)
    assert shown(found) == (10, {"o": 5, "c": 2, "a__dyn": 7})


@pytest.mark.parametrize(("after", "waits"), [(None, False), (9, False), (10, True), (11, True)])
def test_without_a_newer_cut_the_model_waits(after: int | None, waits: bool) -> None:
    a = upstream("a", recorded_at("a", 7, 10, pin_of("o", 5)))
    found = choose({"o": [5, 50]}, a, after=after)
    assert (found == Waiting((TableName("shop", "a"),))) is waits


def test_only_the_late_upstreams_are_waited_for() -> None:
    a = upstream("a", recorded_at("a", 7, 10, pin_of("o", 5)))
    b = upstream("b", recorded_at("b", 3, NOW, pin_of("c", 2)))
    found = choose({"o": [5, 50], "c": [2]}, a, b, after=NOW)
    assert found == Waiting((TableName("shop", "a"),))


def test_an_upstream_without_a_record_is_waited_for() -> None:
    assert choose({}, upstream("a")) == Waiting((TableName("shop", "a"),))


def test_the_newest_cut_at_which_upstreams_agree_is_taken() -> None:
    old_a = recorded_at("a", 7, 10, pin_of("o", 5))
    a = upstream("a", recorded_at("a", 8, 60, pin_of("o", 50)), old_a)
    b = upstream("b", recorded_at("b", 3, 10, pin_of("o", 5)))
    assert shown(choose({"o": [5, 50]}, a, b)) == (10, {"o": 5, "a__dyn": 7, "b__dyn": 3})


def test_upstreams_that_never_agree_are_waited_for() -> None:
    a = upstream("a", recorded_at("a", 8, 60, pin_of("o", 50)))
    b = upstream("b", recorded_at("b", 3, 10, pin_of("o", 5)))
    assert choose({"o": [5, 50]}, a, b) == Waiting((TableName("shop", "b"),))


def test_upstreams_agree_where_the_rows_are_the_same() -> None:
    a = upstream("a", recorded_at("a", 8, 60, pin_of("o", 50)))
    b = upstream("b", recorded_at("b", 3, 10, pin_of("o", 5)))
    same = {("o", 5, 50)}
    found = choose({"o": [5, 50, 70]}, a, b, same=same)
    assert shown(found)[1] == {"o": 50, "a__dyn": 8, "b__dyn": 3}


def test_a_moment_that_the_schedule_chose_is_taken_without_comparing_rows() -> None:
    a = upstream("a", recorded_at("a", 7, 50, pin_of("o", 5)))
    commits = {"o": [5, 60], "p": [3, 70]}
    same = {("o", 5, 60)}
    assert shown(choose(commits, a, bases=("p",), same=same))[0] == NOW
    found = choose(commits, a, bases=("p",), same=same, decided=50)
    assert shown(found) == (50, {"o": 5, "p": 3, "a__dyn": 7})


def test_what_is_as_new_as_can_be_is_taken_now_whatever_the_schedule_chose() -> None:
    a = upstream("a", recorded_at("a", 7, 50, pin_of("o", 5)))
    found = choose({"o": [5], "p": [3, 70]}, a, bases=("p",), decided=50)
    assert shown(found) == (NOW, {"o": 5, "p": 70, "a__dyn": 7})


@pytest.mark.parametrize("decided", [40, 50, 55])
def test_a_chosen_moment_that_is_not_there_any_more_is_none(decided: int) -> None:
    a = upstream("a", recorded_at("a", 7, 60, pin_of("o", 60)))
    found = choose({"o": [60, 61]}, a, after=50, decided=decided)
    assert shown(found) == (60, {"o": 60, "a__dyn": 7})
