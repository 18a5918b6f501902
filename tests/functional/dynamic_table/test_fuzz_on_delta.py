"""Random queries over random changes, end to end: dbt, Spark, Delta.

Every seed is one project: a few tables, several models over them, and rounds of random DML with
a `dbt run` after each. `FUZZ_SEEDS=1,2,3` runs other seeds than the fixed one.
"""

import os
import random
import re

import pytest
from fuzz.case import SCHEMA, Case
from fuzz.dml import insert, random_statements
from fuzz.queries import random_query
from fuzz.schemas import Table, random_tables
from tests.functional.refreshes import actions, assert_equals_query, assert_same_rows, dbt, rows

from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.pin import Query as Text
from spark_dynamic.sql.references import find_references
from spark_dynamic.support import NotIncremental

MODELS, ROUNDS = 7, 3
_TABLE = re.compile(r"\b(FROM|JOIN|,) +(t\d)\b")
# Each copy of a row has an identity of its own; the rest of the storage follows from the query.
_OWN = {"__dyn_refresh", "__dyn_row"}


def queries(rng: random.Random, tables: dict[str, Table]) -> list[str]:
    """Return queries that can be refreshed incrementally."""
    found: list[str] = []
    case = Case(0, tables, {}, "")
    while len(found) < MODELS:
        sql = random_query(rng, tables)
        try:
            bind(Text(sql, find_references(sql, SCHEMA), {}), SCHEMA, case.columns_of)
        except NotIncremental:
            continue
        found.append(sql)
    return found


class Fuzzed:
    """One seed."""

    seed = 0

    @pytest.fixture(scope="class")
    def rng(self):
        print(f"seed {self.seed}")
        return random.Random(self.seed)

    @pytest.fixture(scope="class")
    def tables(self, rng):
        tables = random_tables(rng)
        return {name: Table(table.columns, ()) for name, table in tables.items()}

    @pytest.fixture(scope="class")
    def texts(self, rng, tables):
        return {f"model_{i}": sql for i, sql in enumerate(queries(rng, tables))}

    @pytest.fixture(scope="class")
    def models(self, texts):
        config = "{{ config(materialized='dynamic_table', refresh_mode='incremental') }}\n"
        table = r"\1 {{ target.schema }}.\2"
        return {f"{name}.sql": config + _TABLE.sub(table, sql) for name, sql in texts.items()}

    def test_every_refresh_equals_the_query(self, project, rng, tables, texts):
        feed = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
        for name, table in tables.items():
            columns = ", ".join(f"{column} {kind}" for column, kind in table.columns.items())
            project.run_sql(f"create table {{schema}}.{name} ({columns}) {feed}")
            project.run_sql(insert(rng, f"{{schema}}.{name}", table, 6))
        # Types, which only Spark knows, may still rule a query out.
        built = dbt("run", expect_pass=None)
        refused = [name for name, result in built.items() if result.status == "error"]
        for name in refused:
            assert "cannot be refreshed incrementally" in built[name].message, built[name].message
            del texts[name]
        assert len(texts) > MODELS // 2
        chosen = ["--select", *texts]
        assert set(actions(built).values()) == {"FULL/INITIAL_BUILD"}
        self.check(project, texts)
        built = {name: self.version(project, name) for name in texts}
        used: set[str] = set()
        for round_ in range(ROUNDS):
            for name, table in tables.items():
                statements = random_statements(rng, f"{{schema}}.{name}", table, 2 + round_)
                for statement in statements:
                    project.run_sql(statement)
            found = actions(dbt("run", *chosen))
            assert set(found) == set(texts) and set(found.values()) <= {"INCREMENTAL", "NO_DATA"}
            used |= {name for name, action in found.items() if action == "INCREMENTAL"}
            self.check(project, texts)
        assert len(used) >= len(texts) // 2
        assert actions(dbt("run", *chosen)) == dict.fromkeys(texts, "NO_DATA")
        self.check_storage(project, built)

    def check(self, project, texts) -> None:
        for name, sql in texts.items():
            assert_equals_query(project, name, _TABLE.sub(r"\1 {schema}.\2", sql))

    def version(self, project, name: str) -> int:
        history = project.run_sql(f"describe history {{schema}}.{name}__dyn limit 1", fetch="all")
        return int(history[0][0])

    def check_storage(self, project, built: dict[str, int]) -> None:
        """The hidden columns are what a rebuild makes of them, and the feed tells no lies."""
        before = {name: self.version(project, name) for name in built}
        dbt("run", "--full-refresh", "--select", *built)
        for name, version in before.items():
            storage = f"{{schema}}.{name}__dyn"
            described = project.run_sql(f"describe table {storage}", fetch="all")
            columns = [row[0] for row in described if row[0] and not row[0].startswith("#")]
            stable = ", ".join(f"`{c}`" for c in columns if c not in _OWN)
            newest = self.version(project, name)
            old, new = (
                f"select {stable} from {storage} version as of {v}" for v in (version, newest)
            )
            assert_same_rows(project, old, new)
            if "__dyn_hash_1" in columns:
                identity = "__dyn_hash_1, __dyn_hash_2, __dyn_refresh, __dyn_row"
                twice = f"select {identity} from {storage} version as of {version} "
                assert rows(project, f"{twice} group by {identity} having count(*) > 1") == []
            self.check_feed(project, storage, columns, built[name], version)

    def check_feed(self, project, storage: str, columns: list[str], old: int, new: int) -> None:
        """The old rows and the change feed make the new rows."""
        if old == new:
            return
        names = ", ".join(f"`{column}`" for column in columns)
        changes = f"table_changes('{storage}', {old + 1}, {new})"
        added = (
            f"select {names} from {changes} where _change_type in ('insert', 'update_postimage')"
        )
        gone = f"select {names} from {changes} where _change_type in ('delete', 'update_preimage')"
        first, last = (f"select {names} from {storage} version as of {v}" for v in (old, new))
        one, other = f"({first}) union all ({added})", f"({last}) union all ({gone})"
        assert_same_rows(project, one, other)


for _seed in os.environ.get("FUZZ_SEEDS", "11").split(","):
    globals()[f"TestSeed{_seed}"] = type(f"TestSeed{_seed}", (Fuzzed,), {"seed": int(_seed)})
