"""Chains of dbt-built tables and dynamic tables, at one cut."""

import re
import threading

import pytest
from dbt.tests.util import run_dbt_and_capture, write_file
from pyspark.sql import SparkSession
from tests.functional.refreshes import actions, dbt, history, rows

from dbt.adapters.spark_dynamic import dynamic_tables
from spark_dynamic.errors import WarehouseError
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.run import run_plan

CHAIN = {
    "staged.sql": "{{ config(materialized='table') }} select id, upper(name) as name "
    "from {{ ref('people') }}",
    "grown.sql": "{{ config(materialized='incremental', unique_key='id', "
    "incremental_strategy='merge') }} select id, name from {{ ref('staged') }}",
    "first.sql": "{{ config(materialized='dynamic_table') }} select id, name "
    "from {{ ref('staged') }} where id < 10",
    "second.sql": "{{ config(materialized='dynamic_table') }} select f.id, p.name "
    "from {{ ref('first') }} f join {{ ref('people') }} p using (id)",
    "third.sql": "{{ config(materialized='dynamic_table') }} select count(*) as n "
    "from {{ ref('first') }} f join {{ ref('second') }} s on f.id = s.id",
    "from_grown.sql": "{{ config(materialized='dynamic_table') }} select max(id) as m "
    "from {{ ref('grown') }}",
}
ALL = ["first", "second", "third", "from_grown"]


class TestChain:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {"people.csv": "id,name\n1,O'Brien\n2,Ada\n3,\n"}

    @pytest.fixture(scope="class")
    def models(self):
        return CHAIN

    def test_three_builds_write_once(self, project):
        _, shown = run_dbt_and_capture(["run-operation", "dynamic_table_plan"])
        assert dict(re.findall(r"\.(\w+) \| DEPENDS \| on what (.*) will bring", shown)) == {
            "first": "staged",
            "second": "first, people",
            "third": "first, second",
            "from_grown": "grown",
        }
        assert actions(dbt("build")) == dict.fromkeys(ALL, "FULL/INITIAL_BUILD")
        tables = [f"{name}__dyn" for name in ALL]
        written = [len(history(project, table)) for table in tables]
        for _ in range(2):
            assert actions(dbt("build")) == dict.fromkeys(ALL, "NO_DATA")
        assert [len(history(project, table)) for table in tables] == written
        assert rows(project, "select * from {schema}.first") == [
            (1, "O'BRIEN"), (2, "ADA"), (3, None),
        ]  # fmt: skip

    def test_upstreams_keep_their_log_and_have_a_change_feed(self, project):
        for table in ("people", "staged", "grown"):
            assert history(project, table)[0]["version"] >= 2, table
            properties = dict(rows(project, f"show tblproperties {{schema}}.{table}"))
            assert properties["delta.enableChangeDataFeed"] == "true", table

    def test_a_model_waits_for_an_upstream_that_was_not_refreshed(self, project):
        project.run_sql("insert into {schema}.people values (4, 'Grace')")
        dbt("run", "--select", "staged")
        waiting = dbt("run", "--select", "second")
        assert actions(waiting) == {"second": "WAITING"}
        assert waiting["second"].message == f"WAITING for {project.test_schema}.first"
        assert rows(project, "select count(*) from {schema}.second") == [(3,)]

        refreshed = actions(dbt("run", "--select", "first+"))
        assert set(refreshed.values()) == {"FULL/CHEAPER"}
        assert rows(project, "select n from {schema}.third") == [(4,)]

    def test_one_data_timestamp_for_all(self, project):
        project.run_sql("insert into {schema}.people values (5, 'Barbara')")
        results = dbt("run")
        moments = {results[name].adapter_response["data_timestamp"] for name in ALL}
        assert len(moments) == 1

    def test_a_base_change_that_does_not_arrive_moves_the_record_only(self, project):
        # id 50 is filtered out by `first`, so `second` gains nothing from it, nor does `third`.
        project.run_sql("insert into {schema}.people values (50, 'Far')")
        results = dbt("run")
        assert actions(results) == {
            "first": "FULL/CHEAPER",
            "second": "FULL/CHEAPER",
            "third": "NO_DATA",
            "from_grown": "FULL/CHEAPER",
        }
        assert actions(dbt("run")) == dict.fromkeys(ALL, "NO_DATA")


INCREMENTAL = "{{ config(materialized='dynamic_table', refresh_mode='incremental') }}"
NEWEST = "select max(a), max(b) from {{schema}}.d__dyn {}"
TABLES = ("table_a", "table_b")


