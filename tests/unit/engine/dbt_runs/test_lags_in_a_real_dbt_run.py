"""What is due, forced, edited or broken in a real `dbt run`, with a fake Spark below it."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fake_shop import Shop
from real_dbt import SHOWN, dbt, said, shop_below_dbt, write_project

pytestmark = pytest.mark.thorough

WEEK = "{{ config(materialized='dynamic_table', target_lag='7 days', suspend_after=2) }}\n"
TOTALS = WEEK + "select customer, sum(amount) as total from shop.orders group by 1"
REPORT = WEEK + "select max(total) as best from {{ ref('totals') }}"
SECOND = WEEK + "select min(total) as least from {{ ref('totals') }}"
UNRELATED = "{{ config(materialized='dynamic_table') }} select id from shop.customers"


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with shop_below_dbt(monkeypatch) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    models = {"totals": TOTALS, "report": REPORT, "unrelated": UNRELATED}
    write_project(tmp_path, models, {})
    return tmp_path


def actions(results: dict[str, Any]) -> dict[str, str]:
    return {name: r.adapter_response.get("refresh_action", "") for name, r in results.items()}


def moments(results: dict[str, Any], *names: str) -> set[str]:
    return {results[name].adapter_response["data_timestamp"] for name in names}


def test_new_forced_edited_and_reconfigured_tables(shop: Shop, folder: Path) -> None:
    dbt(folder, "run")
    shop.spark.write("shop.orders").append((4, 20, 100))
    shop.spark.tick(100)

    # A new reader takes what is there, although a source has gone on.
    (folder / "models" / "second.sql").write_text(SECOND)
    found = dbt(folder, "run", "--exclude", "unrelated")
    assert actions(found) == {"totals": "NOT_DUE", "report": "NOT_DUE", "second": "FULL"}
    assert len(moments(found, "totals", "second")) == 1

    command = shop.spark.clock
    found = dbt(folder, "run", "--select", "+report", "--vars", "refresh: all")
    assert actions(found) == {"totals": "FULL", "report": "FULL"}
    [moment] = moments(found, "totals", "report")
    assert datetime.fromisoformat(moment) > command

    both = ["--select", "report", "second"]
    (folder / "models" / "second.sql").write_text(SECOND.replace("min", "max"))
    found = dbt(folder, "run", *both)
    assert actions(found) == {"report": "NOT_DUE", "second": "REINITIALIZE"}
    # What was edited is the same however dbt parses it; a configuration is applied at once.
    owned = REPORT.replace("suspend_after", "tblproperties={'team': 'sales'}, suspend_after")
    (folder / "models" / "report.sql").write_text(owned)
    found = dbt(folder, "run", "--no-partial-parse", *both)
    assert actions(found) == {"report": "NO_DATA", "second": "NOT_DUE"}
    assert actions(dbt(folder, "run", *both)) == {"report": "NOT_DUE", "second": "NOT_DUE"}


def test_errors_suspend_a_table_and_hold_up_only_what_reads_it(shop: Shop, folder: Path) -> None:
    dbt(folder, "run")
    orders = shop.spark.entries.pop(shop.spark.table("shop.orders").name)
    shop.spark.write("shop.customers").append((30, "Cid"))
    for attempt in range(3):
        shop.spark.tick(6 * 24 * 3600)
        found = dbt(folder, "run")
        expected = "SOURCE_MISSING: " if attempt < 2 else "SUSPENDED: The last 2 refreshes"
        assert expected in found["totals"].message
        assert said(found)["report"].startswith("skipped")
        assert (actions(found)["unrelated"] == "NO_DATA") == (attempt > 0)
    found = dbt(folder, "run", "--exclude", "totals")
    assert found["report"].message == "WAITING for shop.totals"
    assert actions(found)["unrelated"] == "NO_DATA"
    # Neither is due, so neither fails a run of what is.
    assert said(dbt(folder, "run", "--select", "tag:due")) == {"unrelated": "success: NO_DATA"}

    shop.spark.entries[orders.name] = orders
    shop.spark.write("shop.orders").append((4, 20, 100))
    dbt(folder, "run-operation", "dynamic_table_resume", "--args", "{models: totals}")
    assert set(actions(dbt(folder, "run")).values()) == {"FULL", "NO_DATA"}
    assert shop.spark.read("select best from shop.report") == [(109,)]


HOOKED = WEEK.replace("suspend_after", "post_hook='{{ might_fail() }}', suspend_after") + (
    "select customer, sum(amount) as total from shop.orders group by 1"
)
MIGHT_FAIL = """
{% macro might_fail() %}
  {%- if execute and env_var('SHOP_FAILS', '') -%}
    {%- do exceptions.raise_compiler_error('the hook failed') -%}
  {%- elif execute -%}
    {%- do log('the hook ran') -%}
  {%- endif -%}
{% endmacro %}
"""


def test_a_post_hook_that_failed_runs_again_until_it_succeeds(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path, {"totals": HOOKED}, {"hooks": MIGHT_FAIL})
    monkeypatch.setenv("SHOP_FAILS", "yes")
    # As often as `suspend_after` says, but what the table holds is right every time.
    for number, action in enumerate(["FULL", "NO_DATA"], 1):
        assert said(dbt(tmp_path, "run"))["totals"].startswith("error: Compilation Error")
        done, failed = shop.spark.state_rows[-2:]
        assert (done.state, done.refresh_action) == ("SUCCEEDED", action)
        assert (failed.state, failed.refresh_action) == ("FAILED", action)
        assert "the hook failed" in failed.error
        assert len(shop.spark.state_rows) == 2 * number
    monkeypatch.delenv("SHOP_FAILS")
    SHOWN.clear()
    assert said(dbt(tmp_path, "run")) == {"totals": "success: NO_DATA"}
    assert SHOWN.count("the hook ran") == 1
    assert said(dbt(tmp_path, "run"))["totals"].startswith("success: NOT_DUE")
