"""Changes that a dynamic table keeps: they come, they age, and a restart finds them as they were.

What the clock shows is set; commits have the time of their files.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file
from tests.functional.refreshes import actions, dbt, rows

from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse

FEED = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
KEPT = "{{ config(materialized='dynamic_table', refresh_mode='incremental') }} "
PEOPLE = "source('shop', 'people')"
RECENT = (
    KEPT
    + "select id, name, change_action, change_row_id, change_timestamp from {{ changes("
    + f"'select id, name from ' ~ {PEOPLE}, since='1 hour', mode='redo_log', bound='at_least', "
    + "unique_key='id') }}"
)
# With a direct read beside it.
COUNTED = (
    KEPT
    + "select c.change_action, count(*) as n from {{ changes('select id from ' ~ "
    + f"{PEOPLE}, since='1 hour', mode='redo_log', bound='at_least') }}}} c "
    + f"join {{{{ {PEOPLE} }}}} p on p.id = c.id group by c.change_action"
)
# Made a table again.
LAST = (
    KEPT
    + "select id, name from {{ integrate(changes('select id, name from ' ~ "
    + f"{PEOPLE}, since='1 hour', mode='redo_log', bound='at_least'), unique_key='id') }}}}"
)
# The net effect, in the default mode.
NET = (
    KEPT
    + "select id, name, change_action, change_is_update from {{ changes("
    + f"'select id, name from ' ~ {PEOPLE}, since='1 hour', bound='at_least', "
    + "unique_key='id') }}"
)
SCHEMA = """
sources:
  - name: shop
    schema: "{{ target.schema }}"
    tables: [{name: people}]
models:
  - name: recent
    config: {contract: {enforced: true}}
    columns:
      - {name: id, data_type: int}
      - {name: name, data_type: string}
      - {name: change_action, data_type: string}
      - {name: change_row_id, data_type: string}
      - {name: change_timestamp, data_type: timestamp}
