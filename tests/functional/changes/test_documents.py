"""The examples of the documents on changes and streams, as a new user would try them."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from tests.functional.refreshes import actions, assert_equals_query, dbt, rows

DOCS = Path(__file__).parents[3] / "docs"
TEXT = "".join((DOCS / name).read_text() for name in ("changes.md", "streams.md"))
MODELS = dict(re.findall(r"^```sql\n-- models/(\w+\.sql)\n(.*?)^```$", TEXT, re.DOTALL | re.M))
OPERATIONS = re.findall(r"^dbt (run-operation changes_stream_.*)$", TEXT, re.MULTILINE)
PENDING = re.search(r"`(changes\(ref\('people_stream'\).*?\}\))`", TEXT)
PEOPLE = "id,name,is_active\n1,Jeff,true\n2,Donny,true\n3,Larry,false\n"
EVENTS = "id,balance,sent_at,kind\n1,10,1,open\n2,20,1,open\n1,15,2,deposit\n"


class TestDocuments:
    @pytest.fixture(scope="class")
    def models(self):
        return dict(MODELS)

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"people.csv": PEOPLE, "account_events.csv": EVENTS}

    def shown(self, project: Any, columns: str, name: str) -> list[tuple[Any, ...]]:
        return rows(project, f"select {columns} from {{schema}}.{name}")

    def test_every_model(self, project):
        assert len(MODELS) == 6
        first = actions(dbt("build"))
        assert first == dict.fromkeys(("accounts", "changes_per_person"), "FULL/INITIAL_BUILD")
        project.run_sql("update {schema}.people set name = 'Jeffrey' where id = 1")
        project.run_sql("delete from {schema}.people where id = 2")
        project.run_sql("insert into {schema}.people values (4, 'Walter', true)")
        project.run_sql("insert into {schema}.account_events values (2, 0, 3, 'closed')")
        assert PENDING is not None
        pending = run_dbt(["show", "--inline", f"select name from {{{{ {PENDING[1]} }}}}"])
        assert len(pending[0].agate_table.rows) == 4
        # Tiny tables may be cheaper to build again.
        again = actions(dbt("run"))
        possible = {"INCREMENTAL", "INCREMENTAL/CHANGES_CHEAPER", "FULL/CHEAPER"}
        assert set(again.values()) <= possible
        assert_equals_query(project, "people_again", "select * from {schema}.people")
        assert self.shown(project, "id, balance", "accounts") == [(1, 15)]
        assert self.shown(project, "*", "people_changes") == [
            ("Donny", "DELETE", False), ("Donny", "INSERT", False), ("Jeff", "DELETE", True),
            ("Jeff", "INSERT", False), ("Jeffrey", "INSERT", True), ("Walter", "INSERT", False),
        ]  # fmt: skip
        # The table is younger than the interval, so all its rows are new.
        assert self.shown(project, "name, change_action", "changed_people") == [
            ("Jeffrey", "INSERT"), ("Larry", "INSERT"), ("Walter", "INSERT"),
        ]  # fmt: skip
        assert ("Jeff", 2) in self.shown(project, "*", "changes_per_person")

    def test_every_operation(self, project):
        assert len(OPERATIONS) == 3
        for operation in OPERATIONS:
            _, output = run_dbt_and_capture(shlex.split(operation))
            assert "people_stream" in output, output
