"""The configuration of one dynamic table: what may be written, and what it means.

Everything is checked in one pass that collects every problem, so that a person
who made three mistakes reads three sentences and not one after the other.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Literal

from spark_dynamic.config_values import (
    ConfigProblem,
    Expected,
    Reader,
    choice_of,
    column_names,
    misspelled,
    names_in,
    retention_time,
)
from spark_dynamic.duration import EXPECTED_DURATION, parse_duration

DOWNSTREAM: Final = "downstream"
MAX_CLUSTER_COLUMNS: Final = 4

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
    "max_changes_window",
)

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
    max_changes_window: timedelta = timedelta(days=7)


def parse_config(raw: Mapping[str, Any]) -> tuple[DynamicTableConfig, list[ConfigProblem]]:
    """Read the configuration of a model, with every problem it has.

    Keys that are not ours are left alone. A config with a problem, like one that is
    missing or null, has its default in the result.
    """
    reader = Reader(raw)
    default = DynamicTableConfig()
    reader.read("file_format", _delta_only, None)
    reader.read("buckets", _no_buckets, None)
    partition_by, cluster_by = _layout(reader)
    config = DynamicTableConfig(
        target_lag=reader.read("target_lag", _target_lag, None),
        refresh_mode=reader.read("refresh_mode", choice_of(RefreshMode), default.refresh_mode),
        initialize=reader.read("initialize", choice_of(Initialize), default.initialize),
        on_configuration_change=reader.read(
            "on_configuration_change",
            choice_of(OnConfigurationChange),
            default.on_configuration_change,
        ),
        unique_key=reader.read("unique_key", column_names, ()),
        partition_by=partition_by,
        cluster_by=cluster_by,
        tblproperties=_tblproperties(reader),
        location_root=reader.read("location_root", _location, None),
        history_retention=reader.read(
            "history_retention", retention_time, default.history_retention
        ),
        suspend_after=reader.read("suspend_after", _count, default.suspend_after),
        immutable_functions=reader.read("immutable_functions", _function_names, ()),
        max_changes_window=reader.read(
            "max_changes_window", _duration, default.max_changes_window
        ),
    )
    return config, reader.problems


def did_you_mean(keys: Iterable[str]) -> list[ConfigProblem]:
    """Find the keys that nobody reads and that are close to one of ours."""
    return misspelled(keys, OWN_CONFIGS)


def _target_lag(value: Any) -> timedelta | Literal["downstream"]:
    if isinstance(value, str) and value.lower() == DOWNSTREAM:
        return DOWNSTREAM
    try:
        return parse_duration(value)
    except ValueError:
        raise Expected(f"{EXPECTED_DURATION}, or '{DOWNSTREAM}'") from None


def _duration(value: Any) -> timedelta:
    try:
        return parse_duration(value)
    except ValueError:
        raise Expected(EXPECTED_DURATION) from None


def _count(value: Any) -> int:
    # A value from env_var() or var() may arrive as text.
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise Expected("a whole number of failures, or 0 for never")


def _location(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise Expected("a directory such as '/data/warehouse' or 's3a://bucket/path'")


def _delta_only(value: Any) -> None:
    if not isinstance(value, str) or value.lower() != "delta":
        raise Expected("'delta': dynamic tables are Delta tables")


def _no_buckets(value: Any) -> None:
    raise Expected("no value: Delta has no buckets, use `clustered_by` alone")


def _cluster_columns(value: Any) -> tuple[str, ...]:
    columns = column_names(value)
    if len(columns) > MAX_CLUSTER_COLUMNS:
        raise Expected(f"at most {MAX_CLUSTER_COLUMNS} columns")
    return columns


def _layout(reader: Reader) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read the partition columns and the clustering columns; a table has only one of them."""
    partition_by = reader.read("partition_by", column_names, ())
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
    names = names_in(value)
    if names is None or not all(_FUNCTION_NAME.fullmatch(name) for name in names):
        raise Expected("function names such as 'my_function' or 'my_schema.my_function'")
    # dict.fromkeys: without repetition, in the order given.
    return tuple(dict.fromkeys(name.lower() for name in names))


def _tblproperties(reader: Reader) -> dict[str, str]:
    properties: dict[str, str] = {}
    for key, value in reader.read("tblproperties", _mapping, {}).items():
        try:
            name, text = _property(key, value)
        except Expected as problem:
            reader.refuse("tblproperties", str(problem), got={key: value})
        else:
            properties[name] = text
    return properties


def _mapping(value: Any) -> Mapping[object, object]:
    if isinstance(value, Mapping):
        return value
    raise Expected("a mapping of property names to values")


def _property(key: object, value: object) -> tuple[str, str]:
    if not isinstance(key, str) or not key.strip():
        raise Expected("property names that are text")
    if not isinstance(value, str | bool | int | float):
        raise Expected("property values that are text, numbers, true or false")
    name = key.strip()
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    lowered = name.lower()
    if lowered.startswith("spark_dynamic."):
        raise Expected("no property that starts with 'spark_dynamic.': the adapter sets these")
    if lowered in _RETENTION_PROPERTIES:
        raise Expected("`history_retention` to be used for this")
    if lowered == "delta.settransactionretentionduration":
        raise Expected("no such property: it would let a refresh be applied twice")
    fixed, reason = _FIXED_PROPERTIES.get(lowered, (text.lower(), ""))
    if text.lower() != fixed:
        raise Expected(f"'{fixed}': {reason}")
    return name, text
