"""The configuration of one dynamic table: what may be written, and what it means.

Everything is checked in one pass that collects every problem, so that a person
who made three mistakes reads three sentences and not one after the other.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Literal, TypeVar

from spark_dynamic.duration import EXPECTED_DURATION, parse_duration

DOWNSTREAM: Final = "downstream"
MAX_CLUSTER_COLUMNS: Final = 4
MIN_HISTORY_RETENTION: Final = timedelta(hours=1)

OWN_CONFIGS: Final = (
    "target_lag",
    "refresh_mode",
    "initialize",
    "on_configuration_change",
    "unique_key",
    "partition_by",
    "clustered_by",
    "liquid_clustered_by",
    "tblproperties",
    "location_root",
    "history_retention",
    "suspend_after",
    "immutable_functions",
)

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
_FUNCTION_NAME: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*){0,2}")

# Table properties, in lower case, without which a refresh could be wrong or lose its history.
_RETENTION_PROPERTIES: Final = ("delta.deletedfileretentionduration", "delta.logretentionduration")
_FIXED_PROPERTIES: Final = {
    "delta.enablechangedatafeed": ("true", "readers of a dynamic table need its change feed"),
    "delta.enabledeletionvectors": ("true", "small refreshes need deletion vectors"),
    "delta.appendonly": ("false", "a refresh also deletes rows"),
}


class RefreshMode(StrEnum):
    """How a refresh computes the new contents."""

    AUTO = "auto"
    FULL = "full"
    INCREMENTAL = "incremental"


class Initialize(StrEnum):
    """When the first build happens."""

    ON_CREATE = "on_create"
    ON_SCHEDULE = "on_schedule"


class OnConfigurationChange(StrEnum):
    """What happens when the stored table was built with another configuration."""

    APPLY = "apply"
    CONTINUE = "continue"
    FAIL = "fail"


@dataclass(frozen=True)
class DynamicTableConfig:
    """The validated configuration of one dynamic table."""

    target_lag: timedelta | Literal["downstream"] | None = None
    refresh_mode: RefreshMode = RefreshMode.AUTO
    initialize: Initialize = Initialize.ON_CREATE
    on_configuration_change: OnConfigurationChange = OnConfigurationChange.APPLY
    unique_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    tblproperties: dict[str, str] = field(default_factory=dict)
    location_root: str | None = None
    history_retention: timedelta = timedelta(days=30)
    suspend_after: int = 5
    immutable_functions: tuple[str, ...] = ()


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


def parse_config(raw: Mapping[str, Any]) -> tuple[DynamicTableConfig, list[ConfigProblem]]:
    """Read the configuration of a model, with every problem it has.

    Keys that are not ours are left alone. A config with a problem, like one that is
    missing or null, has its default in the result.
    """
    reader = _Reader(raw)
    default = DynamicTableConfig()
    reader.read("file_format", _delta_only, None)
    reader.read("buckets", _no_buckets, None)
    partition_by, cluster_by = _layout(reader)
    config = DynamicTableConfig(
        target_lag=reader.read("target_lag", _target_lag, None),
        refresh_mode=reader.read("refresh_mode", _choice(RefreshMode), default.refresh_mode),
        initialize=reader.read("initialize", _choice(Initialize), default.initialize),
        on_configuration_change=reader.read(
            "on_configuration_change",
            _choice(OnConfigurationChange),
            default.on_configuration_change,
        ),
        unique_key=reader.read("unique_key", _columns, ()),
        partition_by=partition_by,
        cluster_by=cluster_by,
        tblproperties=_tblproperties(reader),
        location_root=reader.read("location_root", _location, None),
        history_retention=reader.read("history_retention", _retention, default.history_retention),
        suspend_after=reader.read("suspend_after", _count, default.suspend_after),
        immutable_functions=reader.read("immutable_functions", _function_names, ()),
    )
    return config, reader.problems


def did_you_mean(keys: Iterable[str]) -> list[ConfigProblem]:
    """Find the keys that nobody reads and that are close to one of ours."""
    problems: list[ConfigProblem] = []
    for key in keys:
        if key in OWN_CONFIGS or key in KNOWN_CONFIGS:
            continue
        # YAML reads a bare `on:` as the key True.
        match = _closest(str(key))
        if match:
            problems.append(UnknownConfig(config=key, got=key, expected=match))
    return problems


def _closest(key: str) -> str | None:
    spelled = re.sub(r"[^a-z0-9]+", "_", key.lower()).strip("_")
    if spelled in KNOWN_CONFIGS:
        return None
    for name in OWN_CONFIGS:
        if spelled.replace("_", "") == name.replace("_", ""):
            return name
    return next(iter(difflib.get_close_matches(spelled, OWN_CONFIGS, 1, _CLOSE_ENOUGH)), None)


T = TypeVar("T")
D = TypeVar("D")
Choice = TypeVar("Choice", bound=StrEnum)


class _Expected(Exception):
    """Raised by a converter; the text is what the config should have been."""


class _Reader:
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
        except _Expected as problem:
            self.refuse(config, str(problem))
            return default

    def refuse(self, config: str, expected: str, got: object = None) -> None:
        """Note a problem with one config."""
        shown = self.raw.get(config) if got is None else got
        self.problems.append(ConfigProblem(config, shown, expected))


def _choice(choices: type[Choice]) -> Callable[[Any], Choice]:
    names = [f"'{choice}'" for choice in choices]

    def convert(value: Any) -> Choice:
        try:
            return choices(value.lower())
        except (AttributeError, ValueError):
            raise _Expected(f"{', '.join(names[:-1])} or {names[-1]}") from None

    return convert


def _target_lag(value: Any) -> timedelta | Literal["downstream"]:
    if isinstance(value, str) and value.lower() == DOWNSTREAM:
        return DOWNSTREAM
    try:
        return parse_duration(value)
    except ValueError:
        raise _Expected(f"{EXPECTED_DURATION}, or '{DOWNSTREAM}'") from None


def _retention(value: Any) -> timedelta:
    expected = _Expected("a duration of at least 1 hour, such as '30 days'")
    try:
        retention = parse_duration(value)
    except ValueError:
        raise expected from None
    if retention < MIN_HISTORY_RETENTION:
        raise expected
    return retention


def _count(value: Any) -> int:
    # A value from env_var() or var() may arrive as text.
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise _Expected("a whole number of failures, or 0 for never")


def _location(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise _Expected("a directory such as '/data/warehouse' or 's3a://bucket/path'")


def _delta_only(value: Any) -> None:
    if not isinstance(value, str) or value.lower() != "delta":
        raise _Expected("'delta': dynamic tables are Delta tables")


def _no_buckets(value: Any) -> None:
    raise _Expected("no value: Delta has no buckets, use `clustered_by` alone")


def _names(value: Any) -> tuple[str, ...] | None:
    """Read one name or a list of names; None if it is something else."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        return None
    if not all(isinstance(item, str) and item.strip() for item in items):
        return None
    return tuple(item.strip() for item in items)


