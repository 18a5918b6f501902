"""Reading the values of a configuration, and the problems found on the way."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from spark_dynamic.duration import parse_duration

MIN_RETENTION: Final = timedelta(hours=1)

# Configs of dbt and dbt-spark that are not ours: never a misspelling, however close they look.
_KNOWN: Final = """
access alias batch_size begin buckets catalog catalog_name check_cols column_types
concurrent_batches contract database dbt_valid_to_current delimiter docs enabled entry_point
error_if event_time expected_rows expected_sql fail_calc file_format freshness full_refresh grants
group hard_deletes incremental_predicates incremental_strategy indexes invalidate_hard_deletes
limit loaded_at_field loaded_at_query lookback materialized merge_exclude_columns
merge_update_columns meta on_schema_change options packages persist_docs post-hook post_hook
pre-hook pre_hook predicates quote_columns quoting runtime_version schema severity
snapshot_meta_column_names snapshot_table_column_names sql_header static_analysis store_failures
store_failures_as strategy submission_method tags target_database target_schema timeout type
updated_at version volatility warn_if where
"""
KNOWN_CONFIGS: Final = frozenset(_KNOWN.split())

# Low enough for a shortened word (on_config_change), high enough for a different one (partitions).
_CLOSE_ENOUGH: Final = 0.82
_LONGEST_SHOWN_VALUE: Final = 80


@dataclass(frozen=True)
class ConfigProblem:
    """One thing wrong with a configuration: its name, what was given, what is expected."""

    config: str
    got: object
    expected: str

    def __str__(self) -> str:
        got = repr(self.got)
        if len(got) > _LONGEST_SHOWN_VALUE:
            got = f"{got[:_LONGEST_SHOWN_VALUE]}…"
        return f"Invalid value for `{self.config}`: {got}. Expected {self.expected}."


@dataclass(frozen=True)
class UnknownConfig(ConfigProblem):
    """A config that nobody reads and whose name is close to one of ours (`expected`)."""

    def __str__(self) -> str:
        return f"Unknown config `{self.config}`. Did you mean `{self.expected}`?"


T = TypeVar("T")
D = TypeVar("D")
Choice = TypeVar("Choice", bound=StrEnum)


class Expected(Exception):
    """Raised by a converter; the text is what the config should have been."""


class Reader:
    """Reads values out of a raw configuration and keeps the problems found on the way."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.problems: list[ConfigProblem] = []

    def read(self, config: str, convert: Callable[[Any], T], default: D) -> T | D:
        """Convert one value; a missing, null or wrong one is the default."""
        value = self.raw.get(config)
        if value is None:
            return default
        try:
            return convert(value.strip() if isinstance(value, str) else value)
        except Expected as problem:
            self.refuse(config, str(problem))
            return default

    def refuse(self, config: str, expected: str, got: object = None) -> None:
        """Note a problem with one config."""
        shown = self.raw.get(config) if got is None else got
        self.problems.append(ConfigProblem(config, shown, expected))


def choice_of(choices: type[Choice]) -> Callable[[Any], Choice]:
    """Return a converter to one of some words."""
    names = [f"'{choice}'" for choice in choices]

    def convert(value: Any) -> Choice:
        try:
            return choices(value.lower())
        except (AttributeError, ValueError):
            raise Expected(f"{', '.join(names[:-1])} or {names[-1]}") from None

    return convert


def names_in(value: Any) -> tuple[str, ...] | None:
    """Read one name or a list of names; None if it is something else."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        return None
    if not all(isinstance(item, str) and item.strip() for item in items):
        return None
    return tuple(item.strip() for item in items)


def column_names(value: Any) -> tuple[str, ...]:
    """Read one column or a list of columns, each only once."""
    if isinstance(value, str) and "," in value:
        raise Expected("a list for more than one column, such as ['a', 'b']")
    columns = names_in(value)
    if columns is None:
        raise Expected("a column name or a list of column names")
    if len({column.casefold() for column in columns}) < len(columns):
        raise Expected("every column only once")
    return columns


def retention_time(value: Any) -> timedelta:
    """Read how long something is kept."""
    expected = Expected("a duration of at least 1 hour, such as '30 days'")
    try:
        retention = parse_duration(value)
    except ValueError:
        raise expected from None
    if retention < MIN_RETENTION:
        raise expected
    return retention


def misspelled(keys: Iterable[str], ours: Sequence[str]) -> list[ConfigProblem]:
    """Find the keys that nobody reads and that are close to one of `ours`."""
    problems: list[ConfigProblem] = []
    for key in keys:
        if key in ours or key in KNOWN_CONFIGS:
            continue
        # YAML reads a bare `on:` as the key True.
        match = _closest(str(key), ours)
        if match:
            problems.append(UnknownConfig(config=key, got=key, expected=match))
    return problems


def _closest(key: str, ours: Sequence[str]) -> str | None:
    spelled = re.sub(r"[^a-z0-9]+", "_", key.lower()).strip("_")
    if spelled in KNOWN_CONFIGS:
        return None
    for name in ours:
        if spelled.replace("_", "") == name.replace("_", ""):
            return name
    return next(iter(difflib.get_close_matches(spelled, ours, 1, _CLOSE_ENOUGH)), None)
