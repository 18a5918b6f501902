"""Target lags on a real Spark: what is due, what is not, and what people can do about it.

The lag is a week, so its period is four and a half days: no grid point comes by while the tests
run. Where one has to, the adapter's clock is set six days forward.
"""

import re
import shutil
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
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
SECOND = """
{{ config(materialized='dynamic_table', target_lag='7 days') }}
select min(total) as least from {{ ref('totals') }}
"""
FREE = """
{{ config(materialized='dynamic_table') }}
select count(*) as n from {{ source('shop', 'orders') }}
"""
LATER = FREE.replace("table')", "table', target_lag='7 days', initialize='on_schedule')")
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
ROOT = Path(__file__).parents[3]
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
            "later.sql": LATER,
            "schema.yml": SOURCES,
        }

    def insert(self, project, amount: int) -> None:
        project.run_sql(f"insert into {{schema}}.orders values (1, {amount})")

    def best(self, project) -> list[tuple[int]]:
        return rows(project, "select best from {schema}.report")

    def explain_first(self, project) -> None:
        """Before its first run a table over sources that exist is explained all the same."""
        command = ["run-operation", "explain", "--args", "{model: totals}"]
        _, shown = run_dbt_and_capture(command)
        for line in (
            "mode | auto",
            "action | FULL",
            "reason | INITIAL_BUILD: The table did not exist yet.",
            "plan | groups by customer, stored with __dyn_count, __dyn_sum_1, __dyn_count_1: ",
            f"plan |   scan: {project.test_schema}.orders (customer, amount)",
            f"source | {project.test_schema}.orders at version 1: read in full",
            f"`{project.test_schema}`.`orders` VERSION AS OF 1 group by customer",
            f"`{project.test_schema}`.`orders` /* delta */",
        ):
            assert line in shown, shown

    def test_what_is_not_due_is_left_alone(self, project):
        project.run_sql("create table {schema}.orders (customer int, amount int) using delta")
        self.insert(project, 10)
        self.explain_first(project)
        first = dbt("run")
        built = dict.fromkeys([*LAGGED, "free"], "FULL/INITIAL_BUILD")
        assert actions(first) == {**built, "later": "NOT_DUE"}
        assert first["later"].message.startswith("NOT_DUE first build in ")
        self.insert(project, 20)
        write_file(SECOND, project.project_root, "models", "second.sql")
        results = dbt("run")
        found = actions(results)
        assert [found[name] for name in LAGGED] == ["NOT_DUE", "NOT_DUE"]
        # The other one has opened the cycle. It has to come to its turn on a busy machine, too.
        assert min(results[name].execution_time for name in LAGGED) < 0.2
        assert found["free"].startswith(("FULL", "INCREMENTAL"))
        assert re.fullmatch(r"NOT_DUE lag [\dms ]+ of 7d", results["totals"].message)
        response = results["report"].adapter_response
        assert response["code"] == "NOT_DUE" and response["statements"] == 0
        assert response["data_timestamp"]
        assert self.best(project) == [(10,)]
        # A new reader takes what is there, although a source has gone on.
        assert found["second"] == "FULL/INITIAL_BUILD"
        built = results["second"].adapter_response["data_timestamp"]
        assert built == results["totals"].adapter_response["data_timestamp"]
        assert rows(project, "select least from {schema}.second") == [(10,)]

    def test_it_can_be_forced(self, project):
        command = datetime.now(UTC)
        results = dbt("run", "--select", "+report", "--vars", "refresh: all")
        responses = [results[name].adapter_response for name in LAGGED]
        assert {response["refresh_trigger"] for response in responses} == {"MANUAL"}
        [moment] = {response["data_timestamp"] for response in responses}
        assert datetime.fromisoformat(moment) > command
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
        assert found == {*LAGGED, "free", "later", "shown", "second"}

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
        names = sorted(name.rpartition(".")[2] for name in due)
        assert names == ["free", "later", "report", "second", "totals"]
        _, shown = run_dbt_and_capture(["run-operation", "dynamic_table_status"])
        [line] = [line for line in shown.splitlines() if f"{project.test_schema}.report" in line]
        cells = [cell.strip() for cell in line.split("|")]
        assert "7d" in cells and "100.0%" in cells and "DUE" in cells
        assert any(cell.startswith("6d") for cell in cells)
        results = dbt("run", "--select", "tag:due")
        moments = {result.adapter_response["data_timestamp"] for result in results.values()}
        assert len(results) == 5 and len(moments) == 1
        assert actions(results)["later"] == "FULL/INITIAL_BUILD"
        assert self.best(project) == [(75,)]
        assert actions(dbt("run", "--select", "report")) == {"report": "NOT_DUE"}
        # dbt's own list of what exists shows that somebody dropped a table.
        project.run_sql("drop view {schema}.report")
        edited = SECOND.replace("min(total)", "max(total)")
        write_file(edited, project.project_root, "models", "second.sql")
        both = ["--select", "report", "second"]
        found = {"report": "NO_DATA", "second": "REINITIALIZE/DEFINITION_CHANGED"}
        assert actions(dbt("run", *both)) == found
        assert self.best(project) == [(75,)]
        # A configuration is applied at once; what was edited is the same however dbt parses it.
        owned = REPORT.replace("target_lag", "tblproperties={'team': 'sales'}, target_lag")
        write_file(owned, project.project_root, "models", "report.sql")
        found = {"report": "NO_DATA", "second": "NOT_DUE"}
        assert actions(dbt("run", "--no-partial-parse", *both)) == found
        assert ("team", "sales") in rows(project, "show tblproperties {schema}.report__dyn")
        assert actions(dbt("run", *both)) == dict.fromkeys(["report", "second"], "NOT_DUE")


