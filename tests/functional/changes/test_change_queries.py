"""`changes()`, `upserts()` and `integrate()` in models, tests and `dbt show`."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from tests.functional.refreshes import actions, dbt, rows

FEED = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
TABLE = "{{ config(materialized='table') }} "
SHOWN = "change_action, change_is_update, change_row_id"


def version(project: Any, table: str) -> int:
    history = project.run_sql(f"describe history {{schema}}.{table} limit 1", fetch="all")
    return int(history[0][0])


def error(result: Any) -> str:
    return str(result.message)


class TestPeople:
    """Listings 1 to 5 of the paper through dbt, and what stands around a change query."""

    @pytest.fixture(scope="class")
    def models(self):
        people = "ref('people')"
        return {
            "people.sql": "{{ config(materialized='incremental') }} "
            "select 0 as id, 'x' as name where false",
            "net.sql": TABLE
            + f"select * from {{{{ changes({people}, var('since'), unique_key='id') }}}}",
            "log.sql": TABLE
            + f"select * from {{{{ changes({people}, var('since'), mode='redo_log', "
            "unique_key='id') }}",
            "appended.sql": TABLE
            + f"select * from {{{{ changes({people}, var('since'), mode='append_only') }}}}",
            # Two bounds and a direct read side by side, each with its own contents.
            "side_by_side.sql": TABLE
            + f"select 'long' as read, id, change_action from {{{{ changes({people}, "
            "var('since')) }} union all "
            f"select 'short', id, change_action from {{{{ changes({people}, var('later')) }}}} "
            f"union all select 'direct', id, 'now' from {{{{ {people} }}}}",
            # Changes beside the contents, in one SELECT; and changes that are added up.
            "mixed.sql": TABLE + "select id, sum(change_diff) as diff, "
            f"(select count(*) from {{{{ {people} }}}}) as everybody from "
            f"{{{{ changes({people}, var('since'), mode='redo_log') }}}} group by id",
            # What was before the bound is the contents there, without a history.
            "collapsed.sql": TABLE + f"select * from {{{{ changes({people}, var('later'), "
            "mode='redo_log', initial_rows=true) }}",
            "owner_and_items.sql": "{{ config(materialized='view') }} select name, item from "
            "{{ target.schema }}.owners o join {{ target.schema }}.items i on o.id = i.oid",
            "owned.sql": TABLE + "select * from {{ changes(ref('owner_and_items'), var('since'), "
            "row_keys={target.schema ~ '.owners': 'id', 'items': 'id'}) }}",
            "rebuilt.sql": TABLE + f"select * from {{{{ integrate(changes({people}, var('since'), "
            "mode='redo_log', initial_rows=true)) }}",
            "rebuilt_by_key.sql": TABLE
            + f"select * from {{{{ integrate(changes({people}, var('since'), "
            "mode='redo_log', initial_rows=true), unique_key='id') }}",
            "upserted.sql": TABLE
            + f"select * from {{{{ upserts({people}, var('since'), unique_key='id') }}}}",
            "upserted_each.sql": TABLE + f"select * from {{{{ upserts({people}, var('since'), "
            "unique_key='id', mode='redo_log') }}",
            # The next commit only inserts.
            "appended_upserts.sql": TABLE
            + f"select * from {{{{ upserts({people}, var('since'), until=var('next', 'now')) }}}}",
            "everything.sql": TABLE + f"select * from {{{{ integrate(changes({people}, "
            "'before the first change', until='now', mode='redo_log')) }}",
            "maintained.sql": "{{ config(materialized='dynamic_table') }} "
            f"select id from {{{{ changes({people}, var('since')) }}}}",
            "taken.sql": TABLE + "select * from {{ changes('select id as change_version from ' ~ "
            f"{people}, var('since')) }}}}",
            "keyless.sql": TABLE + f"select * from {{{{ upserts({people}, var('since')) }}}}",
            "counted.sql": TABLE + "select change_action, count(*) as n from "
            "{{ changes(ref('people'), 1) }} group by change_action",
            "schema.yml": UNIT_TEST,
        }

    @pytest.fixture(scope="class")
    def tests(self):
        return {
            "nobody_left.sql": "select * from {{ changes(ref('people'), var('since')) }} "
            "where change_action = 'DELETE' and id > 100"
        }

    @pytest.fixture(scope="class")
    def since(self, project):
        """Listings 1 and 2; the version between them, and the one before the last step."""
        dbt("run", "--select", "people")
        project.run_sql("insert into {schema}.people values (1, 'Jeff'), (2, 'Donny')")
        first = version(project, "people")
        for statement in (
            "insert into {schema}.people values (3, 'Walter'), (4, 'Maud'), (5, 'Uli')",
            "update {schema}.people set name = 'Jeffrey' where id = 1",
            "update {schema}.people set name = 'Maude' where id = 4",
            "delete from {schema}.people where id in (2, 5)",
        ):
            project.run_sql(statement)
        return first

    def run(self, first: int, *models: str, **more: Any) -> dict[str, Any]:
        given = json.dumps({"since": first, "next": first + 1, "later": first + 3, **more})
        return dbt("run", "--vars", given, "--select", *models, expect_pass=None)

    def test_listings_3_to_5(self, project, since):
        self.run(since, "net", "log", "appended")
        assert rows(
            project, "select id, name, change_action, change_is_update from {schema}.net"
        ) == [
            (1, "Jeff", "DELETE", True),
            (1, "Jeffrey", "INSERT", True),
            (2, "Donny", "DELETE", False),
            (3, "Walter", "INSERT", False),
            (4, "Maude", "INSERT", False),
        ]
        log = project.run_sql(
            "select id, name, change_action, change_is_update from {schema}.log "
            "order by change_timestamp, change_table, change_version, id, change_diff",
            fetch="all",
        )
        assert [tuple(row) for row in log] == [
            (3, "Walter", "INSERT", False),
            (4, "Maud", "INSERT", False),
            (5, "Uli", "INSERT", False),
            (1, "Jeff", "DELETE", True),
            (1, "Jeffrey", "INSERT", True),
            (4, "Maud", "DELETE", True),
            (4, "Maude", "INSERT", True),
            (2, "Donny", "DELETE", False),
            (5, "Uli", "DELETE", False),
        ]
        assert rows(project, "select id, name, change_action from {schema}.appended") == [
            (3, "Walter", "INSERT"), (4, "Maud", "INSERT"), (5, "Uli", "INSERT"),
        ]  # fmt: skip
        ids = "select count(distinct change_row_id), count(*) from {schema}.net"
        assert rows(project, ids) == [(4, 5)]

    def test_every_read_sees_its_own_contents(self, project, since):
        self.run(since, "side_by_side", "mixed", "collapsed")
        found = rows(project, "select read, id, change_action from {schema}.side_by_side")
        assert [row[1:] for row in found if row[0] == "direct"] == [
            (1, "now"), (3, "now"), (4, "now"),
        ]  # fmt: skip
        assert [row[1:] for row in found if row[0] == "short"] == [(2, "DELETE"), (5, "DELETE")]
        assert [row[1:] for row in found if row[0] == "long"] == [
            (1, "DELETE"), (1, "INSERT"), (2, "DELETE"), (3, "INSERT"), (4, "INSERT"),
        ]  # fmt: skip
        assert rows(project, "select id, diff, everybody from {schema}.mixed") == [
            (1, 0, 3), (2, -1, 3), (3, 1, 3), (4, 1, 3), (5, 0, 3),
        ]  # fmt: skip
        collapsed = "select name, change_diff, change_version from {schema}.collapsed"
        assert rows(project, collapsed) == sorted(
            [(name, 1, since + 3) for name in ("Donny", "Jeffrey", "Maude", "Uli", "Walter")]
            + [(name, -1, since + 4) for name in ("Donny", "Uli")],
            key=repr,
        )

    def test_listings_6_to_8(self, project):
        for name, columns, values in (
            ("owners", "id int, name string",
             "(1, 'Jeffrey'), (2, 'Donny'), (3, 'Walter'), (4, 'Maude')"),
            ("items", "id int, oid int, item string, desc string",
             "(11, 2, 'Ball', 'Bowling'), (12, 2, 'Surfboard', 'Yater'), (13, 1, 'Car', '1973'), "
             "(14, 1, 'Rug', 'Classic'), (15, 4, 'Autobahn LP', '')"),
        ):  # fmt: skip
            project.run_sql(f"create table {{schema}}.{name} ({columns}) {FEED}")
            project.run_sql(f"insert into {{schema}}.{name} values {values}")
        then = str(datetime.now(UTC))
        for statement in (
            "update {schema}.items set item = 'Ford' where id = 13",
            "update {schema}.items set oid = 4 where id = 14",
            "update {schema}.items set desc = 'Techno' where id = 15",
            "delete from {schema}.owners where id = 2",
        ):
            project.run_sql(statement)
        self.run(0, "owner_and_items", "owned", since=then)
        shown = "select name, item, change_action, change_is_update from {schema}.owned"
        assert rows(project, shown) == [
            ("Donny", "Ball", "DELETE", False),
            ("Donny", "Surfboard", "DELETE", False),
            ("Jeffrey", "Car", "DELETE", True),
            ("Jeffrey", "Ford", "INSERT", True),
            ("Jeffrey", "Rug", "DELETE", False),
            ("Maude", "Rug", "INSERT", False),
        ]
        ids = "select count(distinct change_row_id), count(*) from {schema}.owned"
        assert rows(project, ids) == [(5, 6)]

    def test_a_changelog_becomes_the_table_again(self, project, since):
        models = ("rebuilt", "rebuilt_by_key", "everything", "upserted", "upserted_each")
        self.run(since, *models, "appended_upserts")
        now = rows(project, "select id, name from {schema}.people")
        assert rows(project, "select id, name from {schema}.rebuilt") == now
        assert rows(project, "select id, name from {schema}.rebuilt_by_key") == now
        assert rows(project, "select id, name, change_action from {schema}.upserted") == [
            (1, "Jeffrey", "INSERT"), (2, "Donny", "DELETE"), (3, "Walter", "INSERT"),
            (4, "Maude", "INSERT"),
        ]  # fmt: skip
        assert rows(project, "select id, name from {schema}.everything") == now
        each = "select id, name, change_action from {schema}.upserted_each"
        assert rows(project, each) == [
            (1, "Jeffrey", "INSERT"), (2, "Donny", "DELETE"), (3, "Walter", "INSERT"),
            (4, "Maud", "INSERT"), (4, "Maude", "INSERT"), (5, "Uli", "DELETE"),
            (5, "Uli", "INSERT"),
        ]  # fmt: skip
        assert rows(project, "select id, change_action from {schema}.appended_upserts") == [
            (3, "INSERT"), (4, "INSERT"), (5, "INSERT"),
        ]  # fmt: skip

    def test_what_cannot_be_asked_says_so(self, project, since):
        results = self.run(since, "maintained", "taken", "keyless")
        assert "CHANGES_POINT_FIXED: since is " in error(results["maintained"])
        assert "CHANGE_COLUMN_TAKEN: The query has a column named change_version" in error(
            results["taken"]
        )
        assert "UPSERTS_NEED_A_KEY: " in error(results["keyless"])
        wrong = self.run(since, "net", since="the day before")
        assert "POINT_NOT_KNOWN: since is 'the day before'. Expected 'now'" in error(wrong["net"])

    def test_bounds(self, project, since):
        strict = self.run(since, "net", since="2001-01-01")
        assert "POINT_TOO_OLD: since is '2001-01-01', which is too long ago" in error(
            strict["net"]
        )
        clamped = "select * from {{ changes(ref('people'), '2001-01-01', bound='at_least') }}"
        results, _ = run_dbt_and_capture(["show", "--inline", clamped, "--output", "json"])
        assert sorted(row[0] for row in results[0].agate_table.rows) == [1, 3, 4]

    def test_dbt_show(self, project, since):
        inline = (
            f"select id, {SHOWN} from {{{{ changes('select id from ' ~ ref('people') ~ "
            f"' where id > 2', {since}) }}}}"
        )
        results = run_dbt(["show", "--inline", inline])
        assert sorted((row[0], row[1]) for row in results[0].agate_table.rows) == [
            (3, "INSERT"), (4, "INSERT"),
        ]  # fmt: skip

    def test_in_an_analysis(self, project, since):
        text = f"select id, change_action from {{{{ changes(ref('people'), {since}) }}}}"
        write_file(text, project.project_root, "analyses", "looked_at.sql")
        [result] = run_dbt(["compile", "--select", "looked_at"])
        found = rows(project, result.node.compiled_code)
        assert [id for id, _ in found] == [1, 1, 2, 3, 4]

    def test_as_a_data_test(self, project, since):
        results = run_dbt(["test", "--vars", json.dumps({"since": since, "later": since}),
                           "--select", "nobody_left"])  # fmt: skip
        assert [result.status for result in results] == ["pass"]

    def test_a_unit_test_gives_the_changes(self, project, since):
        variables = json.dumps({"since": since, "later": since})
        results = run_dbt(["test", "--select", "test_type:unit", "--vars", variables])
        assert [result.status for result in results] == ["pass"]

    def test_predicates_reach_the_scan(self, project, since):
        inline = f"select name from {{{{ changes(ref('people'), {since}) }}}} where id = 3"
        compiled = run_dbt(["compile", "--inline", inline])[0].node.compiled_code
        [(plan,)] = project.run_sql(f"explain {compiled}", fetch="all")
        assert "EqualTo(id,3)" in plan.split("PushedFilters: ")[1].split("\n")[0]


UNIT_TEST = """
unit_tests:
  - name: changes_are_given
    model: counted
    given:
      - input: ref('people')
        rows:
          - {id: 1, name: a, change_action: INSERT, change_is_update: false, change_row_id: x}
          - {id: 1, name: b, change_action: DELETE, change_is_update: false, change_row_id: y}
          - {id: 2, name: c, change_action: INSERT, change_is_update: false, change_row_id: z}
    expect:
      rows:
        - {change_action: INSERT, n: 2}
        - {change_action: DELETE, n: 1}
