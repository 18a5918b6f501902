"""Durations as people write them: '90 seconds', '5 minutes', '1 day'."""

import re
from datetime import timedelta

EXPECTED_DURATION = "a duration such as '5 minutes'"

_DURATION = re.compile(r"([0-9]+)\s+(second|minute|hour|day|week)s?", re.IGNORECASE)


def parse_duration(text: object) -> timedelta:
    """Turn a positive whole number and a unit into a timedelta, or raise ValueError.

    >>> parse_duration("90 seconds")
    datetime.timedelta(seconds=90)
    """
    match = _DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    try:
        # An absurdly large number overflows here; it is bad input like any other.
        value = timedelta(**{f"{match[2].lower()}s": int(match[1])}) if match else timedelta()
    except (OverflowError, ValueError):
        value = timedelta()
    if not value:
        raise ValueError(
            f"Expected {EXPECTED_DURATION}: a positive whole number and one of "
            f"seconds, minutes, hours, days or weeks. Got {text!r}."
        )
    return value


def format_duration(duration: timedelta) -> str:
    """Write a duration shortly, in whole seconds.

    >>> format_duration(timedelta(minutes=90))
    '1h 30m'
    """
    seconds = int(duration.total_seconds())
    sign = "-" if seconds < 0 else ""
    minutes, seconds = divmod(abs(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s"))
    return sign + (" ".join(f"{count}{unit}" for count, unit in parts if count) or "0s")
