"""Moments, as they are written down."""

from datetime import UTC, datetime


def stamp(moment: datetime) -> str:
    """Write a moment in UTC with microseconds.

    >>> stamp(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02T03:04:05.000000Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_stamp(text: str) -> datetime:
    """Read what `stamp` wrote."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