def _columns(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and "," in value:
        raise _Expected("a list for more than one column, such as ['a', 'b']")
    columns = _names(value)
    if columns is None:
        raise _Expected("a column name or a list of column names")
    if len({column.casefold() for column in columns}) < len(columns):
        raise _Expected("every column only once")
    return columns


def _cluster_columns(value: Any) -> tuple[str, ...]:
    columns = _columns(value)
    if len(columns) > MAX_CLUSTER_COLUMNS:
        raise _Expected(f"at most {MAX_CLUSTER_COLUMNS} columns")
    return columns


def _layout(reader: _Reader) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read the partition columns and the clustering columns; a table has only one of them."""
    partition_by = reader.read("partition_by", _columns, ())
    plain = reader.read("clustered_by", _cluster_columns, ())
    liquid = reader.read("liquid_clustered_by", _cluster_columns, ())
    if plain and liquid and plain != liquid:
        reader.refuse(
            "liquid_clustered_by", "the columns of `clustered_by`, or only one of the two configs"
        )
    if partition_by and (plain or liquid):
        other = "clustered_by" if plain else "liquid_clustered_by"
        reader.refuse(
            "partition_by", f"no partitions beside `{other}`: a Delta table has one or neither"
        )
        partition_by = ()
    return partition_by, plain or liquid


def _function_names(value: Any) -> tuple[str, ...]:
    names = _names(value)
    if names is None or not all(_FUNCTION_NAME.fullmatch(name) for name in names):
        raise _Expected("function names such as 'my_function' or 'my_schema.my_function'")
    # dict.fromkeys: without repetition, in the order given.
    return tuple(dict.fromkeys(name.lower() for name in names))


def _tblproperties(reader: _Reader) -> dict[str, str]:
    properties: dict[str, str] = {}
    for key, value in reader.read("tblproperties", _mapping, {}).items():
        try:
            name, text = _property(key, value)
        except _Expected as problem:
            reader.refuse("tblproperties", str(problem), got={key: value})
        else:
            properties[name] = text
    return properties


def _mapping(value: Any) -> Mapping[object, object]:
    if isinstance(value, Mapping):
        return value
    raise _Expected("a mapping of property names to values")


def _property(key: object, value: object) -> tuple[str, str]:
    if not isinstance(key, str) or not key.strip():
        raise _Expected("property names that are text")
    if not isinstance(value, str | bool | int | float):
        raise _Expected("property values that are text, numbers, true or false")
    name = key.strip()
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    lowered = name.lower()
    if lowered.startswith("spark_dynamic."):
        raise _Expected("no property that starts with 'spark_dynamic.': the adapter sets these")
    if lowered in _RETENTION_PROPERTIES:
        raise _Expected("`history_retention` to be used for this")
    if lowered == "delta.settransactionretentionduration":
        raise _Expected("no such property: it would let a refresh be applied twice")
    fixed, reason = _FIXED_PROPERTIES.get(lowered, (text.lower(), ""))
    if text.lower() != fixed:
        raise _Expected(f"'{fixed}': {reason}")
    return name, text
