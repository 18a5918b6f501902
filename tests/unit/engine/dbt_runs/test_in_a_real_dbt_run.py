"""The materialization and the operations in a real `dbt run`, with a fake Spark below it."""

from collections.abc import Iterator
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
DYNAMIC = "{{ config(materialized='dynamic_table', target_lag='7 days', suspend_after=1"
MODELS = {
    "totals": DYNAMIC + ") }}\nselect customer, sum(amount) as total from shop.orders group by 1",
    "report": DYNAMIC + ", pre_hook='{{ might_fail() }}') }}\n"
    "select max(total) as best from {{ ref('totals') }}",
}
MACROS = """
{% macro might_fail() %}
  {%- if execute and env_var('SHOP_FAILS', '') -%}
    {%- do exceptions.raise_compiler_error('the hook failed') -%}
  {%- endif -%}
{% endmacro %}
"""


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
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
    monkeypatch.setattr(dynamic_tables, "DbtWarehouse", session)
    monkeypatch.setattr(impl, "DbtWarehouse", session)
    monkeypatch.delenv("SPARK_DYNAMIC_REFRESH", raising=False)
    append = state_store.append_rows

    def append_and_keep(table: Any, rows: list[Any]) -> str:
        made.spark.state_rows += rows
        return append(table, rows)

    monkeypatch.setattr(state_store, "append_rows", append_and_keep)
    yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shop")
    (made / "dbt_project.yml").write_text(PROJECT)
    (made / "profiles.yml").write_text(PROFILE)
    for place, texts in {"models": MODELS, "macros": {"hooks": MACROS}}.items():
        (made / place).mkdir()
        for name, text in texts.items():
            (made / place / f"{name}.sql").write_text(text)
    return made


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


def test_the_life_of_two_tables(shop: Shop, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = said(dbt(folder, "run"))
    assert built == {
        "totals": "success: FULL +2 -0 (INITIAL_BUILD)",
        "report": "success: FULL +1 -0 (INITIAL_BUILD)",
    }
    shop.spark.write("shop.orders").append((4, 20, 100))
    shop.spark.tick(100)
    begin = len(shop.spark.log)
    held = dbt(folder, "run")
    assert {line.split(" lag ")[0] for line in said(held).values()} == {"success: NOT_DUE"}
    assert held["totals"].adapter_response["refresh_action"] == "NOT_DUE"
    assert held["totals"].message.endswith(" of 7d")
    assert len([text for text in SHOWN if "SPARK_DYNAMIC_REFRESH=all" in text]) == 1
    assert shop.spark.log[begin:] == ["DESCRIBE HISTORY `shop`.`dynamic_table_refreshes`"]

    dbt(folder, "run-operation", "dynamic_table_suspend", "--args", "{models: totals}")
    monkeypatch.setenv("SPARK_DYNAMIC_REFRESH", "all")
    assert said(dbt(folder, "run")) == {
        "totals": "success: SUSPENDED (SUSPENDED_BY_A_PERSON)",
        "report": "success: WAITING for shop.totals",
    }
    dbt(folder, "run-operation", "dynamic_table_resume", "--args", "{model: totals}")
    dbt(folder, "run-operation", "dynamic_table_refresh", "--args", "{models: [report]}")
    assert shop.spark.read("select best from shop.report") == [(109,)]
    monkeypatch.delenv("SPARK_DYNAMIC_REFRESH")
    dbt(folder, "run-operation", "dynamic_table_status")
    [shown] = [text for text in SHOWN if "within target" in text]
    assert "shop.totals" in shown and "NOT_DUE" in shown

    shop.spark.tick(6 * 24 * 3600)
    assert said(dbt(folder, "run", "--select", "tag:due")) == dict.fromkeys(
        ["totals", "report"], "success: NO_DATA"
    )

    # A hook that fails is a failed refresh, and one is enough for these models.
    shop.spark.write("shop.orders").append((5, 20, 1))
    # A variable of dbt would make it parse the project again, twice.
    monkeypatch.setenv("SHOP_FAILS", "yes")
    failed = said(dbt(folder, "run", "--full-refresh", "--select", "report"))
    monkeypatch.delenv("SHOP_FAILS")
    assert failed["report"].startswith("error: Compilation Error")
    again = dbt(folder, "run", "--select", "report")["report"]
    assert "SUSPENDED: The last 1 refreshes of shop.report failed" in again.message
    assert again.status.value == "error"
