"""Moments, as they are written down."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spark_dynamic.errors import EngineError

# The session's time zone; moments without one are meant in it.
ZONE_SETTING: Final = "spark.sql.session.timeZone"
# An offset in all forms that Spark takes, such as `+1`, `-08:30`, `+0530` and `UTC+01:00`.
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2})(?::?(\d\d))?)?")
_UTC: Final = ("Z", "UTC", "GMT", "UT")

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


def zone_of(name: str) -> tzinfo:
    """Return a time zone by the name that Spark knows it by.

    >>> zone_of("+01:00"), zone_of("GMT-8"), zone_of("Z")
    (datetime.timezone(datetime.timedelta(seconds=3600)), \
datetime.timezone(datetime.timedelta(days=-1, seconds=57600)), datetime.timezone.utc)
    """
    if name in _UTC:
        return UTC
    if offset := _OFFSET.fullmatch(name):
        hours, minutes, seconds = (int(part or 0) for part in offset.groups()[1:])
        distance = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-distance if offset[1] == "-" else distance)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise EngineError(
            "SETTING_NOT_SUPPORTED",
            f"{ZONE_SETTING} is '{name}', which names no time zone for certain.",
            "Use a region such as Europe/Berlin, or an offset such as +01:00.",
        ) from error
