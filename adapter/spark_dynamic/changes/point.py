"""Points in the history of a query, as people write them: one reader for all places."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from spark_dynamic.config_values import Expected
from spark_dynamic.duration import parse_duration

NOW: Final = "now"
BEFORE_THE_FIRST_CHANGE: Final = "before the first change"


@dataclass(frozen=True)
class OtherPosition:
    """Where another stream began, or where a consumer of it is."""

    stream: str
    consumer: str = ""


@dataclass(frozen=True)
class DataTimestamp:
    """The cut of a dynamic table's newest refresh."""

    dynamic_table: str


# A version; a moment or an interval back from now as text, NOW or BEFORE_THE_FIRST_CHANGE; or a
# position that is known already.
Point = int | str | OtherPosition | DataTimestamp


def read_point(value: Any) -> Point:
    """Read a point. Raises `Expected`.

    >>> read_point("5"), read_point("2026-01-02 03:04:05"), read_point("2 Hours")
    (5, '2026-01-02 03:04:05', '2 Hours')
    >>> read_point({"stream": "people_stream"})
    OtherPosition(stream='people_stream', consumer='')
    >>> read_point({"dynamic_table": "revenue"})
    DataTimestamp(dynamic_table='revenue')
    """
    if isinstance(value, OtherPosition | DataTimestamp):
        return value
    if isinstance(value, Mapping):
        return _known_position(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    # YAML turns what looks like a date into one.
    text = str(value).strip()
    if text.lower() in (NOW, BEFORE_THE_FIRST_CHANGE):
        return text.lower()
    if text.isdecimal():
        return int(text)
    if not _is_interval(text):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            raise _expected_point() from None
    return text


def shown_point(point: Any) -> str:
    """Write a point for people.

    >>> shown_point("2 hours")
    "'2 hours'"
    >>> shown_point(OtherPosition("people_stream", "people_changes"))
    'the position of people_changes in people_stream'
    """
    match read_point(point) if isinstance(point, Mapping) else point:
        case OtherPosition(stream, ""):
            return f"the start of {stream}"
        case OtherPosition(stream, consumer):
            return f"the position of {consumer} in {stream}"
        case DataTimestamp(table):
            return f"the data timestamp of {table}"
    return repr(point)


def _is_interval(text: str) -> bool:
    try:
        return bool(parse_duration(text))
    except ValueError:
        return False


def _known_position(value: Mapping[Any, Any]) -> Point:
    names = {key: str(name) for key, name in value.items() if name}
    match names:
        case {"dynamic_table": name, **rest} if not rest:
            return DataTimestamp(name)
        case {"stream": stream, **rest} if not set(rest) - {"consumer"}:
            return OtherPosition(stream, rest.get("consumer", ""))
    raise _expected_point()


def _expected_point() -> Expected:
    return Expected(
        f"'{NOW}', '{BEFORE_THE_FIRST_CHANGE}', a version, a timestamp such as "
        "'2026-01-31 12:00:00', an interval back from now such as '2 hours', the position of a "
        "stream such as {'stream': 'name'}, or the data timestamp of a dynamic table such as "
        "{'dynamic_table': 'name'}"
    )
