"""From a dbt model to a request."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.spark_dynamic.__version__ import version
from dbt.adapters.spark_dynamic.asked import is_forced, is_partial
from dbt.adapters.spark_dynamic.config import read_config
from spark_dynamic.apply.constraints import Constraint, check, not_null
from spark_dynamic.names import TableName
from spark_dynamic.refresh.request import Request
from spark_dynamic.settings import counted
from spark_dynamic.sql.substitute import substituted

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter


def request_for(
    adapter: "SparkDynamicAdapter",
    model: Mapping[str, Any],
    relation: Any,
    sql: str,
    full_refresh: bool,
) -> Request:
    """Translate a dbt model into a request."""
    config = model["config"]
    docs = config.get("persist_docs") or {}
    columns = model.get("columns", {}).values() if docs.get("columns") else ()
    text, settings = as_read(adapter, sql.strip().removesuffix(";"))
    return Request(
        model=model["unique_id"],
        view=TableName.of(relation.schema, relation.identifier),
        sql=text,
        schema=adapter.config.credentials.schema,
        config=read_config(model),
        settings=settings,
        engine_version=version,
        full_refresh=full_refresh,
        full_refresh_forbidden=config.get("full_refresh") is False,
        leaves_no_state=is_partial(adapter),
        is_forced=is_forced(adapter),
        comment=model.get("description") if docs.get("relation") else None,
        column_comments={c["name"]: c["description"] for c in columns if c.get("description")},
        constraints=tuple(_constraints(model)),
    )


def _constraints(model: Mapping[str, Any]) -> Iterator[Constraint]:
    """Yield the constraints of a model's contract that Delta can check."""
    if not _has_contract(model):
        return
    found = [(c, c.get("columns") or ()) for c in model.get("constraints") or ()]
    for column in model.get("columns", {}).values():
        found += [(c, (column["name"],)) for c in column.get("constraints") or ()]
    for constraint, names in found:
        if constraint["type"] == "not_null":
            yield from map(not_null, names)
        elif constraint["type"] == "check":
            yield check(constraint.get("expression") or "", constraint.get("name") or "")


def unchecked_constraints(model: Mapping[str, Any]) -> list[str]:
    """Return the constraints of a contract's columns that nobody checks, such as keys."""
    if not _has_contract(model):
        return []
    return [
        f"{constraint['type']} of column {column['name']}"
        for column in model.get("columns", {}).values()
        for constraint in column.get("constraints") or ()
        if constraint["type"] not in ("not_null", "check")
    ]


def _has_contract(model: Mapping[str, Any]) -> bool:
    return bool((model["config"].get("contract") or {}).get("enforced"))


def result_settings(adapter: "SparkDynamicAdapter") -> dict[str, str]:
    """Return the settings that change what a query returns."""
    profile = adapter.config.credentials.server_side_parameters
    return counted(profile, adapter.session_settings())


def as_read(adapter: "SparkDynamicAdapter", sql: str) -> tuple[str, dict[str, str]]:
    """Return a text as Spark reads it, and all settings that its rows depend on."""
    profile = adapter.config.credentials.server_side_parameters
    text, variables = substituted(sql, {**adapter.session_settings(), **profile})
    return text, {**result_settings(adapter), **variables}
