"""The configuration of one stream: what may be written, and what it means."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from spark_dynamic.changes.point import BEFORE_THE_FIRST_CHANGE, Point, read_point
from spark_dynamic.changes.read import Mode
from spark_dynamic.config_values import (
    ConfigProblem,
    Expected,
    Reader,
    column_names,
    misspelled,
    retention_time,
)

STREAM_CONFIGS: Final = (
    "mode",
    "at",
    "show_initial_rows",
    "unique_key",
    "row_keys",
    "encoding",
    "max_retention_extension",
)
# How an update is shown: as the old row and the new one, or as the new one alone.
_ENCODINGS: Final = {"changes": False, "upserts": True}
_MODES: Final = ", ".join(f"'{mode.value}'" for mode in Mode)


@dataclass(frozen=True)
class StreamConfig:
    """The validated configuration of one stream."""

    mode: Mode = Mode.MIN_DELTA
    at: Point | None = None
    # None: as `at` says.
    shows_initial_rows: bool | None = None
    unique_key: tuple[str, ...] = ()
    # By the names of sources.
    row_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    upserts: bool = False
    max_retention_extension: timedelta | None = None

    @property
    def initial_rows(self) -> bool:
        """Tell whether a first reader gets the contents: yes, unless a start was chosen.

        A table may have been made with rows, which came before the first change of it.
        """
        if self.shows_initial_rows is None:
            return self.at in (None, BEFORE_THE_FIRST_CHANGE)
        return self.shows_initial_rows


def parse_stream_config(raw: Mapping[str, Any]) -> tuple[StreamConfig, list[ConfigProblem]]:
    """Read the configuration of a stream, with every problem it has."""
    reader = Reader(raw)
    config = StreamConfig(
        mode=reader.read("mode", _mode, Mode.MIN_DELTA),
        at=reader.read("at", read_point, None),
        shows_initial_rows=reader.read("show_initial_rows", _boolean, None),
        unique_key=reader.read("unique_key", column_names, ()),
        row_keys=reader.read("row_keys", _row_keys, {}),
        upserts=reader.read("encoding", _upserts, False),
        max_retention_extension=reader.read("max_retention_extension", retention_time, None),
    )
    return config, reader.problems


def misspelled_stream_configs(keys: Iterable[str]) -> list[ConfigProblem]:
    """Find the keys that nobody reads and that are close to one of a stream's."""
    return misspelled(keys, STREAM_CONFIGS)


def _mode(value: Any) -> Mode:
    try:
        return Mode(value.lower())
    except (AttributeError, ValueError):
        raise Expected(f"one of {_MODES}") from None


def _row_keys(value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise Expected("a mapping from sources to their keys, such as {'people': 'id'}")
    return {str(source): column_names(columns) for source, columns in value.items()}


def _upserts(value: Any) -> bool:
    try:
        return _ENCODINGS[value.lower()]
    except (AttributeError, KeyError):
        raise Expected("'changes' or 'upserts'") from None


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise Expected("true or false")
