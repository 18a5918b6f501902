"""Target lags on a real Spark: what is due, what is not, and what people can do about it.

The lag is a week, so its period is four and a half days: no grid point comes by while the tests
run. Where one has to, the adapter's clock is set six days forward.
"""

import re
import shutil
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from dbt.tests.util import run_dbt
from tests.functional.refreshes import actions, dbt, rows

from dbt.adapters.spark_dynamic.project import short_hash
from dbt.adapters.spark_dynamic.state_rows import event_row
from dbt.adapters.spark_dynamic.state_store import StateStore
from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.frontier.settled import LogEnd, Settled
from spark_dynamic.frontier.state import StateRow
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.schedule.remembered import Marks, remember

TOTALS = """
{{ config(materialized='dynamic_table', target_lag='downstream') }}
select customer, sum(amount) as total from {{ source('shop', 'orders') }} group by customer
"""
SHOWN = "{{ config(materialized='view') }} select customer, total from {{ ref('totals') }}"
REPORT = """
{{ config(materialized='dynamic_table', target_lag='7 days') }}
select max(total) as best from {{ ref('shown') }}
"""
FREE = """
{{ config(materialized='dynamic_table') }}
select count(*) as n from {{ source('shop', 'orders') }}
"""
SOURCES = """
sources:
  - name: shop
    schema: "{{ target.schema }}"
    tables:
      - name: orders
        config: {freshness: {warn_after: {count: 1, period: day}}}
models:
  - name: report
    data_tests: [within_target_lag, no_refresh_errors]
"""
LAGGED = ["totals", "report"]


def forward(patch: pytest.MonkeyPatch, days: int) -> None:
    later = timedelta(days=days)
    patch.setattr(DbtWarehouse, "now", lambda warehouse: datetime.now(UTC) + later)


class TestTargetLag:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "totals.sql": TOTALS,
            "shown.sql": SHOWN,
            "report.sql": REPORT,
            "free.sql": FREE,
            "schema.yml": SOURCES,
        }

    def insert(self, project, amount: int) -> None:
        project.run_sql(f"insert into {{schema}}.orders values (1, {amount})")

    def best(self, project) -> list[tuple[int]]:
        return rows(project, "select best from {schema}.report")

    def test_what_is_not_due_is_left_alone(self, project):
        project.run_sql("create table {schema}.orders (customer int, amount int) using delta")
        self.insert(project, 10)
        built = actions(dbt("run"))
        assert built == dict.fromkeys([*LAGGED, "free"], "FULL/INITIAL_BUILD")
        self.insert(project, 20)
        results = dbt("run")
        found = actions(results)
        assert [found[name] for name in LAGGED] == ["NOT_DUE", "NOT_DUE"]
        assert found["free"].startswith(("FULL", "INCREMENTAL"))
        assert re.fullmatch(r"NOT_DUE lag [\dms ]+ of 7d", results["totals"].message)
        response = results["report"].adapter_response
        assert response["code"] == "NOT_DUE" and response["statements"] == 0
        assert response["data_timestamp"]
        assert self.best(project) == [(10,)]

    def test_it_can_be_forced(self, project, monkeypatch):
        monkeypatch.setenv("SPARK_DYNAMIC_REFRESH", "all")
        results = dbt("run", "--select", "+report")
        triggers = {results[name].adapter_response["refresh_trigger"] for name in LAGGED}
        assert triggers == {"MANUAL"}
        assert self.best(project) == [(30,)]

    def test_tests_and_source_freshness(self, project):
        run_dbt(["test"])
        [fresh] = run_dbt(["source", "freshness"])
        assert fresh.status == "pass"

        shutil.copytree("target", "state")
        fresher = ["ls", "--resource-type", "model", "--state", "state"]
        fresher += ["--select", "source_status:fresher+"]
        assert run_dbt(fresher) == []
        self.insert(project, 0)
        run_dbt(["source", "freshness"])
        found = {name.rpartition(".")[2] for name in run_dbt(fresher)}
        assert found == {*LAGGED, "free", "shown"}

    def test_a_suspended_table_succeeds_and_is_not_refreshed(self, project, monkeypatch):
        monkeypatch.setenv("SPARK_DYNAMIC_REFRESH", "all")
        self.insert(project, 40)
        operation = ["--args", "{models: totals}"]
        run_dbt(["run-operation", "dynamic_table_suspend", *operation])
        results = dbt("run", "--select", *LAGGED)
        assert actions(results)["totals"] == "SUSPENDED/SUSPENDED_BY_A_PERSON"
        assert results["report"].message == f"WAITING for {project.test_schema}.totals"
        run_dbt(["run-operation", "dynamic_table_resume", *operation])
        run_dbt(["run-operation", "dynamic_table_refresh", "--args", "{models: [report]}"])
        assert self.best(project) == [(70,)]

    def test_after_a_grid_point_all_are_refreshed_at_one_moment(self, project, monkeypatch):
        assert "report" not in "".join(run_dbt(["ls", "--select", "tag:due"]))
        forward(monkeypatch, 6)
        self.insert(project, 5)
        due = run_dbt(["ls", "--select", "tag:due", "--resource-type", "model"])
        assert sorted(name.rpartition(".")[2] for name in due) == ["free", "report", "totals"]
        run_dbt(["run-operation", "dynamic_table_status"])
        results = dbt("run", "--select", "tag:due")
        moments = {result.adapter_response["data_timestamp"] for result in results.values()}
        assert len(results) == 3 and len(moments) == 1
        assert self.best(project) == [(75,)]
        assert actions(dbt("run", "--select", "report")) == {"report": "NOT_DUE"}
        # dbt's own list of what exists shows that somebody dropped a table.
        project.run_sql("drop view {schema}.report")
        assert actions(dbt("run", "--select", "report")) == {"report": "NO_DATA"}
        assert self.best(project) == [(75,)]