class TestConsistentCut:
    """A writer commits n to A, then to B; a reader of both must never see B ahead of A."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "u.sql": f"{INCREMENTAL} select n from {{{{ target.schema }}}}.table_a",
            "d.sql": f"{INCREMENTAL} select u.n as a, b.n as b from {{{{ ref('u') }}}} u "
            "join {{ target.schema }}.table_b b on b.n % 2 = u.n % 2",
        }

    def commit(self, project, n):
        for table in TABLES:
            project.run_sql(f"insert into {{schema}}.{table} values ({n})")

    def test_pins_hold_for_the_whole_cycle(self, project):
        for table in TABLES:
            project.run_sql(
                f"create table {{schema}}.{table} using delta tblproperties "
                "('delta.enableChangeDataFeed' = 'true') as select 0 as n"
            )
        dbt("run")
        for n in (1, 2):
            self.commit(project, n)
            # Between the two models, time passes and both tables go on.
            dbt("run", "--select", "u")
            self.commit(project, 10 * n)
            dbt("run", "--select", "d")
            newest = n if n == 1 else 10
            assert rows(project, NEWEST.format("")) == [(newest, newest)]

    def test_no_version_mixes_cuts_while_a_writer_goes_on(self, project):
        with Writer(project.test_schema):
            for _ in range(6):
                assert actions(dbt("run")) == dict.fromkeys("ud", "INCREMENTAL")
        seen = set()
        for commit in history(project, "d__dyn"):
            version = commit["version"]
            [(a, b)] = rows(project, NEWEST.format(f"version as of {version}"))
            assert b <= a, (version, a, b)
            seen.add(a)
        # It was refreshed while the writer was at work, each time with something new.
        assert len([a for a in seen if a > 100]) >= 6, seen

    def test_a_retry_brings_a_table_to_the_cut_of_its_upstream(self, project, monkeypatch):
        self.commit(project, 10_000)

        def without_d(plan, *arguments, **more):
            if plan.request.view.name == "d":
                raise WarehouseError("", "The cluster went away.")
            return run_plan(plan, *arguments, **more)

        with monkeypatch.context() as patch:
            patch.setattr(dynamic_tables, "run_plan", without_d)
            failed = dbt("run", expect_pass=False)
        assert actions(failed) == {"u": "INCREMENTAL"}
        assert "QUERY_FAILED: The cluster went away." in failed["d"].message

        # Both tables have gone on when somebody tries again.
        self.commit(project, 20_000)
        retried = dbt("retry")
        assert actions(retried) == {"d": "INCREMENTAL"}
        moments = [run.adapter_response["data_timestamp"] for run in (failed["u"], retried["d"])]
        assert moments[0] == moments[1]
        assert rows(project, NEWEST.format("")) == [(10_000, 10_000)]

    def test_a_run_that_another_one_overtakes_writes_nothing(self, project, monkeypatch):
        plan_refresh, schema, requests = dynamic_tables.plan_refresh, project.test_schema, {}

        def noted(request, cycle, warehouse):
            requests[request.view.name] = request
            return plan_refresh(request, cycle, warehouse)

        def overtaken(request, cycle, warehouse):
            if request.view.name == "u":
                # Another run begins later than this one, and ends before it has planned anything.
                for table in TABLES:
                    warehouse.execute(f"insert into {schema}.{table} values (50000)")
                later = Cycle("another run", warehouse.now(), cycle.known)
                for each in requests.values():
                    run_plan(plan_refresh(each, later, warehouse), later, warehouse)
            return plan_refresh(request, cycle, warehouse)

        for n, planned, action in ((30_000, noted, "INCREMENTAL"), (40_000, overtaken, "COVERED")):
            self.commit(project, n)
            with monkeypatch.context() as patch:
                patch.setattr(dynamic_tables, "plan_refresh", planned)
                results = dbt("run")
            assert actions(results) == dict.fromkeys("ud", action)
        assert {results[name].message for name in "ud"} == {"COVERED"}
        assert rows(project, NEWEST.format("")) == [(50_000, 50_000)]
        assert actions(dbt("run")) == dict.fromkeys("ud", "NO_DATA")


class Writer:
    """Commits n to table_a, then to table_b, all the time, from a session of its own."""

    def __init__(self, schema):
        self._schema = schema
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._error = None

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        if self._error:
            raise self._error

    def _write(self):
        session = SparkSession._instantiatedSession.newSession()
        n = 100
        try:
            while not self._stop.is_set():
                n += 1
                for table in TABLES:
                    session.sql(f"insert into {self._schema}.{table} values ({n})")
        except Exception as error:
            self._error = error


class TestOverwrites:
    """A session that overwrites only the partitions which it writes to leaves none behind."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        chosen = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
        settings = dbt_profile_target["server_side_parameters"] | chosen
        return {**dbt_profile_target, "server_side_parameters": settings}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"seeds": {"+partition_by": "region"}, "models": {"+partition_by": "region"}}

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"sales.csv": "id,region\n1,north\n2,south\n3,south\n"}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "staged.sql": "{{ config(materialized='table') }} select * from {{ ref('sales') }}",
            "full.sql": "{{ config(materialized='dynamic_table', refresh_mode='full') }} "
            "select * from {{ ref('staged') }}",
            "merged.sql": INCREMENTAL + " select * from {{ ref('sales') }}",
        }

    def test_vanished_partitions_are_gone(self, project):
        dbt("build")
        write_file("id,region\n4,west\n", project.project_root, "seeds", "sales.csv")
        found = actions(dbt("build"))
        assert found == {"full": "FULL/CONFIGURED_FULL", "merged": "INCREMENTAL"}
        for name in ("sales", "staged", "full", "merged"):
            assert rows(project, f"select id, region from {{schema}}.{name}") == [(4, "west")]
