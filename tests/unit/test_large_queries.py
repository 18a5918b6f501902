"""Queries that programs write: planning them takes time in proportion to their size.

Each is taken from its text to the statements of an incremental refresh, with changes in all of
its sources unless a test says otherwise.
"""

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.engine_time import Changed, maintenance_of, statements

from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import Plan, UnionAll, walk
from spark_dynamic.plan.types import with_union_types
from spark_dynamic.refresh.incremental import Work, incremental_statement
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.dialect import parsed, rendered
from spark_dynamic.sql.guard import read_explanation
from spark_dynamic.sql.pin import Query, pinned
from spark_dynamic.sql.references import Unreadable, find_references
from spark_dynamic.sql.resolve import resolve
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column, Relation, ViewText

SCHEMA = "shop"
# Measured: 0.1 to 0.9 seconds. The bound leaves room for slow and busy machines.
SECONDS = 5
MEGABYTES = 100


class SameColumns(dict[TableName, tuple[Column, ...]]):
    """All tables have the same columns."""

    def __missing__(self, table: TableName) -> tuple[Column, ...]:
        names = {"id": "int", "k": "int", "amount": "decimal(10,2)", "name": "string"}
        return tuple(Column(name, type) for name, type in names.items())


TABLES = SameColumns()


def unions(n: int) -> str:
    return "\nUNION ALL\n".join(f"SELECT id, k + {i} AS k, name FROM shop.t{i}" for i in range(n))


def conjuncts(n: int) -> str:
    parts = " AND ".join(f"(k <> {i} OR amount > {i})" for i in range(n))
    return f"SELECT id, name FROM shop.t WHERE {parts}"


def joins(n: int) -> str:
    parts = " ".join(f"JOIN shop.t{i} ON t{i - 1}.k = t{i}.id" for i in range(1, n))
    return f"SELECT t0.id, t0.name FROM shop.t0 {parts}"


def nested(n: int) -> str:
    query = "SELECT id, k, amount FROM shop.t"
    for i in range(n):
        query = f"SELECT id, k + k AS k, amount FROM (\n{query}\n) AS q WHERE k > {i}"
    return query


def nested_joins(n: int) -> str:
    query = "SELECT id, k FROM shop.t"
    for i in range(n):
        query = f"SELECT q.id, q.k + t{i}.k AS k FROM (\n{query}\n) AS q JOIN shop.t{i} USING (id)"
    return query


def nested_unions(n: int) -> str:
    query = "SELECT id, k FROM shop.t"
    for i in range(n):
        query = (
            f"SELECT id, k + 1 AS k FROM (\n{query}\n) AS q WHERE k > {i}\n"
            f"UNION ALL SELECT id, k FROM shop.t{i}"
        )
    return query


def common_tables(n: int) -> str:
    parts = [f"c{i} AS (SELECT id, k + k AS k FROM c{i - 1} WHERE k > {i})" for i in range(1, n)]
    return f"WITH c0 AS (SELECT id, k FROM shop.t), {', '.join(parts)} SELECT * FROM c{n - 1}"


def summands(n: int) -> str:
    return f"SELECT id, {' + '.join(f'k * {i}' for i in range(n))} AS k FROM shop.t"


def groups(n: int) -> str:
    sums = ", ".join(f"sum(amount * {i}) AS s{i}" for i in range(n))
    having = " AND ".join(f"sum(amount * {i}) > 0" for i in range(n))
    return f"SELECT k, {sums} FROM shop.t GROUP BY k HAVING {having}"


SHAPES: dict[Callable[[int], str], int] = {
    unions: 200,
    conjuncts: 600,
    nested: 60,
    nested_joins: 20,
    nested_unions: 20,
    common_tables: 60,
    summands: 600,
    groups: 200,
}


def seconds(work: Callable[[], Any]) -> float:
    parsed.cache_clear()
    gc.collect()
    gc.disable()
    begin = time.process_time()
    try:
        work()
        return time.process_time() - begin
    finally:
        gc.enable()