BROKEN = """
{{ config(materialized='dynamic_table', suspend_after=2) }}
select cast(text as int) as number from {{ target.schema }}.texts
"""


class TestErrors:
    @pytest.fixture(scope="class")
    def models(self):
        return {"numbers.sql": BROKEN}

    def test_a_table_that_fails_is_suspended_until_it_is_resumed(self, project):
        project.run_sql("create table {schema}.texts using delta as select '1' as text")
        dbt("run")
        project.run_sql("insert into {schema}.texts values ('one')")
        for _ in range(2):
            failed = dbt("run", expect_pass=False)["numbers"]
            assert "CAST_INVALID_INPUT" in failed.message
        suspended = dbt("run", expect_pass=False)["numbers"]
        assert "SUSPENDED: The last 2 refreshes" in suspended.message
        assert rows(project, "select number from {schema}.numbers") == [(1,)]
        project.run_sql("delete from {schema}.texts where text = 'one'")
        run_dbt(["run-operation", "dynamic_table_resume", "--args", "{model: numbers}"])
        assert actions(dbt("run"))["numbers"].startswith(("NO_DATA", "INCREMENTAL", "FULL"))


class TestTheStateOfManyTables:
    """The summary of a commit is one setting and one text, however many tables there are."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"one.sql": "select 1 as id"}

    def test_three_hundred_tables_are_written_and_read_back(self, project):
        now = datetime(2026, 1, 1, tzinfo=UTC)
        with project.adapter.connection_named("many"):
            warehouse = DbtWarehouse(project.adapter)
            store = StateStore(project.adapter.config.credentials)
            cycle = Cycle("many", now, store.read(warehouse))
            cycle.events += many_rows(300, cycle, now)
            store.write(warehouse, cycle, {})
            found = store.read(warehouse)
            [newest] = warehouse.history(store.table, 1)
        assert found.tables == remember({}, [row.event for row in cycle.events])
        assert found.refresh_numbers == {row.relation: 1 for row in cycle.events}
        assert len(newest.user_metadata) < 300 * 250
        count = (
            "select count(*), count(distinct settings['a']) from {schema}.dynamic_table_refreshes"
        )
        assert rows(project, count) == [(300, 300)]


def many_rows(count: int, cycle: Cycle, now: datetime) -> list[StateRow]:
    return [many_row(number, cycle, now) for number in range(count)]


def many_row(number: int, cycle: Cycle, now: datetime) -> StateRow:
    """Return a row with all that a table leaves to the next cycle."""
    name = f"a_schema_of_some_length.a_table_of_some_length_{number}"
    view, storage = TableName.parse(name), TableName.parse(f"{name}__dyn")
    bases = tuple(
        LogEnd(TableName("sources", f"source_{n}"), 10 * n, now, f"s3://bucket/sources/source_{n}")
        for n in range(number % 5)
    )
    settled = Settled(
        request=short_hash(["request", number]),
        catalog=short_hash(["catalog", number]),
        views={},
        own=(view,),
        storages=(LogEnd(storage, number, now),),
        bases=bases,
        until=now + timedelta(days=15),
        incarnation=str(uuid.uuid4()),
        fingerprint=short_hash(["fingerprint", number]),
        version=number,
    )
    row = event_row(name, f"model.shop.{name}", "auto", "NO_DATA", cycle, now)
    marks = Marks(*(short_hash([part, number]) for part in ("definition", "text", "config")))
    return replace(
        row,
        refresh_number=1,
        data_timestamp=now + timedelta(seconds=number),
        frontier=settled.frontier,
        settings={"a": f"quotes ' and \\ and ${{x}} {number}"},
        marks=marks,
        settled=settled,
    )
