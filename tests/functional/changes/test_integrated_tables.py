"""`integrate()` over changelogs in dynamic tables and in unit tests."""

import re

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from tests.functional.refreshes import actions, assert_equals_query, dbt, rows

from spark_dynamic.frontier.state import STATE_COLUMNS

DYNAMIC = "{{ config(materialized='dynamic_table', refresh_mode='incremental') }} "
ACCOUNTS = (
    "select * from {{ integrate(ref('events'), unique_key='id', order_by=['sent_at'], "
    "deletes=\"kind = 'closed'\") }}"
)
UNIT_TESTS = """
unit_tests:
  - name: the_last_event_counts
    model: accounts
    given:
      - input: ref('events')
        rows:
          - {id: 1, sent_at: 1, kind: open, balance: 10}
          - {id: 1, sent_at: 2, kind: deposit, balance: 15}
          - {id: 2, sent_at: 1, kind: open, balance: 20}
          - {id: 2, sent_at: 3, kind: closed, balance: 0}
    expect:
      rows:
        - {id: 1, sent_at: 2, kind: deposit, balance: 15}
  - name: changes_add_up
    model: summed
    given:
      - input: ref('events')
        rows:
          - {id: 1, balance: 10, change_action: INSERT}
          - {id: 1, balance: 10, change_action: DELETE}
          - {id: 1, balance: 15, change_action: INSERT}
    expect:
      rows:
        - {id: 1, balance: 15}
  - name: a_query_stands_for_the_changes
    model: named
    given:
      - input: ref('events')
        format: sql
        rows: select 7 as id, 1 as sent_at, 'open' as kind, 3 as balance
      - input: source('shop', 'names')
        rows:
          - {id: 7, name: seven, sent_at: 2}
          - {id: 7, name: six, sent_at: 1}
    expect:
      rows:
        - {id: 7, name: seven, balance: 3}
sources:
  - name: shop
    schema: "{{ target.schema }}"
    tables:
      - name: names
"""


class TestAccounts:
    @pytest.fixture(scope="class")
    def models(self):
        names = "integrate(source('shop', 'names'), unique_key='id', order_by='sent_at')"
        return {
            "events.sql": "{{ config(materialized='incremental') }} select 0 as id, 0 as sent_at, "
            "'x' as kind, 0 as balance where false",
            "accounts.sql": DYNAMIC + ACCOUNTS,
            "log.sql": DYNAMIC + "select * from {{ ref('events') }}",
            "named.sql": DYNAMIC + f"select e.id, e.balance, n.name from ({ACCOUNTS}) e "
            f"join {{{{ {names} }}}} n on n.id = e.id",
            "summed.sql": "{{ config(materialized='view') }} select * from "
            "{{ integrate(changes(ref('events'), 0)) }}",
            "wrong.sql": "select * from {{ integrate(ref('events'), unique_key='number', "
            "order_by='sent_at') }}",
            "schema.yml": UNIT_TESTS,
        }

    def insert(self, project, *events: str) -> None:
        project.run_sql(f"insert into {{schema}}.events values {', '.join(events)}")

    def test_new_events_are_applied(self, project):
        project.run_sql(
            "create table {schema}.names (id int, name string, sent_at int) using delta "
            "tblproperties ('delta.enableChangeDataFeed' = 'true')"
        )
        # A state table of an earlier version: it gets the columns that it lacks.
        older = {name: kind for name, kind in STATE_COLUMNS.items() if name != "shape"}
        columns = ", ".join(f"{name} {kind}" for name, kind in older.items())
        project.run_sql(f"create table {{schema}}.dynamic_table_refreshes ({columns}) using delta")
        dbt("run", "--select", "events")
        self.insert(project, "(1, 1, 'open', 10)", "(2, 1, 'open', 20)", "(3, 1, 'open', 30)")
        project.run_sql("insert into {schema}.names values (1, 'Ann', 1), (2, 'Bob', 1)")
        select = ["--select", "accounts", "log", "named"]
        dbt("run", *select)
        self.insert(project, "(1, 5, 'deposit', 15)", "(2, 6, 'closed', 0)", "(4, 2, 'open', 4)")
        project.run_sql("insert into {schema}.names values (1, 'Anna', 2)")
        found = actions(dbt("run", *select))
        assert found == {"accounts": "INCREMENTAL", "log": "INCREMENTAL", "named": "INCREMENTAL"}
        assert rows(project, "select * from {schema}.accounts") == [
            (1, 5, "deposit", 15), (3, 1, "open", 30), (4, 2, "open", 4),
        ]  # fmt: skip
        assert_equals_query(project, "log", "select * from {schema}.events")
        assert rows(project, "select * from {schema}.named") == [(1, 15, "Anna")]
        run_dbt(["run-operation", "dynamic_table_verify", "--args", "{model: accounts}"])
        shapes = rows(
            project,
            "select split_part(relation, '.', 2), regexp_replace(shape, 'test[^.]*[.]', '') "
            "from {schema}.dynamic_table_refreshes where refresh_action = 'INCREMENTAL'",
        )
        assert shapes == [
            ("accounts", "ADDED_ONLY (events: inserts only)"),
            ("log", "ADDED_ONLY (events: inserts only)"),
            # Groups below a join: the old ones go, the new ones come.
            ("named", "MINIMIZE (events: inserts only, names: inserts only)"),
        ]

    def explained(self, model: str) -> str:
        _, output = run_dbt_and_capture(
            ["run-operation", "explain", "--args", f"{{model: {model}}}"]
        )
        return output

    def test_the_shape_is_explained(self, project):
        project.run_sql("delete from {schema}.events where id = 3")
        assert re.search(r"shape +.*MINIMIZE \(test\w+.events: changes\)", self.explained("log"))
        assert re.search(r"changes +.*MINIMIZE", self.explained("summed"))

    def test_unit_tests_give_the_changelog(self, project):
        results = run_dbt(["test", "--select", "test_type:unit"])
        assert {result.node.name: result.status for result in results} == {
            "the_last_event_counts": "pass",
            "changes_add_up": "pass",
            "a_query_stands_for_the_changes": "pass",
        }

    def test_a_column_that_is_not_there(self, project):
        wrong = dbt("run", "--select", "wrong", expect_pass=False)["wrong"]
        assert "COLUMN_UNKNOWN: unique_key names number. Expected columns of the changelog: " in (
            str(wrong.message)
        )
