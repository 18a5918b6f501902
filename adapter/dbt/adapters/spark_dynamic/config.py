"""Model configs as dbt sees them, and the check of a whole project at parse time."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final

from dbt.adapters.spark.impl import SparkConfig
from dbt_common.exceptions import CompilationError

from dbt.adapters.spark_dynamic.stream_models import STREAM, consumer_problems, consumes
from spark_dynamic.changes.stream_config import (
    StreamConfig,
    misspelled_stream_configs,
    parse_stream_config,
)
from spark_dynamic.config import DynamicTableConfig, did_you_mean, parse_config
from spark_dynamic.config_values import ConfigProblem

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest

MATERIALIZATION: Final = "dynamic_table"

# Where values are kept that dbt would answer with a Python traceback naming no model.
_HELD_BACK: Final = "spark_dynamic_invalid_configs"
_LOOKS_LIKE: Final = 0.9


class DynamicTableConfigError(CompilationError):
    """Every problem found in the configuration of one model or of a whole project."""

    def __init__(self, problems_by_model: Mapping[str, Iterable[ConfigProblem]]) -> None:
        lines = ["CONFIG_INVALID: Some dynamic tables or streams have invalid configurations:"]
        for model, problems in problems_by_model.items():
            lines.append(f"  {model}")
            lines.extend(f"    - {problem}" for problem in problems)
        super().__init__("\n".join(lines))

    @property
    def type(self) -> str:
        """The word that dbt puts in front of "Error" in the headline."""
        return "Configuration"


@dataclass
class SparkDynamicConfig(SparkConfig):
    """The configs of this adapter, beside those that dbt itself declares.

    dbt uses the class to merge the levels of a configuration and checks no value;
    `check_project` does.
    """

    file_format: str = "delta"
    target_lag: str | None = None
    refresh_mode: str | None = None
    initialize: str | None = None
    liquid_clustered_by: list[str] | str | None = None
    tblproperties: dict[str, Any] | None = None
    history_retention: str | None = None
    suspend_after: int | None = None
    immutable_functions: list[str] | str | None = None
    max_changes_window: str | None = None
    mode: str | None = None
    at: Any = None
    show_initial_rows: bool | None = None
    max_retention_extension: str | None = None

    @classmethod
    def _merge_dicts(cls, src: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
        """Merge one level, and make two of dbt's own typed configs safe to load.

        dbt has already put this level's `on_configuration_change` and `unique_key` into
        `src`. It fails on 'APPLY' and on a wrong value with a traceback, so the one is
        brought into dbt's spelling and the other is held back for `check_project`.
        """
        merged: dict[str, Any] = super()._merge_dicts(src, data)
        held_back = dict(src.get(_HELD_BACK, {}))
        if "on_configuration_change" in src:
            value = src["on_configuration_change"]
            config, problems = parse_config({"on_configuration_change": value})
            merged["on_configuration_change"] = config.on_configuration_change.value
            if problems:
                held_back["on_configuration_change"] = value
        # A snapshot without its key gets a better answer from dbt than from here.
        if "unique_key" in src and "check_cols" not in src:
            value = src["unique_key"]
            value = list(value) if isinstance(value, tuple) else value
            merged["unique_key"] = value
            if not _is_loadable_key(value):
                merged["unique_key"] = None
                held_back["unique_key"] = value
        if held_back:
            merged[_HELD_BACK] = held_back
        return merged


def read_config(model: Mapping[str, Any]) -> DynamicTableConfig:
    """Read the configuration of one model, given as Jinja's `model`; raise if it is wrong."""
    config, problems = _read(model["config"], str(model.get("language", "sql")))
    if problems:
        where = _describe(model["unique_id"], model["original_file_path"])
        raise DynamicTableConfigError({where: problems})
    return config


def read_stream_config(model: Mapping[str, Any]) -> StreamConfig:
    """Read the configuration of a stream, given as Jinja's `model`; raise if it is wrong."""
    config, problems = _read_stream(model["config"], str(model.get("language", "sql")))
    if problems:
        where = _describe(model["unique_id"], model["original_file_path"])
        raise DynamicTableConfigError({where: problems})
    return config


def lenient_config(raw: Mapping[str, Any]) -> DynamicTableConfig:
    """Read a model's configuration; what is wrong in it has its default, and is told elsewhere."""
    return parse_config({**raw, **raw.get(_HELD_BACK, {})})[0]


def check_project(manifest: "Manifest") -> None:
    """Check every enabled model of a project; raise one error that lists all problems."""
    problems_by_model: dict[str, list[ConfigProblem]] = {}
    for unique_id, node in sorted(manifest.nodes.items()):
        kind = str(node.resource_type)
        if kind not in ("model", "snapshot") or not node.config.enabled:
            continue
        raw = node.config.to_dict(omit_none=True)
        problems: list[ConfigProblem] = []
        if kind == "model" and node.config.materialized == MATERIALIZATION:
            problems = _read(raw, str(node.language))[1]
        elif kind == "model" and node.config.materialized == STREAM:
            problems = _read_stream(raw, str(node.language))[1]
        elif kind == "model":
            problems = _problems_of_other_model(raw, manifest)
        if consumes(node, manifest.macros):
            problems += consumer_problems(raw, kind)
        if problems:
            problems_by_model[_describe(unique_id, node.original_file_path)] = problems
    if problems_by_model:
        raise DynamicTableConfigError(problems_by_model)


def _read(raw: Mapping[str, Any], language: str) -> tuple[DynamicTableConfig, list[ConfigProblem]]:
    config, problems = parse_config({**raw, **raw.get(_HELD_BACK, {})})
    problems += did_you_mean(raw)
    if language != "sql":
        problems.append(
            ConfigProblem("language", language, "'sql': a dynamic table is defined by a query")
        )
    return config, problems


def _read_stream(
    raw: Mapping[str, Any], language: str
) -> tuple[StreamConfig, list[ConfigProblem]]:
    config, problems = parse_stream_config({**raw, **raw.get(_HELD_BACK, {})})
    problems += misspelled_stream_configs(raw)
    if language != "sql":
        problems.append(
            ConfigProblem("language", language, "'sql': a stream is defined by a query")
        )
    return config, problems


def _problems_of_other_model(raw: Mapping[str, Any], manifest: "Manifest") -> list[ConfigProblem]:
    # Only what dbt itself would have refused, had it not been held back.
    problems = parse_config(raw.get(_HELD_BACK, {}))[1]
    materialized = str(raw.get("materialized", ""))
    for name in (MATERIALIZATION, STREAM):
        if _looks_like(materialized, name) and not _exists(materialized, manifest):
            problems.append(ConfigProblem("materialized", materialized, f"'{name}'"))
    return problems


def _looks_like(materialized: str, name: str) -> bool:
    spelled, wanted = (re.sub(r"[^a-z0-9]", "", text.lower()) for text in (materialized, name))
    return SequenceMatcher(None, spelled, wanted).ratio() >= _LOOKS_LIKE


def _exists(materialized: str, manifest: "Manifest") -> bool:
    prefix = f"materialization_{materialized}_"
    return any(macro.name.startswith(prefix) for macro in manifest.macros.values())


def _is_loadable_key(value: object) -> bool:
    items = value if isinstance(value, list) else [value]
    return value is None or all(isinstance(item, str) for item in items)


def _describe(unique_id: str, path: str) -> str:
    return f"{unique_id} ({path})"
