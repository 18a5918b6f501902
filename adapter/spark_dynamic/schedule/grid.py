"""The grid of canonical periods: 48·2ⁿ seconds, all counted from the Unix epoch.

Every period is a multiple of all shorter ones, so whenever a table is due, the tables with
shorter periods are due as well, and all of them are refreshed at one data timestamp.
"""

from bisect import bisect_left
from datetime import datetime, timedelta
from typing import Final

from spark_dynamic.clock import EPOCH

SHORTEST: Final = timedelta(seconds=48)
# The longest is 25 years, which no lag reaches.
PERIODS: Final = tuple(SHORTEST * 2**n for n in range(25))
LONGEST: Final = PERIODS[-1]


def longest_below(limit: timedelta) -> timedelta | None:
    """Return the longest period that is shorter than a limit; None if none is.

    >>> longest_below(timedelta(minutes=5)).total_seconds()
    192.0
    >>> longest_below(timedelta(seconds=48))
    """
    shorter = bisect_left(PERIODS, limit)
    return PERIODS[shorter - 1] if shorter else None


def last_point(now: datetime, period: timedelta) -> datetime:
    """Return the newest grid point that is not after now.

    >>> last_point(EPOCH + timedelta(seconds=100), SHORTEST) - EPOCH
    datetime.timedelta(seconds=96)
    """
    return EPOCH + (now - EPOCH) // period * period


def next_point(after: datetime, period: timedelta) -> datetime:
    """Return the first grid point after a moment.

    >>> next_point(EPOCH + timedelta(seconds=96), SHORTEST) - EPOCH
    datetime.timedelta(seconds=144)
    """
    return last_point(after, period) + period


def crossed(last: datetime, now: datetime, period: timedelta) -> bool:
    """Tell whether a grid point lies after `last` and not after `now`.

    >>> crossed(EPOCH + timedelta(seconds=47), EPOCH + timedelta(seconds=48), SHORTEST)
    True
    >>> crossed(EPOCH + timedelta(seconds=48), EPOCH + timedelta(seconds=95), SHORTEST)
    False
    """
    return last < last_point(now, period)