"""


class TestClicks:
    """The worked examples of continuous queries: clicks per user, per hour, and as a changelog."""

    @pytest.fixture(scope="class")
    def models(self):
        per_user = "select user, count(*) as clicks from {{ target.schema }}.clicks group by user"
        per_hour = (
            "select user, date_trunc('HOUR', at) as hour, count(*) as clicks "
            "from {{ target.schema }}.clicks group by user, date_trunc('HOUR', at)"
        )
        return {
            "per_user.sql": "{{ config(materialized='view') }} " + per_user,
            "per_hour.sql": "{{ config(materialized='view') }} " + per_hour,
            "hourly.sql": "{{ config(materialized='dynamic_table', refresh_mode='incremental') }} "
            + per_hour,
            "undo_redo.sql": TABLE + "select * from {{ changes(ref('per_user'), var('since'), "
            "mode='redo_log') }}",
            "redo.sql": TABLE
            + "select * from {{ upserts(ref('per_user'), var('since'), unique_key='user') }}",
            "late.sql": TABLE + "select * from {{ changes(ref('per_hour'), var('since')) }}",
            "appended.sql": TABLE + "select * from {{ changes(ref('per_user'), var('since'), "
            "mode='append_only') }}",
        }

    def test_clicks(self, project):
        project.run_sql(
            f"create table {{schema}}.clicks (user string, at timestamp, url string) {FEED}"
        )
        dbt("run", "--select", "per_user", "per_hour", "hourly")
        click = "insert into {schema}.clicks values "
        start = version(project, "clicks")
        for user, at, url in (
            ("Mary", "12:00:00", "./home"), ("Bob", "12:00:05", "./cart"),
            ("Mary", "12:00:05", "./prod?id=1"), ("Liz", "12:01:00", "./home"),
        ):  # fmt: skip
            project.run_sql(f"{click} ('{user}', timestamp'2026-01-01 {at}', '{url}')")
        variables = json.dumps({"since": start})
        found = dbt("run", "--vars", variables, "--select", "undo_redo", "redo", "hourly")
        assert actions(found) == {"hourly": "INCREMENTAL"}
        hourly = "select user, hour(hour), clicks from {schema}.hourly"
        assert rows(project, hourly) == [("Bob", 12, 1), ("Liz", 12, 1), ("Mary", 12, 2)]
        ordered = project.run_sql(
            "select user, clicks, change_action, change_is_update, change_diff "
            "from {schema}.undo_redo "
            "order by change_timestamp, change_table, change_version, change_diff",
            fetch="all",
        )
        assert [tuple(row) for row in ordered] == [
            ("Mary", 1, "INSERT", False, 1),
            ("Bob", 1, "INSERT", False, 1),
            ("Mary", 1, "DELETE", True, -1),
            ("Mary", 2, "INSERT", True, 1),
            ("Liz", 1, "INSERT", False, 1),
        ]
        assert rows(project, "select user, clicks, change_action from {schema}.redo") == [
            ("Bob", 1, "INSERT"), ("Liz", 1, "INSERT"), ("Mary", 2, "INSERT"),
        ]  # fmt: skip

        # A late record changes a window that was complete; the other windows stay.
        project.run_sql(f"{click} ('Bob', timestamp'2026-01-01 13:30:00', './next')")
        later = version(project, "clicks")
        project.run_sql(f"{click} ('Mary', timestamp'2026-01-01 12:59:59', './late')")
        found = dbt("run", "--vars", json.dumps({"since": later}), "--select", "late", "hourly")
        assert actions(found) == {"hourly": "INCREMENTAL"}
        assert rows(project, hourly) == [
            ("Bob", 12, 1), ("Bob", 13, 1), ("Liz", 12, 1), ("Mary", 12, 3),
        ]  # fmt: skip
        assert rows(
            project,
            "select user, hour(hour), clicks, change_action, change_is_update from {schema}.late",
        ) == [("Mary", 12, 2, "DELETE", True), ("Mary", 12, 3, "INSERT", True)]

        refused = dbt("run", "--vars", variables, "--select", "appended", expect_pass=False)
        assert "NOT_MONOTONIC: " in error(refused["appended"])
        assert "GROUP BY" in error(refused["appended"])
