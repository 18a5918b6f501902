"""Random queries over random changes, end to end: dbt, Spark, Delta.

Every seed is one project: a few tables, several models over them, and rounds of random DML with
a `dbt run` after each. `FUZZ_SEEDS=1,2,3` runs other seeds than the fixed one.
"""

import os
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fuzz.dml import DML, kind_of, random_statements
from fuzz.project import CI_SEED, MODELS, random_project
from fuzz.settings import PROFILE, Settings, told_by
from tests.bags import bag
from tests.conftest import SMALL_AND_MANY
from tests.functional.refreshes import actions, assert_equals_query, dbt

_TABLE = re.compile(r"(\bFROM|\bJOIN|,) +(t\d)\b")
_PINNED = re.compile(r" VERSION AS OF \d+")
_BUILT = re.compile(r"CREATE TABLE [^\n]*\n(?:[^\n]*\n)*?AS (SELECT .*)", re.DOTALL)
# Each copy of a row has an identity of its own; the rest of the storage follows from the query.
_OWN = ("__dyn_refresh", "__dyn_row")
_SEEDS = os.environ.get("FUZZ_SEEDS", str(CI_SEED)).split(",")
_HAPPENED: set[str] = set()


@dataclass
class Stored:
    """A model's storage as it was last seen."""

    storage: str
    # The query that built it, over the newest versions.
    build: str
    columns: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    version: int = -1


