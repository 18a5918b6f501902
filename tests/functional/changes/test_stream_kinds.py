"""Streams of every kind on a real Spark: over dynamic tables, in every mode, and too old."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from tests.functional.refreshes import actions, dbt, rows

from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse

ITEMS = "select item, owner from {{ target.schema }}.items"
TOTALS = """{{ config(materialized='dynamic_table', refresh_mode='incremental') }}
select owner, count(*) as n from {{ target.schema }}.items group by owner"""
SHORT = """{{ config(materialized='changes_stream',
  max_retention_extension=var('extension', none)) }}
select id from {{ target.schema }}.short"""
MOVES = "select id from {{ target.schema }}.moves"
STARTS = (
    "at_version", "at_moment", "at_another", "at_the_beginning", "at_version_shown",
    "at_now_hidden",
)  # fmt: skip


def stream(sql: str, **config: Any) -> str:
    given = "".join(f", {key}={value!r}" for key, value in config.items())
    return f"{{{{ config(materialized='changes_stream'{given}) }}}} {sql}"


def consumer(name: str, columns: str = "*") -> str:
    config = "{{ config(materialized='incremental', incremental_strategy='append') }}"
    return f"{config} select {columns} from {{{{ stream('{name}') }}}}"


def forward(patch: pytest.MonkeyPatch) -> None:
    later = timedelta(hours=3)
    patch.setattr(DbtWarehouse, "now", lambda warehouse: datetime.now(UTC) + later)


class TestKinds:
    @pytest.fixture(scope="class")
    def models(self):
        change = "change_action, change_is_update"
        return {
            "totals.sql": TOTALS,
            "totals_stream.sql": stream("select * from {{ ref('totals') }}", unique_key="owner"),
            "totals_changes.sql": consumer("totals_stream", f"owner, n, {change}"),
            "new_stream.sql": stream(ITEMS, mode="append_only"),
            "new_items.sql": consumer("new_stream", "item, change_action"),
            "log_stream.sql": stream(ITEMS, mode="redo_log", row_keys={"items": "item"}),
            "item_log.sql": consumer("log_stream"),
            "upsert_stream.sql": stream(ITEMS, unique_key="item", encoding="upserts"),
            "upserted.sql": consumer("upsert_stream", "item, owner, change_action"),
            "at_version.sql": stream(MOVES, at=1),
            "at_another.sql": stream(
                "-- depends_on: {{ ref('at_version') }}\n" + MOVES, at={"stream": "at_version"}
            ),
            "at_the_beginning.sql": stream(MOVES, at="before the first change"),
            "at_version_shown.sql": stream(MOVES, at=1, show_initial_rows=True),
            "at_now_hidden.sql": stream(MOVES, show_initial_rows=False),
            "starts.sql": "{{ config(materialized='incremental', incremental_strategy='append') }}"
            + " union all ".join(
                f"select '{name}' as name, id, change_action from {{{{ stream('{name}') }}}}"
                for name in STARTS
            ),
            "short_stream.sql": SHORT,
            "short_changes.sql": consumer("short_stream", "id"),
        }

    @pytest.fixture(scope="class", autouse=True)
    def sources(self, project):
        feed = "'delta.enableChangeDataFeed' = 'true'"
        project.run_sql(
            "create table {schema}.items (item string, owner string) using delta "
            f"tblproperties ({feed})"
        )
        project.run_sql("insert into {schema}.items values ('Rug', 'Jeff'), ('Car', 'Jeff')")
        project.run_sql(
            f"create table {{schema}}.short (id int) using delta tblproperties ({feed}, "
            "'delta.deletedFileRetentionDuration' = 'interval 1 hours')"
        )
        project.run_sql("insert into {schema}.short values (1)")
        project.run_sql(
            f"create table {{schema}}.moves (id int) using delta tblproperties ({feed})"
        )
        project.run_sql("insert into {schema}.moves values (1), (2)")
        project.run_sql("delete from {schema}.moves where id = 1")
        text = stream(MOVES, at=str(datetime.now(UTC)))
        write_file(text, project.project_root, "models", "at_moment.sql")
        project.run_sql("insert into {schema}.moves values (3)")

    def taken(self, project: Any, table: str) -> list[tuple[Any, ...]]:
        """What the last run has put into a consumer."""
        found = rows(project, f"select * from {{schema}}.{table}")
        project.run_sql(f"truncate table {{schema}}.{table}")
        return found

    def log(self, project: Any) -> list[tuple[Any, ...]]:
        columns = "item, owner, change_action, change_is_update, change_diff"
        found = project.run_sql(
            f"select {columns}, split_part(change_table, '.', 2) from {{schema}}.item_log "
            "order by change_timestamp, change_table, change_version, item, change_diff",
            fetch="all",
        )
        project.run_sql("truncate table {schema}.item_log")
        assert {row[5] for row in found} <= {"items"}
        return [tuple(row)[:5] for row in found]

    def test_every_mode_twice(self, project):
        dbt("run")
        self.check_starts(project)
        assert self.taken(project, "totals_changes") == [("Jeff", 2, "INSERT", False)]
        assert self.taken(project, "new_items") == [("Car", "INSERT"), ("Rug", "INSERT")]
        assert self.taken(project, "upserted") == [
            ("Car", "Jeff", "INSERT"), ("Rug", "Jeff", "INSERT"),
        ]  # fmt: skip
        assert self.log(project) == [
            ("Car", "Jeff", "INSERT", False, 1), ("Rug", "Jeff", "INSERT", False, 1),
        ]  # fmt: skip

        project.run_sql("insert into {schema}.items values ('Ball', 'Walter')")
        project.run_sql("update {schema}.items set owner = 'Maude' where item = 'Rug'")
        project.run_sql("delete from {schema}.items where item = 'Ball'")
        project.run_sql("insert into {schema}.items values ('Ball', 'Walter'), ('Robe', 'Jeff')")
        project.run_sql("delete from {schema}.items where item = 'Car'")
        # What the dynamic table does not show yet.
        unseen = (
            "select item, change_action from {{ changes('select * from ' ~ target.schema ~ "
            "'.items', since={'dynamic_table': ref('totals')}, until='now') }}"
        )
        shown = run_dbt(["show", "--inline", unseen])[0].agate_table.rows
        assert sorted(tuple(row) for row in shown) == [
            ("Ball", "INSERT"), ("Car", "DELETE"), ("Robe", "INSERT"),
            ("Rug", "DELETE"), ("Rug", "INSERT"),
        ]  # fmt: skip
        found = dbt("run", "--exclude", "short_stream", "short_changes", "starts", "at_*")
        assert actions(found)["totals"] == "INCREMENTAL"
        # Jeff has lost a rug and a car, and got a robe.
        assert self.taken(project, "totals_changes") == [
            ("Jeff", 1, "INSERT", True), ("Jeff", 2, "DELETE", True),
            ("Maude", 1, "INSERT", False), ("Walter", 1, "INSERT", False),
        ]  # fmt: skip
        # Of the rug only where it is now.
        assert self.taken(project, "upserted") == [
            ("Ball", "Walter", "INSERT"), ("Car", "Jeff", "DELETE"), ("Robe", "Jeff", "INSERT"),
            ("Rug", "Maude", "INSERT"),
        ]  # fmt: skip
        # The ball is new once; that the rug moved is no insert.
        assert self.taken(project, "new_items") == [("Ball", "INSERT"), ("Robe", "INSERT")]
        assert self.log(project) == [
            ("Ball", "Walter", "INSERT", False, 1),
            ("Rug", "Jeff", "DELETE", True, -1), ("Rug", "Maude", "INSERT", True, 1),
            ("Ball", "Walter", "DELETE", False, -1),
            ("Ball", "Walter", "INSERT", False, 1), ("Robe", "Jeff", "INSERT", False, 1),
            ("Car", "Jeff", "DELETE", False, -1),
        ]  # fmt: skip
        kept = rows(
            project,
            "select distinct split_part(consumer, '.', 2), shapes[0] from "
            "{schema}.changes_stream_consumptions where consumption_number = 2",
        )
        assert kept == [
            ("item_log", "MINIMIZE"), ("new_items", "APPEND_ONLY"), ("totals_changes", "MINIMIZE"),
            ("upserted", "MINIMIZE"),
        ]  # fmt: skip

    def check_starts(self, project: Any) -> None:
        """Each stream has begun where it was told to, with the contents there or without."""
        since = {"DELETE": [1], "INSERT": [3]}
        wanted = {
            "at_version": since,
            "at_another": since,
            "at_moment": {"INSERT": [3]},
            "at_the_beginning": {"INSERT": [2, 3]},
            "at_version_shown": {"DELETE": [1], "INSERT": [1, 2, 3]},
        }
        assert rows(project, "select name, id, change_action from {schema}.starts") == sorted(
            (name, id, action)
            for name, actions in wanted.items()
            for action, ids in actions.items()
            for id in ids
        )

    def short(self, project: Any) -> list[int]:
        return [row[0] for row in rows(project, "select id from {schema}.short_changes")]

    def test_a_stale_stream_and_one_that_is_kept(self, project, monkeypatch):
        select = ["--select", "short_stream", "short_changes"]
        project.run_sql("insert into {schema}.short values (2)")
        with monkeypatch.context() as patch:
            forward(patch)
            found = dbt("run", "--select", "short_changes", expect_pass=False)["short_changes"]
        message = str(found.message)
        assert "STREAM_STALE: The changes of short_stream that come next" in message
        assert "delta.deletedFileRetentionDuration" in message
        assert "max_retention_extension" in message and "changes_stream_move" in message
        assert self.short(project) == [1]

        dbt("run", *select, "--vars", "extension: 3 days")
        assert self.short(project) == [1, 2]
        properties = project.run_sql("show tblproperties {schema}.short", fetch="all")
        known = {row[0]: row[1] for row in properties}
        assert known["delta.deletedFileRetentionDuration"] == "interval 259200 seconds"
        # The log is kept for 30 days anyway.
        assert "delta.logRetentionDuration" not in known
        project.run_sql("insert into {schema}.short values (3)")
        with monkeypatch.context() as patch:
            forward(patch)
            status = ["run-operation", "changes_stream_status", "--args", "{stream: short_stream}"]
            _, output = run_dbt_and_capture(status)
            [line] = [line for line in output.splitlines() if "short_changes" in line]
            # Of three days, three hours and what the test took are over.
            assert re.search(r"changes pending .* 2d 20h 5\dm", line), line
            dbt("run", *select, "--vars", "extension: 3 days")
        assert self.short(project) == [1, 2, 3]
