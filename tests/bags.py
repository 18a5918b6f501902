"""Comparing bags of rows in Python: on tiny tables quicker than any query."""

from collections import Counter
from collections.abc import Iterable
from typing import Any


def bag(rows: Iterable[Iterable[Any]]) -> Counter[str]:
    """Return how often each row is there; NaN equals NaN, and 0.0 equals -0.0.

    >>> bag([(0.0, None)]) == bag([(-0.0, None)])
    True
    """
    return Counter(repr(tuple(_plain(value) for value in row)) for row in rows)


def _plain(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value