"""
MODELS = ["recent", "counted", "last_names", "net"]


def kept(project: Any, name: str) -> list[str]:
    """Return the windows of a model."""
    found = project.run_sql("show views in {schema}", fetch="all")
    return sorted(row[1] for row in found if row[1].startswith(f"{name}__changes_"))


def newest(project: Any, table: str) -> tuple[int, datetime]:
    """Return version and time of the last commit that changed rows."""
    feed = f"table_changes('{project.test_schema}.{table}', 0)"
    query = f"select max(_commit_version), unix_millis(max(_commit_timestamp)) from {feed}"
    [row] = project.run_sql(query, fetch="all")
    return int(row[0]), datetime.fromtimestamp(row[1] / 1000, UTC)


class TestWindows:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "recent.sql": RECENT,
            "counted.sql": COUNTED,
            "last_names.sql": LAST,
            "net.sql": NET,
            "schema.yml": SCHEMA,
        }

    def shown(self, project: Any) -> list[tuple[Any, ...]]:
        return rows(project, "select id, name, change_action from {schema}.recent")

    def test_compiling_writes_nothing(self, project):
        project.run_sql(f"create table {{schema}}.people (id int, name string) {FEED}")
        project.run_sql("insert into {schema}.people values (1, 'Jeff')")
        run_dbt(["compile"])
        assert kept(project, "recent") == []

    def test_they_come(self, project):
        assert actions(dbt("run")) == dict.fromkeys(MODELS, "FULL/INITIAL_BUILD")
        assert len(kept(project, "recent")) == 1 and len(kept(project, "counted")) == 1
        before = self.shown(project)
        # Nobody uses it.
        project.run_sql("alter table {schema}.people add columns (age int)")
        project.run_sql("insert into {schema}.people values (2, 'Donny', 40)")
        project.run_sql("update {schema}.people set name = 'Jeffrey' where id = 1")
        assert actions(dbt("run")) == dict.fromkeys(MODELS, "INCREMENTAL")
        assert self.shown(project) == sorted(
            [
                *before,
                (1, "Jeff", "DELETE"),
                (1, "Jeffrey", "INSERT"),
                (2, "Donny", "INSERT"),
            ],
            key=repr,
        )
        last = "select id, name from {schema}.last_names"
        assert rows(project, last) == [(1, "Jeffrey"), (2, "Donny")]
        # The window begins with the table, which was made empty.
        net = [(1, "Jeffrey", "INSERT", False), (2, "Donny", "INSERT", False)]
        assert rows(project, "select * from {schema}.net") == net
        assert set(actions(dbt("run", "--select", "recent")).values()) == {"NO_DATA"}

    def test_they_age_while_others_come(self, project, monkeypatch):
        project.run_sql("delete from {schema}.people where id = 2")
        _, moment = newest(project, "people")
        later = moment + timedelta(hours=1) - timedelta(seconds=1)
        monkeypatch.setattr(DbtWarehouse, "now", lambda _: later)
        found = actions(dbt("run", "--select", "recent", "net"))
        assert found == {"recent": "INCREMENTAL", "net": "INCREMENTAL"}
        assert self.shown(project) == [(2, "Donny", "DELETE")]
        assert rows(project, "select * from {schema}.net") == [(2, "Donny", "DELETE", False)]
        [window] = kept(project, "recent")
        version, _ = newest(project, f"{window}__dyn")
        feed = f"table_changes('{project.test_schema}.{window}__dyn', {version}, {version})"
        found = rows(project, f"select _change_type, id, change_action from {feed}")
        assert found.count(("insert", 2, "DELETE")) == 1
        assert {kind for kind, *_ in found} == {"insert", "delete"}
        assert ("delete", 2, "INSERT") in found

    def test_a_rebuild_gives_the_very_same_rows(self, project, monkeypatch):
        _, moment = newest(project, "people")
        later = moment + timedelta(hours=1) - timedelta(milliseconds=500)
        monkeypatch.setattr(DbtWarehouse, "now", lambda _: later)
        models = ("recent", "net")
        everything = [f"select * from {{schema}}.{kept(project, name)[0]}" for name in models]
        before = [rows(project, query) for query in everything]
        dbt("run", "--select", *models, "--full-refresh")
        assert [rows(project, query) for query in everything] == before and all(before)
        for operation in ("verify", "explain"):
            for model in models:
                run_dbt(["run-operation", operation, "--args", f"{{model: {model}}}"])

    def test_the_clock_alone_lets_them_age(self, project, monkeypatch):
        later = datetime.now(UTC) + timedelta(hours=2)
        monkeypatch.setattr(DbtWarehouse, "now", lambda _: later)
        assert actions(dbt("run")) == dict.fromkeys(MODELS, "INCREMENTAL")
        assert self.shown(project) == []
        assert rows(project, "select * from {schema}.counted") == []
        for model in ("last_names", "net"):
            assert rows(project, f"select * from {{schema}}.{model}") == []

    @pytest.mark.nightly
    def test_another_definition(self, project, monkeypatch):
        later = datetime.now(UTC) + timedelta(hours=3)
        monkeypatch.setattr(DbtWarehouse, "now", lambda _: later)
        old = kept(project, "recent")
        text = RECENT.replace("1 hour", "2 hours").replace("at_least", "strict")
        write_file(text, project.project_root, "models", "recent.sql")
        results = dbt("run", "--select", "recent")
        assert actions(results) == {"recent": "REINITIALIZE/DEFINITION_CHANGED"}
        new = kept(project, "recent")
        assert len(new) == 1 and new != old

    @pytest.mark.nightly
    def test_an_empty_run(self, project, monkeypatch):
        later = datetime.now(UTC) + timedelta(hours=4)
        monkeypatch.setattr(DbtWarehouse, "now", lambda _: later)
        results = dbt("run", "--select", "recent", "--empty")
        assert actions(results) == {"recent": "FULL/EMPTY_RUN"}

    @pytest.mark.nightly
    def test_a_model_that_becomes_a_view_leaves_none(self, project):
        text = "{{ config(materialized='view') }} select 1 as id"
        write_file(text, project.project_root, "models", "counted.sql")
        dbt("run", "--select", "counted")
        assert kept(project, "counted") == []
        found = project.run_sql("show tables in {schema}", fetch="all")
        assert not [row[1] for row in found if row[1].startswith("counted__")]

    @pytest.mark.parametrize(
        ("since", "message"),
        [("5", "CHANGES_POINT_FIXED"), ("'8 days'", "CHANGES_WINDOW_TOO_LONG")],
    )
    def test_what_cannot_be_kept(self, project, since, message):
        text = RECENT.replace("'1 hour'", since)
        write_file(text, project.project_root, "models", "recent.sql")
        results = dbt("run", "--select", "recent", expect_pass=False)
        assert message in str(results["recent"].message)
