"""What `auto` learns from the table's own refreshes."""

from datetime import UTC, datetime, timedelta

from spark_dynamic.refresh.cost import PATIENCE, slower_so_far
from spark_dynamic.schedule.known import Known, Refresh, known_from, noted
from spark_dynamic.schedule.remembered import Remembered, read_remembered, write_remembered

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def took(seconds: float, action: str) -> Refresh:
    return Refresh(action, NOON, NOON + timedelta(seconds=seconds), NOON)


def refreshed(*refreshes: tuple[float, str]) -> Known:
    return known_from(took(*refresh) for refresh in refreshes)


def test_what_was_slower_is_not_done_again_until_it_is_tried_again() -> None:
    known = refreshed((20, "FULL"), (30, "INCREMENTAL"), (12, "INCREMENTAL"))
    assert slower_so_far(known) is None
    known = noted(known, took(13, "INCREMENTAL"))
    why = slower_so_far(known)
    assert why is not None and why.code == "CHEAPER"
    # The first build, which also made the table, counts half.
    assert "took 12.0 s, the last full ones 10.0 s" in why.sentence
    for _ in range(PATIENCE):
        assert slower_so_far(known) is not None
        known = noted(known, took(8, "FULL"))
    assert slower_so_far(known) is None
    assert slower_so_far(noted(known, took(7, "INCREMENTAL"))) is None


def test_one_kind_alone_tells_nothing() -> None:
    assert slower_so_far(Known()) is None
    assert slower_so_far(refreshed((1, "FULL"), (1, "FULL"))) is None
    assert slower_so_far(refreshed((9, "FULL"), (1, "NO_DATA"))) is None


def test_a_slow_start_is_forgiven_and_a_new_query_begins_anew() -> None:
    assert slower_so_far(refreshed((8, "FULL"), (30, "INCREMENTAL"), (4, "INCREMENTAL"))) is None
    assert slower_so_far(refreshed((8, "FULL"), (9, "INCREMENTAL"), (2, "REINITIALIZE"))) is None


def test_it_is_remembered() -> None:
    known = refreshed((20, "FULL"), (12, "INCREMENTAL"), (5, "FULL"))
    tables = {"shop.t": Remembered(known)}
    assert read_remembered(write_remembered(tables)) == tables
