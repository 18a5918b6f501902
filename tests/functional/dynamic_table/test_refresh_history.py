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
    def dbt_profile_target(self, dbt_profile_target, unique_schema):
        return {**dbt_profile_target, "state_schema": f"{unique_schema}_state"}

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
            "lagged.sql": TOTALS.replace("table'", "table', target_lag='7 days'"),
        }

    def test_it_is_empty_first_and_then_lists_every_refresh(self, project):
        history = HISTORY + "dynamic_table_refresh_history where relation like '%totals'"
        run_dbt(["deps"])
        run_dbt(["run"])
        assert rows(project, history) == []
        run_dbt(["run"])
        assert rows(project, history) == [
            (1, "NO_DATA", True, True),
            (2, "FULL", True, True),
        ]
        # The state is in a schema of its own, which the first run has made.
        state = "show tables in {}{} like 'dynamic_table_refreshes'"
        assert len(rows(project, state.format("{schema}", "_state"))) == 1
        assert rows(project, state.format("{schema}", "")) == []
        counted = "select refresh_action, jobs > 0 from {schema}_state.dynamic_table_refreshes"
        assert ("FULL", True) in rows(project, counted)

    def test_the_lag_of_each_table_is_shown(self, project):
        lag = (
            "select target_lag_seconds, refreshes, peak_lag_seconds >= trough_lag_seconds, state, "
            "errors_in_a_row, share_within_target, next_due > data_timestamp, lag_seconds >= 0 "
            "from {schema}.dynamic_table_lag"
        )
        assert rows(project, lag) == [
            (604800, 1, True, "SUCCEEDED", 0, 1.0, True, True),
            (None, 2, True, "SUCCEEDED", 0, None, None, True),
        ]
        project.run_sql("drop schema {schema}_state cascade")
