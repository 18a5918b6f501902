"""When a dynamic table is rebuilt and when it is left alone."""

import json

import pytest
from dbt.tests.util import run_dbt
from tests.functional.refreshes import actions, assert_equals_query, dbt, history, rows

TOTALS = """
{{ config(materialized='dynamic_table') }}
select kind, count(*) as n, sum(amount) as total from {{ source('raw', 'events') }} group by kind
"""
TOTALS_QUERY = (
    "select kind, count(*) as n, sum(amount) as total from {schema}.events group by kind"
)
LARGE = """
{{ config(materialized='dynamic_table') }}
select kind from {{ ref('totals') }} where total > 10
"""
OVER_VIEW = """
{{ config(materialized='dynamic_table', refresh_mode='FULL') }}
select k, t from {{ ref('renaming') }}
"""
RENAMING = "select kind as k, amount as t from {{ source('raw', 'events') }} where amount > 1"
SOURCES = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables: [{name: events}, {name: files}]
"""


def make_events(project):
    project.run_sql(
        "create or replace table {schema}.events using delta "
        "tblproperties ('delta.enableChangeDataFeed' = 'true') as "
        "select * from values ('a', 1), ('a', 5), ('b', 7), (null, 2) as t(kind, amount)"
    )


class TestRefresh:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "totals.sql": TOTALS,
            "large.sql": LARGE,
            "renaming.sql": RENAMING,
            "over_view.sql": OVER_VIEW,
            "sources.yml": SOURCES,
        }

    def run_all(self):
        return actions(dbt("run"))

    def test_refreshes(self, project):
        make_events(project)

        first = dbt("run")
        assert actions(first) == {
            "totals": "FULL/INITIAL_BUILD",
            "large": "FULL/INITIAL_BUILD",
            "over_view": "FULL/INITIAL_BUILD",
        }
        assert first["totals"].message == "FULL +3 -0 (INITIAL_BUILD)"
        assert first["totals"].adapter_response["refresh_trigger"] == "CREATION"
        assert_equals_query(project, "totals", TOTALS_QUERY)

        unchanged = dict.fromkeys(["totals", "large", "over_view"], "NO_DATA")
        before = [len(history(project, f"{name}__dyn")) for name in unchanged]
        assert self.run_all() == unchanged
        assert [len(history(project, f"{name}__dyn")) for name in unchanged] == before

        # None of these changes a row.
        project.run_sql("optimize {schema}.events")
        project.run_sql("alter table {schema}.events set tblproperties ('note' = 'x')")
        project.run_sql("alter table {schema}.events alter column amount comment 'euros'")
        project.run_sql("vacuum {schema}.events")
        project.run_sql("insert into {schema}.events select * from {schema}.events where false")
        make_events(project)
        project.run_sql(
            "insert overwrite table {schema}.events select * from {schema}.events order by amount"
        )
        assert self.run_all() == unchanged

        # Back and forth: different versions, the same rows.
        project.run_sql("update {schema}.events set amount = amount + 1")
        project.run_sql("update {schema}.events set amount = amount - 1")
        assert self.run_all() == unchanged

        project.run_sql("insert into {schema}.events values ('b', 100), ('c', 100)")
        changed = dbt("run")
        assert actions(changed) == {
            "totals": "FULL/CHEAPER",
            "large": "FULL/CHEAPER",
            "over_view": "FULL/CONFIGURED_FULL",
        }
        assert changed["totals"].message == "FULL +4 -3 (CHEAPER)"
        assert_equals_query(project, "totals", TOTALS_QUERY)
        assert rows(project, "select * from {schema}.large") == [("b",), ("c",)]

        project.run_sql("delete from {schema}.events where kind is null")
        project.run_sql("update {schema}.events set amount = 3 where kind = 'a'")
        assert actions(dbt("run", "--select", "totals")) == {"totals": "FULL/CHEAPER"}
        assert_equals_query(project, "totals", TOTALS_QUERY)

        project.run_sql("truncate table {schema}.events")
        refreshed = actions(dbt("run", "--full-refresh", "--select", "totals", "large"))
        assert refreshed == dict.fromkeys(["totals", "large"], "FULL/REQUESTED")
        assert_equals_query(project, "totals", TOTALS_QUERY)

    def test_contract_of_the_response(self, project):
        project.run_sql("insert into {schema}.events values ('z', 1)")
        run_dbt(["run", "--select", "totals"])
        with open("target/run_results.json") as file:
            [result] = json.load(file)["results"]
        response = result["adapter_response"]
        moment = response.pop("data_timestamp")
        assert moment.endswith("Z") and len(moment) == len("2026-01-01T00:00:00.000000Z")
        assert response.pop("statements") > 0
        reason = response.pop("reason")
        assert reason.startswith("CHEAPER: ")
        assert response == {
            "_message": "FULL +1 -0 (CHEAPER)",
            "code": "FULL",
            "rows_affected": 1,
            "refresh_action": "FULL",
            "refresh_mode": "auto",
            "refresh_trigger": "SCHEDULED",
            "reason_code": "CHEAPER",
            "rows_inserted": 1,
            "rows_deleted": 0,
        }
        with open("target/run/test/models/totals.sql") as file:
            written = file.read()
        assert "INSERT OVERWRITE" in written and "VERSION AS OF" in written

    def test_state_table(self, project):
        found = rows(
            project,
            "select refresh_action, state, count(*) from {schema}.dynamic_table_refreshes "
            "where relation like '%.totals' group by all",
        )
        assert ("FULL", "SUCCEEDED", 5) in found and ("NO_DATA", "SUCCEEDED", 3) in found
        columns = [row[0] for row in project.run_sql(
            "describe {schema}.dynamic_table_refreshes", fetch="all")]  # fmt: skip
        assert columns == [
            "relation", "model_id", "incarnation", "refresh_number", "cycle_id", "invocation_id",
            "data_timestamp", "refresh_action", "refresh_mode", "refresh_trigger", "state",
            "reason_code", "reason", "frontier", "version", "fingerprint", "guard_verdict",
            "settings", "rows_inserted", "rows_deleted", "rows_changed_per_source", "statements",
            "jobs", "started_at", "ended_at", "error", "engine_version", "shape",
        ]  # fmt: skip
        [(source, version)] = rows(
            project,
            "select frontier[0].source, frontier[0].version from "
            "{schema}.dynamic_table_refreshes where relation like '%.totals' "
            "order by started_at desc limit 1",
        )
        assert source.endswith(".events")
        assert version == history(project, "events")[0]["version"]

    def test_a_lost_state_table_is_written_again(self, project):
        project.run_sql("drop table {schema}.dynamic_table_refreshes")
        assert self.run_all()["totals"] == "NO_DATA"
        found = rows(
            project,
            "select refresh_number, refresh_action from {schema}.dynamic_table_refreshes "
            "where relation like '%.totals' and refresh_action <> 'NO_DATA'",
        )
        assert [number for number, _ in found] == list(range(1, 6))


class TestSourcesWithoutVersions:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "copy.sql": "{{ config(materialized='dynamic_table') }}"
            "select * from {{ source('raw', 'files') }}",
            "strict.sql": "{{ config(materialized='dynamic_table', refresh_mode='incremental') }}"
            "select * from {{ source('raw', 'files') }}",
            "today.sql": "{{ config(materialized='dynamic_table') }}"
            "select current_date() as d, kind from {{ source('raw', 'events') }}",
            "pipe.sql": "{{ config(materialized='dynamic_table') }}"
            "from {{ source('raw', 'events') }} |> set amount = amount + 1 |> where amount > 5",
            "sources.yml": SOURCES,
        }

    def test_always_in_full_with_the_reason(self, project):
        make_events(project)
        project.run_sql("create table {schema}.files using parquet as select 1 as x")
        first = dbt("run", expect_pass=False)
        assert first["strict"].status == "error"
        assert "SOURCE_NOT_DELTA: " in first["strict"].message
        again = actions(dbt("run", "--exclude", "strict"))
        assert again == {
            "copy": "FULL/SOURCE_NOT_DELTA",
            "today": "FULL/CLOCK_FUNCTION",
            "pipe": "FULL/TEXT_NOT_READABLE",
        }
        assert rows(project, "select * from {schema}.pipe") == [("a", 6), ("b", 8)]
        # Warnings, so that strict pipelines stop.
        strict = dbt("--warn-error", "run", "--select", "copy", expect_pass=False)
        assert strict["copy"].status == "error"