NUMBERS = """
{{ config(materialized='dynamic_table', suspend_after=2, refresh_mode='incremental') }}
select number from {{ target.schema }}.digits
"""
DOUBLED = """
{{ config(materialized='dynamic_table', target_lag='7 days') }}
select 2 * number as number from {{ ref('numbers') }}
"""
# What the package calls by this name; here it needs no `dbt deps`.
LAG = (ROOT / "models" / "observability" / "dynamic_table_lag.sql").read_text()
# Not built while the tests run.
UNBUILT = """
{{ config(materialized='dynamic_table', target_lag='7 days', initialize='on_schedule') }}
select text from {{ target.schema }}.others
"""
UNRELATED = """
{{ config(materialized='dynamic_table') }} select text from {{ target.schema }}.others
"""
TESTED = """
models:
  - {name: numbers, data_tests: [no_refresh_errors]}
  - {name: doubled, data_tests: [within_target_lag]}
"""


class TestErrors:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "numbers.sql": NUMBERS,
            "doubled.sql": DOUBLED,
            "unrelated.sql": UNRELATED,
            "unbuilt.sql": UNBUILT,
            "dynamic_table_lag.sql": LAG,
            "schema.yml": TESTED,
        }

    def states(self, project) -> dict[str, tuple[str, int, str | None, str]]:
        """What the view says: state, errors, the code of the last error, and when it is due."""
        due = "case when next_due > current_timestamp() then 'later' when next_due is null "
        due += "then 'never' when next_due = current_timestamp() then 'now' else 'passed' end"
        query = f"select relation, state, errors_in_a_row, last_error, {due} as due "
        found = project.run_sql(query + "from {schema}.dynamic_table_lag", fetch="all")
        return {
            relation.rpartition(".")[2]: (state, errors, error and error.split(":")[0], due)
            for relation, state, errors, error, due in found
        }

    def test_a_table_that_fails_is_suspended_until_it_is_resumed(self, project, monkeypatch):
        feed = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
        place = f"using delta location '{project.project_root}/digits'"
        project.run_sql(f"create table {{schema}}.digits {place} {feed} as select 1 as number")
        project.run_sql("create table {schema}.others using delta as select 'a' as text")
        dbt("run")
        # There is a state table now.
        dbt("run", "--select", "dynamic_table_lag")
        well = ("SUCCEEDED", 0, None, "later")
        assert self.states(project) == {
            "numbers": (*well[:3], "never"),
            "unrelated": (*well[:3], "never"),
            "doubled": well,
            "unbuilt": ("MISSING", 0, None, "later"),
        }
        # Its files stay where they are.
        project.run_sql("drop table {schema}.digits")
        project.run_sql("insert into {schema}.others values ('b')")
        wanted = ["SOURCE_MISSING: The table", "SOURCE_MISSING: The table"]
        wanted.append("SUSPENDED: The last 2 refreshes")
        for attempt, message in enumerate(wanted):
            found = dbt("run", expect_pass=False)
            assert message in found["numbers"].message
            assert found["doubled"].status == "skipped"
            assert (actions(found)["unrelated"] == "NO_DATA") == (attempt > 0)
            failed = ("FAILED", 1, "SOURCE_MISSING", "now")
            suspended = ("SUSPENDED_BY_ERRORS", 2, "SOURCE_MISSING", "never")
            assert self.states(project)["numbers"] == (suspended if attempt else failed)
        assert rows(project, "select number from {schema}.numbers") == [(1,)]

        forward(monkeypatch, 8)
        waiting = dbt("run", "--exclude", "numbers")
        assert waiting["doubled"].message == f"WAITING for {project.test_schema}.numbers"
        assert actions(waiting)["unrelated"] == "NO_DATA"
        tested = {r.node.name: r.status for r in run_dbt(["test"], expect_pass=False)}
        assert tested == {
            "no_refresh_errors_numbers_": "fail",
            "within_target_lag_doubled_": "fail",
        }

        project.run_sql(f"create table {{schema}}.digits {place}")
        project.run_sql("insert into {schema}.digits values (2)")
        run_dbt(["run-operation", "dynamic_table_resume", "--args", "{model: numbers}"])
        resumed = dbt("run")
        # It goes on from where it was: only what it missed is read.
        assert resumed["numbers"].message == "INCREMENTAL +1 -0"
        assert rows(project, "select number from {schema}.doubled") == [(2,), (4,)]
        # The view does not believe rows that are dated ahead of Spark's own clock.
        newest = (
            "select state from {schema}.dynamic_table_refreshes where relation like '%numbers'"
        )
        assert rows(project, f"{newest} order by ended_at desc limit 1") == [("SUCCEEDED",)]


HOOKED = """
{{ config(materialized='dynamic_table', target_lag='7 days',
    post_hook="insert into {{ target.schema }}.hooked values ('after')") }}
select 1 as number
"""


class TestPostHooks:
    @pytest.fixture(scope="class")
    def models(self):
        return {"numbers.sql": HOOKED}

    def test_those_that_failed_run_again(self, project):
        failed = dbt("run", expect_pass=False)
        assert "TABLE_OR_VIEW_NOT_FOUND" in failed["numbers"].message
        assert rows(project, "select number from {schema}.numbers") == [(1,)]
        tried = "select refresh_action, state, reason_code from {schema}.dynamic_table_refreshes"
        assert rows(project, tried) == [
            ("FULL", "FAILED", "TABLE_OR_VIEW_NOT_FOUND"),
            ("FULL", "SUCCEEDED", "INITIAL_BUILD"),
        ]
        project.run_sql("create table {schema}.hooked (text string) using delta")
        assert actions(dbt("run")) == {"numbers": "NO_DATA"}
        assert actions(dbt("run")) == {"numbers": "NOT_DUE"}
        assert rows(project, "select text from {schema}.hooked") == [("after",)]


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
