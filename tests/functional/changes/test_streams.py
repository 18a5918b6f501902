"""Streams on a real Spark: each change arrives in each consumer once, whatever happens."""

from datetime import UTC, datetime
from typing import Any

import pytest
from dbt.tests.util import rm_file, run_dbt, run_dbt_and_capture, write_file
from tests.functional.refreshes import dbt, history, rows

from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse

PEOPLE_STREAM = """{{ config(materialized='changes_stream', unique_key='id') }}
select id, name from {{ target.schema }}.people"""
ITEMS_STREAM = """{{ config(materialized='changes_stream', at='now') }}
select item, owner from {{ target.schema }}.items"""
# The hook deletes rows after the run has chosen what it consumes.
PEOPLE_CHANGES = """{{ config(materialized='incremental', incremental_strategy='append',
  pre_hook="{{ var('before', 'select 1') }}", post_hook="{{ var('after', 'select 1') }}") }}
select name, change_action, change_is_update from {{ stream('people_stream') }}"""
# Named twice: the same rows both times.
LAST_BATCH = """{{ config(materialized='table', enabled=var('enabled', true)) }}
select a.name, b.n from {{ stream('people_stream') }} a
cross join (select count(*) as n from {{ stream('people_stream') }}) b"""
CURRENT = """{{ config(materialized='incremental', incremental_strategy='merge',
  unique_key='id') }}
select id, max_by(name, change_action) as name, max(change_action) = 'DELETE' as is_gone
from {{ stream('people_stream') }} group by id"""
BOTH = """{{ config(materialized='incremental', incremental_strategy='append') }}
select 'people' as what, name, change_action from {{ stream('people_stream') }}
union all
select 'items', item, change_action from {{ stream('items_stream') }}"""
OWNERS = """{{ config(materialized='incremental', incremental_strategy='append') }}
select owner from {{ stream('items_stream') }}"""
SNAPSHOT = """{% snapshot people_history %}
{{ config(unique_key='id', strategy='check', check_cols=['name']) }}
select id, name from {{ stream('people_stream') }} where change_action = 'INSERT'
{% endsnapshot %}"""
UNIT_TEST = """
unit_tests:
  - name: rows_given_for_a_stream
    model: people_changes
    given:
      - input: ref('people_stream')
        rows:
          - {id: 1, name: Jeff, change_action: DELETE, change_is_update: true, change_row_id: a}
    expect:
      rows: [{name: Jeff, change_action: DELETE, change_is_update: true}]
"""
FIRST = [("Donny", "INSERT", False), ("Jeff", "INSERT", False)]
SECOND = [(name, "INSERT", False) for name in ("Maud", "Uli", "Walter")]
THIRD = [
    ("Jeff", "DELETE", True),
    ("Jeffrey", "INSERT", True),
    ("Maud", "DELETE", True),
    ("Maude", "INSERT", True),
]


def make_people(project: Any) -> None:
    project.run_sql(
        "create table {schema}.people (id int, name string) using delta "
        "tblproperties ('delta.enableChangeDataFeed' = 'true')"
    )
    project.run_sql("insert into {schema}.people values (1, 'Jeff'), (2, 'Donny')")


def add_people(project: Any) -> None:
    project.run_sql("insert into {schema}.people values (3, 'Walter'), (4, 'Maud'), (5, 'Uli')")


def rename_people(project: Any) -> None:
    project.run_sql("update {schema}.people set name = 'Jeffrey' where id = 1")
    project.run_sql("update {schema}.people set name = 'Maude' where id = 4")


def changed(project: Any) -> list[tuple[Any, ...]]:
    return rows(project, "select * from {schema}.people_changes")


def consumed(results: dict[str, Any]) -> dict[str, Any]:
    found = {name: result.adapter_response for name, result in results.items()}
    return {
        name: response["consumption_action"]
        for name, response in found.items()
        if "consumption_action" in response
    }


