"""The configuration of one stream: what may be written, and what it means."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from spark_dynamic.changes.read import Mode
from spark_dynamic.config_values import (
    ConfigProblem,
    Expected,
    Reader,
    column_names,
    misspelled,
    retention_time,
)
from spark_dynamic.duration import parse_duration

STREAM_CONFIGS: Final = (
    "mode",
    "at",
    "show_initial_rows",
    "unique_key",
    "max_retention_extension",
)
NOW: Final = "now"
BEFORE_THE_FIRST_CHANGE: Final = "before the first change"
_MODES: Final = ", ".join(f"'{mode.value}'" for mode in Mode)


@dataclass(frozen=True)
class OtherPosition:
    """Where another stream began, or where a consumer of it is."""

    stream: str
    consumer: str = ""


# A version; a moment or an interval back from now as text, NOW or BEFORE_THE_FIRST_CHANGE; or a
# position that is known already.
Point = int | str | OtherPosition


@dataclass(frozen=True)
class StreamConfig:
    """The validated configuration of one stream."""

    mode: Mode = Mode.MIN_DELTA
    at: Point | None = None
    # None: as `at` says.
    shows_initial_rows: bool | None = None
    unique_key: tuple[str, ...] = ()
    max_retention_extension: timedelta | None = None

    @property
    def initial_rows(self) -> bool:
        """Tell whether a first reader gets the contents: yes, unless a start was chosen."""
        return self.at is None if self.shows_initial_rows is None else self.shows_initial_rows


def parse_stream_config(raw: Mapping[str, Any]) -> tuple[StreamConfig, list[ConfigProblem]]:
    """Read the configuration of a stream, with every problem it has."""
    reader = Reader(raw)
    config = StreamConfig(
        mode=reader.read("mode", _mode, Mode.MIN_DELTA),
        at=reader.read("at", read_point, None),
        shows_initial_rows=reader.read("show_initial_rows", _boolean, None),
        unique_key=reader.read("unique_key", column_names, ()),
        max_retention_extension=reader.read("max_retention_extension", retention_time, None),
    )
    return config, reader.problems


def misspelled_stream_configs(keys: Iterable[str]) -> list[ConfigProblem]:
    """Find the keys that nobody reads and that are close to one of a stream's."""
    return misspelled(keys, STREAM_CONFIGS)


def read_point(value: Any) -> Point:
    """Read a point in the history of a query. Raises `Expected`.

    >>> read_point("5"), read_point("2026-01-02 03:04:05"), read_point("2 Hours")
    (5, '2026-01-02 03:04:05', '2 Hours')
    >>> read_point({"stream": "people_stream"})
    OtherPosition(stream='people_stream', consumer='')
    """
    if isinstance(value, Mapping):
        return _other_position(value)
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


def _is_interval(text: str) -> bool:
    try:
        return bool(parse_duration(text))
    except ValueError:
        return False


def _other_position(value: Mapping[Any, Any]) -> OtherPosition:
    stream, consumer = value.get("stream"), value.get("consumer", "")
    if not stream or not set(value) <= {"stream", "consumer"}:
        raise _expected_point()
    return OtherPosition(str(stream), str(consumer))


def _expected_point() -> Expected:
    return Expected(
        f"'{NOW}', '{BEFORE_THE_FIRST_CHANGE}', a version, a timestamp such as "
        "'2026-01-31 12:00:00', an interval back from now such as '2 hours', or the position of "
        "another stream such as {'stream': 'name'}"
    )


def _mode(value: Any) -> Mode:
    try:
        return Mode(value.lower())
    except (AttributeError, ValueError):
        raise Expected(f"one of {_MODES}") from None


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise Expected("true or false")
