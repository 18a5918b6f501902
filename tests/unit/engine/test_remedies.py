"""What the remedies say to write instead has a delta, and gives the same rows."""

from collections import Counter
from typing import Any

import duckdb
import pytest
import sqlglot

from spark_dynamic.delta.differentiate import differentiate
from spark_dynamic.delta.facts import Changes
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import Query, scans
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.dialect import SparkDynamic
from spark_dynamic.sql.pin import Query as Text
from spark_dynamic.sql.references import find_references
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column

ROWS = {
    "t": "(1, 1), (1, 1), (1, 2), (2, NULL), (NULL, 3), (NULL, 3), (4, 4)",
    "u": "(1, 5), (1, 6), (2, NULL), (NULL, 3), (5, 5)",
}


def read(sql: str) -> Query:
    def columns_of(table: TableName) -> tuple[Column, ...]:
        return (Column("a", "int"), Column("b", "int"))

    return bind(Text(sql, find_references(sql, "shop"), {}), "shop", columns_of)


def rows_of(sql: str) -> Counter[Any]:
    with duckdb.connect() as connection:
        for name, values in ROWS.items():
            connection.execute(f"CREATE TABLE {name} (a int, b int)")
            connection.execute(f"INSERT INTO {name} VALUES {values}")
        [text] = sqlglot.transpile(sql, read=SparkDynamic, write="duckdb")
        return Counter(connection.execute(text).fetchall())


@pytest.mark.parametrize(
    ("code", "refused", "instead"),
    [
        ("DISTINCT", "select distinct a, b from t", "select a, b from t group by all"),
        (
            "SEMI_JOIN",
            "select t.a, t.b from t left semi join u on t.a = u.a",
            "select t.a, t.b from t join (select a from u group by a) as k on t.a = k.a",
        ),
        (
            "SET_OPERATION",
            "select a, b from t union select a, b from u",
            "select a, b from (select a, b from t union all select a, b from u) group by all",
        ),
        (
            "SUBQUERY",
            "select a, b from t where a in (select a from u)",
            "select t.a, t.b from t join (select a from u group by a) as k on t.a = k.a",
        ),
        (
            "SUBQUERY",
            "select a, b from t where b < (select max(b) from u)",
            "select t.a, t.b from t cross join (select max(b) as best from u) where t.b < best",
        ),
        (
            "GROUPING_SETS",
            "select a, b, count(*) as n from t group by rollup (a, b)",
            "select a, b, count(*) as n from t group by a, b "
            "union all select a, null as b, count(*) as n from t group by a "
            "union all select null as a, null as b, count(*) as n from t",
        ),
        (
            "AGGREGATE_DISTINCT",
            "select a, count(distinct b) as n, sum(distinct b) as s from t group by a",
            "select a, count(b) as n, sum(b) as s from (select a, b from t group by a, b) "
            "group by a",
        ),
    ],
)
def test_what_is_written_instead(code: str, refused: str, instead: str) -> None:
    with pytest.raises(NotIncremental) as error:
        read(refused)
    assert error.value.reason.code == code
    plan = read(instead).plan
    assert differentiate(plan, {scan.table: Changes() for scan in scans(plan)}) is not None
    assert rows_of(instead) == rows_of(refused)
