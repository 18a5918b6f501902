"""Rows that differ, once Spark has left out most of those that are as good as equal."""

from math import inf, nan
from time import monotonic
from typing import Any

import pytest

from spark_dynamic.apply.rounding import Rounding
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.refresh.difference import Comparison, Differing

COLUMNS = (StoredColumn("k", "k", "int"), StoredColumn("x", "x", "double"))


def left(*rows: tuple[int, Any, Any]) -> list[tuple[int, Any, Any]]:
    found = [Differing(copies, (k, x)) for copies, k, x in rows]
    return [(row.copies, *row.values) for row in Comparison(COLUMNS).beyond_tolerance(found)]


@pytest.mark.parametrize(
    ("one", "other", "are_close"),
    [
        (1e20, 1e20 + 1e10, True),
        (1e20, 1e20 + 1e12, False),
        (5.5e-17, 0.0, True),
        (1e-8, 0.0, False),
        (nan, nan, True),
        (nan, inf, False),
        (inf, inf, True),
        (inf, -inf, False),
        (None, None, True),
        (None, 0.0, False),
    ],
)
def test_how_close_is_equal(one: float | None, other: float | None, are_close: bool) -> None:
    assert (left((1, 7, one), (-1, 7, other)) == []) is are_close


def test_everything_else_has_to_be_equal() -> None:
    assert len(left((1, 7, 1.0), (-1, 8, 1.0))) == 2
    assert len(left((1, None, 1.0), (-1, 8, 1.0))) == 2


def test_copies_are_counted() -> None:
    assert left((3, 7, 1.0), (-2, 7, 1.0 + 1e-12)) == [(1, 7, 1.0)]


def test_many_rows_take_no_time() -> None:
    rows = [(1, k, 1.0) for k in range(5_000)] + [(-1, k, 2.0) for k in range(5_000)]
    start = monotonic()
    assert len(left(*rows)) == 10_000
    assert monotonic() - start < 2


@pytest.mark.parametrize(
    ("scale", "moves", "one", "are_close"),
    [(0.0, 0.0, 5.5e-17, False), (0.0, 1e-3, 9e-4, True), (0.0, 1e-3, 1.1e-3, False)],
)
def test_what_rounding_explains_is_close(
    scale: float, moves: float, one: float, are_close: bool
) -> None:
    comparison = Comparison(COLUMNS, scale, Rounding(frozenset({1}), ""))
    found = [Differing(copies, (7, x), {1: moves}) for copies, x in ((1, one), (-1, 0.0))]
    assert (comparison.beyond_tolerance(found) == []) is are_close
