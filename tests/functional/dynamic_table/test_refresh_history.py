"""The package's views over the state table, before and after there is one."""

from pathlib import Path

import pytest
from dbt.tests.util import run_dbt
from tests.functional.refreshes import rows

ROOT = Path(__file__).parents[3]
HISTORY = "select recency, refresh_action, duration_seconds >= 0, lag_seconds >= 0 from {schema}."
TOTALS = """
{{ config(materialized='dynamic_table') }}
select count(*) as n from {{ ref('numbers') }}
"""


class TestRefreshHistory:
    @pytest.fixture(scope="class")
    def packages(self):
        return {"packages": [{"local": str(ROOT)}]}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"spark_dynamic": {"+enabled": True}}}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "numbers.sql": "{{ config(materialized='table') }} select id from range(3)",
            "totals.sql": TOTALS,
        }

    def test_it_is_empty_first_and_then_lists_every_refresh(self, project):
        history = HISTORY + "dynamic_table_refresh_history"
        run_dbt(["deps"])
        run_dbt(["run"])
        assert rows(project, history) == []
        run_dbt(["run"])
        assert rows(project, history) == [
            (1, "NO_DATA", True, True),
            (2, "FULL", True, True),
        ]

    def test_the_lag_of_each_table_is_shown(self, project):
        lag = "select target_lag_seconds, refreshes, peak_lag_seconds >= trough_lag_seconds from "
        assert rows(project, lag + "{schema}.dynamic_table_lag") == [(None, 2, True)]
