"""How long a table's refreshes waited in their runs: for upstreams, threads and other nodes.

How long that is depends on who else is due in the same run, and that depends on the grid point
that the run comes after: the point of a long period makes many tables due at once. So the last
waits are kept for each kind of point; of the last ones alone, those of a busy run that comes once
a day would be forgotten by the next.
"""

from datetime import datetime, timedelta
from math import ceil
from typing import Final

from spark_dynamic.schedule.grid import PERIODS, crossed

# In whole seconds, newest first, for the points of each canonical period: the shortest is first.
Waits = tuple[tuple[int, ...], ...]

# One long wait is remembered for so many runs after points of the same kind.
_KEPT: Final = 2
# 27 hours: longer ones are one kind.
_KINDS: Final = 12


def noted_wait(waits: Waits, before: datetime, moment: datetime, waited: timedelta) -> Waits:
    """Return the waits with that of a refresh from one data timestamp to a newer one.

    >>> from datetime import UTC
    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> noted_wait(((3,),), noon, noon + timedelta(minutes=1), timedelta(seconds=1.5))
    ((2, 3),)
    """
    kind = _kind(before, moment)
    kept = [*waits, *[()] * (kind + 1 - len(waits))]
    kept[kind] = (max(ceil(waited.total_seconds()), 0), *kept[kind])[:_KEPT]
    return tuple(kept)


def longest_wait(waits: Waits) -> timedelta:
    """Return how long the next refresh may have to wait, by what others did."""
    return timedelta(seconds=max((seconds for kept in waits for seconds in kept), default=0))


def _kind(before: datetime, moment: datetime) -> int:
    """Return which is the longest period of which a point lies between two moments."""
    longest = 0
    for kind in range(1, _KINDS):
        if not crossed(before, moment, PERIODS[kind]):
            break
        longest = kind
    return longest
