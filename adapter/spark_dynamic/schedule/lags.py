"""What the target lags of a project come to: each table's own, or that of its consumers."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final, Literal

from spark_dynamic.config import DOWNSTREAM

# As it is configured; None: no target lag.
TargetLag = timedelta | Literal["downstream"] | None

# A table without target lag. It is the shortest lag there is: no consumer asks for less.
EVERY_RUN: Final = timedelta(0)
# `downstream`, and nobody reads it: refreshed only when somebody asks for it.
ON_DEMAND: Final = timedelta.max


def effective_lags(
    targets: Mapping[str, TargetLag],
    order: Sequence[str],
    consumers: Mapping[str, Iterable[str]],
) -> dict[str, timedelta]:
    """Return the lag that each table has to keep; `downstream` is the least of its consumers'.

    >>> targets = {"a": "downstream", "b": timedelta(minutes=5), "c": timedelta(hours=1)}
    >>> lags = effective_lags(targets, ["a", "b", "c"], {"a": ["b", "c"], "b": [], "c": []})
    >>> lags["a"]
    datetime.timedelta(seconds=300)
    """
    lags: dict[str, timedelta] = {}
    for name in reversed(order):
        target = targets[name]
        if target == DOWNSTREAM:
            lags[name] = min((lags[c] for c in consumers[name]), default=ON_DEMAND)
        elif isinstance(target, timedelta):
            lags[name] = target
        else:
            lags[name] = EVERY_RUN
    return lags