class TestListing9:
    """The three consumptions of the paper's people_stream, row for row."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "people_stream.sql": PEOPLE_STREAM,
            "people_changes.sql": PEOPLE_CHANGES,
            "unit.yml": UNIT_TEST,
        }

    def test_three_consumptions(self, project):
        make_people(project)
        assert consumed(dbt("run")) == {"people_changes": "CONSUMED"}
        assert changed(project) == FIRST
        project.run_sql("truncate table {schema}.people_changes")

        add_people(project)
        pending = (
            "select name from {{ changes(ref('people_stream'), "
            "since={'stream': 'people_stream', 'consumer': 'people_changes'}) }}"
        )
        assert len(run_dbt(["show", "--inline", pending])[0].agate_table.rows) == 3
        # It means the same.
        edited = PEOPLE_STREAM.replace("select id, name from", "SELECT p.id, p.name\nFROM")
        write_file(f"{edited} AS p", project.project_root, "models", "people_stream.sql")
        # Looking at it moves nothing.
        run_dbt(["compile"])
        run_dbt(["show", "--select", "people_changes"])
        assert consumed(dbt("run")) == {"people_changes": "CONSUMED"}
        assert changed(project) == SECOND
        project.run_sql("truncate table {schema}.people_changes")

        # A column that the stream does not use.
        project.run_sql("alter table {schema}.people add columns (age int)")
        rename_people(project)
        delete = f"delete from {project.test_schema}.people where id in (2, 5)"
        dbt("run", "--select", "people_changes", "--vars", f"before: {delete}")
        assert changed(project) == THIRD
        # The deletes came after the cut, so they are in the next batch.
        project.run_sql("truncate table {schema}.people_changes")
        dbt("run", "--select", "people_changes")
        assert changed(project) == [("Donny", "DELETE", False), ("Uli", "DELETE", False)]

        # Reading the stream shows what a first reader would get, whoever consumed.
        dbt("run", "--select", "people_stream")
        reading = "select name, change_action from {schema}.people_stream"
        everybody = [(name, "INSERT") for name in ("Jeffrey", "Maude", "Walter")]
        assert rows(project, reading) == everybody
        # In a unit test it has the rows that are given.
        assert [r.status for r in run_dbt(["test"])] == ["pass"]

        # An empty batch commits a record, and nothing else.
        before = history(project, "people_changes")[0]
        dbt("run", "--select", "people_changes")
        after = history(project, "people_changes")[0]
        assert after["version"] == before["version"] + 1
        assert after["userMetadata"] != before["userMetadata"]


class TestHooks:
    """The settings of the exactly-once write surround the main statement alone."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"people_stream.sql": PEOPLE_STREAM, "people_changes.sql": PEOPLE_CHANGES}

    def test_hooks(self, project):
        make_people(project)
        dbt("run")
        add_people(project)
        schema = project.test_schema
        delete = f"delete from {schema}.people_changes where name = 'Uli'"
        dbt("run", "--vars", f'after: "{delete}"')
        newest, main, *_ = history(project, "people_changes")
        assert newest["operation"] == "DELETE" and newest["userMetadata"] is None
        assert "spark_dynamic_consumption" in main["userMetadata"]
        assert changed(project) == sorted([*FIRST, *SECOND[:1], *SECOND[2:]])

        # A hook that fails after the write: the batch is there, and is not taken again.
        rename_people(project)
        results = dbt("run", "--vars", "after: select * from nowhere", expect_pass=False)
        assert results["people_changes"].status == "error"
        expected = sorted([*FIRST, *SECOND[:1], *SECOND[2:], *THIRD])
        assert changed(project) == expected
        dbt("run")
        assert changed(project) == expected
        insert = f"insert into {schema}.people_changes values ('by a hook', 'X', false)"
        dbt("run", "--vars", f'after: "{insert}"')
        assert history(project, "people_changes")[0]["userMetadata"] is None
        assert len(changed(project)) == len(expected) + 1

        # --empty consumes nothing; --full-refresh starts with the contents.
        project.run_sql("insert into {schema}.people values (6, 'Larry')")
        dbt("run", "--empty")
        assert len(changed(project)) == len(expected) + 1
        dbt("run", "--full-refresh", "--select", "people_changes")
        names = ("Donny", "Jeffrey", "Larry", "Maude", "Uli", "Walter")
        assert changed(project) == [(name, "INSERT", False) for name in names]
        # Emptied by a build that consumes nothing: the next one begins anew.
        dbt("run", "--full-refresh", "--empty", "--select", "people_changes")
        assert changed(project) == []
        dbt("run", "--select", "people_changes")
        assert changed(project) == [(name, "INSERT", False) for name in names]
        # A restored table goes on from where it was then.
        version = history(project, "people_changes")[0]["version"]
        project.run_sql("insert into {schema}.people values (7, 'Bunny')")
        dbt("run", "--select", "people_changes")
        project.run_sql(f"restore table {schema}.people_changes to version as of {version}")
        assert len(changed(project)) == 6
        dbt("run", "--select", "people_changes")
        assert len(changed(project)) == 7


