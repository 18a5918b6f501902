"""Moments, as they are written down."""

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
# Clocks of machines that work together differ by no more than this; Kerberos allows as much. What
# lies further ahead comes from a clock that is wrong.
SKEW: Final = timedelta(minutes=5)


def stamp(moment: datetime) -> str:
    """Write a moment in UTC with microseconds.

    >>> stamp(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02T03:04:05.000000Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_stamp(text: str) -> datetime:
    """Read what `stamp` wrote."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def micros(moment: datetime) -> int:
    """Return a moment as a number, as Spark's `unix_micros` does.

    >>> micros(EPOCH + timedelta(seconds=1))
    1000000
    """
    return (moment - EPOCH) // MICROSECOND


def from_micros(number: int) -> datetime:
    """Return the moment of a number of microseconds."""
    return EPOCH + number * MICROSECOND