class Fuzzed:
    """One seed."""

    seed = 0

    @pytest.fixture(scope="class")
    def random_project(self):
        print(f"seed {self.seed}")
        return random_project(self.seed)

    @pytest.fixture(scope="class")
    def models(self, random_project):
        config = "{{ config(materialized='dynamic_table', refresh_mode='incremental') }}\n"
        table = r"\1 {{ target.schema }}.\2"
        texts = random_project.texts | random_project.spares
        found = {f"{name}.sql": config + _TABLE.sub(table, sql) for name, sql in texts.items()}
        told = "{{ config(materialized='dynamic_table') }}\n" + told_by("{{ target.schema }}.t1")
        return found | {"told.sql": told}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self):
        parameters = SMALL_AND_MANY | PROFILE
        return {"type": "spark_dynamic", "threads": 2, "server_side_parameters": parameters}

    def test_every_refresh_is_right(self, project, random_project):
        self.fill(project, random_project)
        texts = self.built(random_project)
        stored = {name: self.stored(name) for name in texts}
        self.check(project, texts, stored)
        cases, used, changed = 0, set(), set()
        for statements in random_project.rounds:
            for statement in statements:
                project.run_sql(statement)
                _HAPPENED.add(kind_of(statement))
            before = {name: one.rows for name, one in stored.items()}
            found = actions(dbt("run", "--select", *texts))
            assert set(found) == set(texts), found
            assert set(found.values()) <= {"INCREMENTAL", "NO_DATA"}, found
            self.check(project, texts, stored)
            cases += len(found)
            used |= {name for name, action in found.items() if action == "INCREMENTAL"}
            moved = {name for name, one in stored.items() if one.rows != before[name]}
            assert moved.isdisjoint(name for name in found if found[name] == "NO_DATA"), found
            changed |= moved
            again = actions(dbt("run", "--select", *texts))
            assert again == dict.fromkeys(texts, "NO_DATA"), again
        print(f"{cases} cases, {len(used)} models incremental, {len(changed)} changed")
        assert cases >= 20
        # Chance leaves some sources, and so some models, as they are.
        assert len(used) >= (MODELS if self.seed == CI_SEED else MODELS // 2 + 1)

    def fill(self, project, random_project) -> None:
        """Make the tables as they are at first."""
        feed = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
        for number, (name, columns) in enumerate(random_project.declared.items()):
            # Every other table has partitions, the first one too.
            form = "using delta" if number % 2 else "using delta partitioned by (k)"
            project.run_sql(f"create or replace table {{schema}}.{name} ({columns}) {form} {feed}")
        for statement in random_project.fill:
            project.run_sql(statement)

    def test_a_changed_setting_is_followed(self, project, random_project, monkeypatch):
        rng, settings = random.Random(self.seed), Settings()
        self.fill(project, random_project)
        table = random_project.tables["t1"]
        dbt("run", "--select", "told")
        # One that is sure to be another, and some more or less.
        for ansi in (False, None, None, None):
            before = settings
            settings = Settings(ansi) if ansi is not None else settings.changed(rng)
            for key, value in settings.environment.items():
                monkeypatch.setenv(key, value)
            for statement in random_statements(rng, "{schema}.t1", table, 2):
                project.run_sql(statement)
            [action] = actions(dbt("run", "--select", "told")).values()
            assert ("SETTINGS_CHANGED" in action) is (settings != before), action
            assert_equals_query(project, "told", settings.wanted("{schema}.t1"))

    def built(self, random_project) -> dict[str, str]:
        """Build the models; spare ones in place of those that types rule out."""
        texts: dict[str, str] = {}
        spares = dict(random_project.spares)
        wanted = dict(random_project.texts)
        while wanted:
            results = dbt("run", "--select", *wanted, expect_pass=None)
            assert set(actions(results).values()) <= {"FULL/INITIAL_BUILD"}, actions(results)
            for name, sql in wanted.items():
                if results[name].status == "error":
                    message = results[name].message
                    assert "cannot be refreshed incrementally" in message, message
                else:
                    texts[name] = sql
            wanted = {name: spares.pop(name) for name in list(spares)[: MODELS - len(texts)]}
        assert len(texts) == MODELS, random_project.spares
        return texts

    def stored(self, name: str) -> Stored:
        """Return what is known of a storage before it was looked at."""
        statements = Path(f"target/run/test/models/{name}.sql").read_text("utf-8")
        [build] = [found[1] for one in statements.split(";\n\n") if (found := _BUILT.match(one))]
        return Stored(f"{{schema}}.{name}__dyn", _PINNED.sub("", build.removesuffix(";")))

    def check(self, project, texts: dict[str, str], stored: dict[str, Stored]) -> None:
        for name, sql in texts.items():
            assert_equals_query(project, name, _TABLE.sub(r"\1 {schema}.\2", sql))
            self.check_storage(project, stored[name])

    def check_storage(self, project, stored: Stored) -> None:
        """Hidden columns are what a rebuild makes of them, no identity is there twice."""
        if not stored.columns:
            described = project.run_sql(f"describe table {stored.storage}", fetch="all")
            stored.columns = [row[0] for row in described if row[0] and row[0][0] != "#"]
        names = ", ".join(f"`{column}`" for column in stored.columns)
        both = (
            f"select true, {names} from {stored.storage} union all "
            f"select false, {names} from ({stored.build})"
        )
        rows = [tuple(row) for row in project.run_sql(both, fetch="all")]
        kept = [place for place, name in enumerate(stored.columns, 1) if name not in _OWN]
        found, again = (
            bag([row[place] for place in kept] for row in rows if row[0] is is_stored)
            for is_stored in (True, False)
        )
        assert found == again, f"{found - again} instead of {again - found}\n{stored}"
        whole = bag(row[1:] for row in rows if row[0])
        if "__dyn_row" in stored.columns:
            assert set(whole.values()) <= {1}, f"one identity for two rows\n{stored}"
        self.check_feed(project, stored, names, whole)

    def check_feed(self, project, stored: Stored, names: str, whole: Counter[str]) -> None:
        """The old rows and the change feed make the new rows; no row leaves only to return."""
        feed = f"table_changes('{stored.storage}', 0)"
        rows = [
            tuple(row)
            for row in project.run_sql(
                f"select _commit_version, _change_type, {names} from {feed} "
                f"where _commit_version > {stored.version}",
                fetch="all",
            )
        ]
        inserts = bag(
            row[:1] + row[2:] for row in rows if row[1] in ("insert", "update_postimage")
        )
        deletes = bag(row[:1] + row[2:] for row in rows if row[1] in ("delete", "update_preimage"))
        assert not inserts & deletes, f"nothing changed: {inserts & deletes}\n{stored}"
        added, gone = (
            bag(row[2:] for row in rows if row[1] in kinds)
            for kinds in (("insert", "update_postimage"), ("delete", "update_preimage"))
        )
        assert stored.rows + added == whole + gone, f"{stored.rows} {added} {whole} {gone}"
        stored.rows = whole
        stored.version = max([stored.version, *(row[0] for row in rows)])


for _seed in _SEEDS:
    globals()[f"TestSeed{_seed}"] = type(f"TestSeed{_seed}", (Fuzzed,), {"seed": int(_seed)})


def test_every_kind_of_change_has_happened():
    assert set(DML) == _HAPPENED