@pytest.mark.parametrize(("shape", "size"), SHAPES.items(), ids=[s.__name__ for s in SHAPES])
def test_a_large_query_is_planned_in_little_time(shape: Callable[[int], str], size: int) -> None:
    assert sys.getrecursionlimit() == 1000
    text = shape(size)
    assert seconds(lambda: statements(text, TABLES)) < SECONDS


@pytest.mark.parametrize("shape", [unions, nested, nested_joins, nested_unions])
def test_a_large_query_is_planned_in_little_memory(shape: Callable[[int], str]) -> None:
    tracemalloc.start()
    try:
        assert statements(shape(SHAPES[shape]), TABLES)
        assert tracemalloc.get_traced_memory()[1] < MEGABYTES * 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [unions, conjuncts, common_tables, summands, groups])
def test_twice_as_large_a_query_takes_about_twice_as_long(shape: Callable[[int], str]) -> None:
    texts = shape(SHAPES[shape] // 2), shape(SHAPES[shape])
    half, whole = (
        min(seconds(lambda text=text: statements(text, TABLES)) for _ in range(4))
        for text in texts
    )
    assert whole < 3 * half


def joined_statement(n: int, changed: int) -> str:
    """Return the statement after changes in some of n joined tables."""
    text = joins(n)
    query = Query(text, find_references(text, SCHEMA), {})
    versions = dict.fromkeys(query.tables(), 2)
    tables = [TableName(SCHEMA, f"t{i}") for i in range(changed)]
    intervals = {table: Interval(table, 1, 2, Kind.CHANGES) for table in tables}
    maintenance = maintenance_of(query, TABLES, versions)
    work = Work(maintenance, TableName(SCHEMA, "r__dyn"), 7, 8, intervals, versions)
    with incremental_statement(work, Changed()) as write:
        assert write is not None
        return write.statement


def test_two_hundred_joins_follow_changes_in_a_few_tables() -> None:
    assert seconds(lambda: joined_statement(200, 3)) < SECONDS


def test_changes_in_all_of_two_hundred_joined_tables_are_refused_in_little_time() -> None:
    """The delta has a term for each of them, and each term reads all."""

    def refuse() -> None:
        with pytest.raises(NotIncremental, match="DELTA_TOO_LARGE"):
            joined_statement(200, 200)

    assert seconds(refuse) < SECONDS


def doubling_groups(n: int) -> str:
    query = "SELECT id, k FROM shop.t"
    for _ in range(n):
        query = f"SELECT k AS id, count(*) + max(id) AS k FROM (\n{query}\n) AS q GROUP BY k"
    return query


def doubling_common_tables(n: int) -> str:
    parts = [f"c{i} AS (SELECT * FROM c{i - 1} UNION ALL SELECT * FROM c{i - 1})"
             for i in range(1, n)]  # fmt: skip
    return f"WITH c0 AS (SELECT id, k FROM shop.t), {', '.join(parts)} SELECT * FROM c{n - 1}"


def doubling_aliases(n: int) -> str:
    items = [f"a{i - 1} + a{i - 1} AS a{i}" for i in range(1, n)]
    return f"SELECT k AS a0, {', '.join(items)} FROM shop.t"


def doubling_values_of_groups(n: int) -> str:
    query = "SELECT k, count(*) AS n FROM shop.t GROUP BY k"
    for _ in range(n):
        query = f"SELECT k, n + n AS n FROM (\n{query}\n) AS q"
    return query


@pytest.mark.parametrize(
    "shape",
    [doubling_groups, doubling_common_tables, doubling_aliases, doubling_values_of_groups],
)
def test_what_doubles_with_every_step_is_refused_before_it_is_large(
    shape: Callable[[int], str],
) -> None:
    def refuse() -> None:
        with pytest.raises(NotIncremental, match="DELTA_TOO_LARGE"):
            statements(shape(40), TABLES)

    assert seconds(refuse) < SECONDS


def test_views_that_double_with_every_step_are_not_written_out() -> None:
    def lookup(name: TableName) -> Relation | None:
        number = int(name.name[1:])
        below = f"v{number - 1}" if number > 1 else "t0"
        view = ViewText(f"select * from {below} a, {below} b", SCHEMA, ("id",), {})
        columns = (Column("id", "int"),)
        return Relation(name, columns, "delta", "", "", view=view if name.name[0] == "v" else None)

    with pytest.raises(Unreadable, match="names tables more than 2,000 times"):
        resolve("select * from v40", SCHEMA, lookup, {})
    few = resolve("select * from v5", SCHEMA, lookup, {})
    assert few.mentions == 32 and pinned(few, {TableName(SCHEMA, "t0"): 7}).count("OF 7") == 32


@pytest.mark.parametrize("shape", [unions, conjuncts, joins, nested])
def test_a_large_query_is_rendered_for_spark_to_judge(shape: Callable[[int], str]) -> None:
    size = SHAPES.get(shape, 200)
    assert seconds(lambda: rendered(shape(size))) < SECONDS


def explanation(n: int) -> str:
    """Return what Spark explains of a union of n branches."""
    lines = [f"{':  ' * 3}:- Project [id#{7 * i}, (k#{7 * i + 1} + {i}) AS k#{7 * i + 2}]\n"
             f"{':  ' * 3}:  +- Filter {'(' * n}isnotnull(k#{7 * i + 1}) AND (k > 1){')' * n}\n"
             f"{':  ' * 3}:     +- Relation spark_catalog.shop.t{i}"
             f"[id#{7 * i},k#{7 * i + 1},name#{7 * i + 3}] parquet" for i in range(n)]  # fmt: skip
    tree = "Union false, false\n" + "\n".join(lines)
    titles = ("Parsed Logical Plan", "Analyzed Logical Plan", "Optimized Logical Plan")
    sections = [f"== {title} ==\nid: int, k: int\n{tree}\n" for title in titles]
    return "\n".join([*sections, "== Physical Plan ==\n"])


def test_what_spark_says_of_a_large_query_is_read_in_little_time() -> None:
    text = explanation(300)
    assert seconds(lambda: read_explanation(text)) < SECONDS


def typed(text: str, types: dict[int, str]) -> tuple[Plan, int]:
    """Return a chain with the types of its beginnings, and how often these were asked for."""
    query = bind(Query(text, find_references(text, SCHEMA), {}), SCHEMA, lambda t: TABLES[t])
    asked = []

    def describe(plan: Plan) -> tuple[Column, ...]:
        assert isinstance(plan, UnionAll)
        asked.append(len(plan.branches))
        widest = max(number for number in types if number <= len(plan.branches))
        return tuple(Column(id, types[widest]) for id in plan.columns)

    return with_union_types(query.plan, describe), len(asked)


def test_a_chain_of_unions_of_the_same_types_is_one_union() -> None:
    plan, asked = typed(unions(200), {2: "int"})
    [union] = [node for node in walk(plan) if isinstance(node, UnionAll)]
    assert len(union.branches) == 200 and asked == 2


def test_a_chain_of_unions_ends_where_its_types_change() -> None:
    """Spark casts a value to each of them in turn, and not every cast can be left out."""
    plan, asked = typed(unions(200), {2: "date", 90: "timestamp", 91: "string"})
    found = [node for node in walk(plan) if isinstance(node, UnionAll)]
    assert [(len(node.branches), node.types[0]) for node in found] == [
        (111, "string"),
        (2, "timestamp"),
        (89, "date"),
    ]
    assert found[0].branches[0] is found[1] and found[1].branches[0] is found[2]
    assert len({id for node in found for id in node.ids}) == 9
    assert asked < 20