class TestConsumers:
    """Tables, merges, snapshots, and several streams at once."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "people_stream.sql": PEOPLE_STREAM,
            "items_stream.sql": ITEMS_STREAM,
            "last_batch.sql": LAST_BATCH,
            "current_people.sql": CURRENT,
            "both.sql": BOTH,
        }

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"people_history.sql": SNAPSHOT}

    def test_all_of_them(self, project):
        make_people(project)
        project.run_sql(
            "create table {schema}.items (item string, owner int) using delta "
            "tblproperties ('delta.enableChangeDataFeed' = 'true')"
        )
        project.run_sql("insert into {schema}.items values ('Rug', 1)")
        everything = ["last_batch", "current_people", "both", "people_history"]
        assert consumed(dbt("build")) == dict.fromkeys(everything, "CONSUMED")
        # items_stream begins now, so it has no changes yet.
        both = "select * from {schema}.both"
        first = [("people", "Donny", "INSERT"), ("people", "Jeff", "INSERT")]
        assert rows(project, both) == first
        assert rows(project, "select * from {schema}.last_batch") == [("Donny", 2), ("Jeff", 2)]

        project.run_sql("insert into {schema}.items values ('Car', 2)")
        rename_people(project)
        project.run_sql("delete from {schema}.people where id = 2")
        dbt("build")
        second = [
            ("items", "Car", "INSERT"),
            ("people", "Donny", "DELETE"),
            ("people", "Jeff", "DELETE"),
            ("people", "Jeffrey", "INSERT"),
        ]
        assert rows(project, both) == sorted([*first, *second])
        batch = [("Donny", 3), ("Jeff", 3), ("Jeffrey", 3)]
        assert rows(project, "select * from {schema}.last_batch") == batch
        valid = "select name from {schema}.people_history where dbt_valid_to is null"
        assert rows(project, valid) == [("Donny",), ("Jeffrey",)]
        assert rows(project, "select id, is_gone from {schema}.current_people") == [
            (1, False),
            (2, True),
        ]

        # Everybody ends at the same point.
        ends = {
            name: history(project, name)[0]["userMetadata"].split('"end":')[1].split("]}")[0]
            for name in ("last_batch", "current_people", "people_history")
        }
        assert len(set(ends.values())) == 1
        operation = ["run-operation", "changes_stream_status"]
        run_dbt(operation)
        move = ["run-operation", "changes_stream_move", "--args"]
        project.run_sql("insert into {schema}.people values (8, 'Smokey')")
        run_dbt([*move, "{consumer: both, stream: people_stream, to: now}"])
        dbt("run", "--select", "both", "last_batch")
        assert rows(project, both) == sorted([*first, *second])
        assert rows(project, "select * from {schema}.last_batch") == [("Smokey", 1)]
        reset = ["run-operation", "changes_stream_reset", "--args"]
        run_dbt([*reset, "{consumer: both, stream: people_stream}"])
        dbt("run", "--select", "both")
        again = [("people", "Jeffrey", "INSERT"), ("people", "Smokey", "INSERT")]
        assert rows(project, both) == sorted([*first, *second, *again])
        kept = "select distinct action from {schema}.changes_stream_consumptions"
        assert rows(project, kept) == [("CONSUME",), ("MOVE",), ("RESET",)]

    def test_consumers_in_trouble(self, project, monkeypatch):
        """Another definition, a lost position, a new name, a pause, and a clock that is behind."""
        models = (project.project_root, "models")
        write_file(f"{ITEMS_STREAM} where owner > 0", *models, "items_stream.sql")
        write_file(OWNERS, *models, "owners.sql")
        project.run_sql(
            "create table {schema}.owners (owner int) using delta "
            "tblproperties ('spark_dynamic.consumer' = 'true')"
        )
        rm_file(*models, "current_people.sql")
        write_file(CURRENT, *models, "people_now.sql")
        project.run_sql("insert into {schema}.people values (9, 'Brandt')")
        found = dbt("run", "--vars", "enabled: false", expect_pass=False)
        failed = {name: str(r.message) for name, r in found.items() if r.status == "error"}
        assert failed.keys() == {"both", "owners"}
        assert "STREAM_CHANGED: The definition of items_stream" in failed["both"]
        assert "STREAM_POSITION_LOST: " in failed["owners"]
        # Under its new name it is new.
        now = "select id, is_gone from {schema}.people_now"
        assert rows(project, now) == [(1, False), (8, False), (9, False)]
        _, output = run_dbt_and_capture(["run-operation", "changes_stream_status"])
        told = [line for line in output.splitlines() if "items_stream" in line]
        assert any(".both" in line and "STREAM_CHANGED" in line for line in told), told
        assert any(".owners" in line and "STREAM_POSITION_LOST" in line for line in told), told

        begun = dbt("run", "--full-refresh", "--select", "both", "owners")
        assert consumed(begun) == {"both": "CONSUMED", "owners": "CONSUMED"}
        names = ("Brandt", "Jeffrey", "Smokey")
        contents = [("people", name, "INSERT") for name in names]
        both = "select * from {schema}.both"
        assert rows(project, both) == contents
        early = datetime.now(UTC)
        project.run_sql("insert into {schema}.people values (10, 'Knox')")
        dbt("run", "--select", "both", "last_batch")
        # It has kept its position while it was disabled.
        assert rows(project, "select * from {schema}.last_batch") == [("Brandt", 2), ("Knox", 2)]
        monkeypatch.setattr(DbtWarehouse, "now", lambda _: early)
        assert consumed(dbt("run", "--select", "both")) == {"both": "COVERED"}
        assert rows(project, both) == sorted([*contents, ("people", "Knox", "INSERT")])
