"""A changelog by key: its last rows, found by an aggregate that the rules have."""

import random
from typing import Any

import duckdb
import pytest
from fuzz.history import duck_text
from test_sql_bind import TABLES, read

from spark_dynamic.changes.integrate import latest, summed
from spark_dynamic.errors import EngineError
from spark_dynamic.plan.nodes import Aggregate, walk
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column

LOG = (
    Column("id", "int"), Column("sent", "int"), Column("kind", "string"), Column("n", "int"),
)  # fmt: skip


def last_of(rows: list[tuple[Any, ...]], gone: str = "") -> list[tuple[Any, ...]]:
    """The definition: of rows at one place a delete is the last, then the greatest."""
    found: dict[int, tuple[Any, ...]] = {}
    for row in sorted(rows, key=lambda row: (row[1], row[2] == gone, row[2:])):
        found[row[0]] = row
    return sorted(row for row in found.values() if row[2] != gone)


@pytest.mark.parametrize("gone", ["", "closed"])
def test_the_last_row_of_each_key_stays(gone: str) -> None:
    rng = random.Random(7)
    duck = duckdb.connect()
    for _ in range(60):
        rows = [
            (*(rng.randint(1, 4) for _ in "is"), rng.choice(("open", "closed")), rng.randint(1, 3))
            for _ in range(rng.randint(1, 12))
        ]
        duck.execute("create or replace table log (id int, sent int, kind varchar, n int)")
        duck.executemany("insert into log values (?, ?, ?, ?)", rows)
        deletes = f"kind = '{gone}'" if gone else ""
        sql = duck_text(latest("log", LOG, ["ID"], ["Sent"], deletes, LOG))
        assert sorted(duck.execute(sql).fetchall()) == last_of(rows, gone)


def test_our_own_changelogs_are_in_the_order_of_their_commits() -> None:
    change = (
        Column("change_action", "string"), Column("change_version", "bigint"),
        Column("change_timestamp", "timestamp"), Column("change_table", "string"),
    )  # fmt: skip
    sql = latest("log", LOG[:1], ["id"], [], "", (*LOG, *change))
    assert sql == (
        "SELECT `id` FROM (\nSELECT `id`, max(struct(`change_timestamp` AS place_1, "
        "`change_table` AS place_2, `change_version` AS place_3, `change_action` AS place_4, "
        "coalesce(change_action = 'DELETE', false) AS is_gone)) AS __dyn_last FROM log\n"
        "GROUP BY `id`\n) WHERE NOT __dyn_last.is_gone"
    )


def test_a_changelog_without_an_order_is_refused() -> None:
    with pytest.raises(EngineError, match="CHANGELOG_NOT_ORDERED"):
        latest("log", LOG, ["id"], [], "", LOG)
    # Net changes say what happened, but not when: behind others none of them is the last.
    net = (*LOG, Column("change_action", "string"))
    with pytest.raises(EngineError, match="CHANGELOG_NOT_ORDERED.*mode='redo_log'.*added up"):
        latest("log", LOG, ["id"], [], "", net)


def plan_of(*types: str) -> Any:
    """The plan of a changelog whose last columns have these types."""
    log = [*LOG, *(Column(f"x{i}", type) for i, type in enumerate(types))]
    TABLES["log"] = {column.name: column.type for column in log}
    try:
        sql = latest("shop.log", log, ["id"], ["sent"], "kind = 'closed'", log)
        return read(f"select id, kind from (\n{sql}\n)").plan, sql
    finally:
        del TABLES["log"]


def test_it_is_an_aggregate_of_the_plan() -> None:
    plan, sql = plan_of("array<int>", "struct<a:int>")
    [aggregate] = [node for node in walk(plan) if isinstance(node, Aggregate)]
    assert [measure.function for measure in aggregate.measures] == ["max"]
    assert "hash_1" not in sql


@pytest.mark.parametrize("type", ["double", "struct<a:float>", "string collate UTF8_LCASE"])
def test_values_that_are_equal_and_look_different_are_told_apart(type: str) -> None:
    _, sql = plan_of(type, "array<int>")
    assert " AS hash_1, " in sql and " AS hash_2)) AS __dyn_last" in sql


@pytest.mark.parametrize("type", ["map<string,int>", "variant", "array<double>"])
def test_values_without_an_order_need_a_window(type: str) -> None:
    with pytest.raises(NotIncremental, match="WINDOW_FUNCTION"):
        plan_of(type)


def test_adding_up_is_refreshed_in_full_and_says_why() -> None:
    log = "(select a, 1 as change_diff from t)"
    with pytest.raises(NotIncremental, match="TABLE_FUNCTION: .*explode"):
        read(summed(log, [Column("a", "int")], has_diff=True))


def test_of_rows_at_one_place_without_an_order_the_hash_decides() -> None:
    log = (*LOG, Column("m", "map<string,int>"), Column("v", "variant"))
    sql = latest("log", log, ["id"], ["sent"], "kind = 'closed'", log)
    order = sql.partition("ORDER BY ")[2].partition(") AS __dyn_place")[0]
    ordered = (
        "`sent` DESC, coalesce(kind = 'closed', false) DESC, `id` DESC, `kind` DESC, `n` DESC"
    )
    assert order.startswith(f"{ordered}, xxhash64(0, ")
    # Both halves of the hash; a variant has none.
    assert order.count("xxhash64(") == 2 and "map_keys(`m`)" in order and "`v`" not in order


def test_rows_at_one_place_are_the_same_row_however_they_are_read() -> None:
    log = (*LOG[:2], Column("f", "array<double>"))
    sql = latest("log", log, ["id"], ["sent"], "", log)
    rows = [(1, 1, [value, 1.0]) for value in (0.0, -0.0, 2.5, 7.0)]
    found = set()
    for turn in range(4):
        duck = duckdb.connect()
        duck.execute("create table log (id int, sent int, f double[])")
        duck.executemany("insert into log values (?, ?, ?)", rows[turn:] + rows[:turn])
        found |= {str(row) for row in duck.execute(duck_text(sql)).fetchall()}
    assert len(found) == 1


def test_a_key_that_is_equal_and_looks_different_is_that_of_the_last_row() -> None:
    log = (Column("name", "string collate UTF8_LCASE"), Column("sent", "int"))
    sql = latest("log", log, ["name"], ["sent"], "", log)
    assert sql.startswith("SELECT __dyn_last.value_1 AS `name`, __dyn_last.place_1 AS `sent`")
    assert sql.endswith("GROUP BY `name`\n)")
