"""A real `dbt run`, with a fake Spark below it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner
from fake_dbt import StateWarehouse
from fake_shop import Shop, small_shop

from dbt.adapters.spark_dynamic import dynamic_tables, impl, state_store
from dbt.adapters.spark_dynamic.connections import SparkDynamicConnectionManager
from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter

PROJECT = """
name: shop
version: 1.0.0
config-version: 2
profile: shop
flags: {send_anonymous_usage_stats: false}
"""
PROFILE = "shop: {target: dev, outputs: {dev: {type: spark_dynamic, schema: shop, threads: 1}}}\n"


@contextmanager
def shop_below_dbt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """Yield a shop whose Spark is the one that dbt works on."""
    made = small_shop()
    made.spark.clock = made.spark.clock.replace(hour=1)

    def no_spark(connection: Any) -> None:
        raise AssertionError("A real Spark was asked for.")

    def list_relations(adapter: Any, *args: Any, **options: Any) -> None:
        adapter.cache.update_schemas([(None, "shop")])
        for row in StateWarehouse(made.spark)._show_extended("shop", "*"):
            name, text = row["tableName"], row["information"]
            relation = adapter.Relation.create(schema="shop", identifier=name, information=text)
            adapter.cache.add(relation)

    def session(adapter: Any) -> StateWarehouse:
        return StateWarehouse(made.spark)

    monkeypatch.setattr(SparkDynamicConnectionManager, "open", no_spark)
    monkeypatch.setattr(SparkDynamicAdapter, "set_relations_cache", list_relations)
    monkeypatch.setattr(SparkDynamicAdapter, "list_schemas", lambda *_: ["shop"])
    monkeypatch.setattr(SparkDynamicAdapter, "check_schema_exists", lambda *_: True)
    monkeypatch.setattr(SparkDynamicAdapter, "session_settings", lambda *_: {})
    monkeypatch.setattr(dynamic_tables, "DbtWarehouse", session)
    monkeypatch.setattr(impl, "DbtWarehouse", session)
    monkeypatch.delenv("SPARK_DYNAMIC_REFRESH", raising=False)
    append = state_store.append_rows

    def append_and_keep(table: Any, rows: list[Any]) -> str:
        made.spark.state_rows += rows
        return append(table, rows)

    monkeypatch.setattr(state_store, "append_rows", append_and_keep)
    yield made


def write_project(folder: Path, models: Mapping[str, str], macros: Mapping[str, str]) -> None:
    """Write a project of some models and macros."""
    (folder / "dbt_project.yml").write_text(PROJECT)
    (folder / "profiles.yml").write_text(PROFILE)
    for place, texts in {"models": models, "macros": macros}.items():
        (folder / place).mkdir()
        for name, text in texts.items():
            (folder / place / f"{name}.sql").write_text(text)


# What dbt says, on the screen or in its log.
SHOWN: list[str] = []


def dbt(folder: Path, *arguments: str) -> dict[str, Any]:
    options = ["--log-level=none", f"--log-path={folder}"]
    places = [f"--project-dir={folder}", f"--profiles-dir={folder}"]
    found = dbtRunner(callbacks=[lambda event: SHOWN.append(event.info.msg)]).invoke(
        [*options, *arguments, *places]
    )
    assert found.exception is None, str(found.exception)
    results: Any = found.result
    if arguments[0] == "run-operation":
        assert found.success
        return {}
    return {result.node.name: result for result in results}


def said(results: dict[str, Any]) -> dict[str, str]:
    return {name: f"{r.status.value}: {r.message}".splitlines()[0] for name, r in results.items()}
