"""The materialization and the operations in a real `dbt run`, with a fake Spark below it."""

from pathlib import Path
from typing import Any

import pytest
from fake_shop import Shop
from real_dbt import SHOWN, dbt, said

from dbt.adapters.spark_dynamic import project

pytestmark = pytest.mark.thorough

DYNAMIC = "{{ config(materialized='dynamic_table', target_lag='7 days', suspend_after=1"
MODELS = {
    "totals": DYNAMIC + ") }}\nselect customer, sum(amount) as total from shop.orders group by 1",
    "report": DYNAMIC + ", pre_hook='{{ might_fail() }}') }}\n"
    "select max(total) as best from {{ ref('totals') }}",
}
HOOKS = """
{% macro might_fail() %}
  {%- if execute and env_var('SHOP_FAILS', '') -%}
    {%- do exceptions.raise_compiler_error('the hook failed') -%}
  {%- endif -%}
{% endmacro %}
"""


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

    dbt(folder, "run-operation", "dynamic_table_prune", "--args", "{dry_run: false}")
    assert any("| removed" in text for text in SHOWN)

    shop.spark.tick(6 * 24 * 3600)
    assert said(dbt(folder, "run", "--select", "tag:due")) == dict.fromkeys(
        ["totals", "report"], "success: NO_DATA"
    )

    # The plugin and the run read dbt's manifest once between them.
    reads: list[Any] = []
    read = project.Project.__init__
    monkeypatch.setattr(
        project.Project, "__init__", lambda *given: (reads.append(given), read(*given))[1]
    )
    dbt(folder, "run")
    assert len(reads) == 1

    # A hook that fails is a failed refresh, and one is enough for these models.
    shop.spark.write("shop.orders").append((5, 20, 1))
    # A variable of dbt would make it parse the project again, twice.
    monkeypatch.setenv("SHOP_FAILS", "yes")
    failed = said(dbt(folder, "run", "--full-refresh", "--select", "report"))
    monkeypatch.delenv("SHOP_FAILS")
    assert failed["report"].startswith("error: Compilation Error")
    again = dbt(folder, "run", "--select", "report")["report"]
    assert "SUSPENDED: The last refresh of shop.report failed" in again.message
    assert again.status.value == "error"
