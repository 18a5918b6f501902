"""Comparisons of char columns, with the padding that Spark gives them written out."""

import pytest

from spark_dynamic.names import TableName
from spark_dynamic.plan.char_padding import with_padding
from spark_dynamic.plan.nodes import State
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.char_columns import are_known, read_char_columns
from spark_dynamic.sql.pin import Query
from spark_dynamic.sql.references import find_references
from spark_dynamic.sql.write import Relation, Writer
from spark_dynamic.warehouse import Column

COLUMNS = {
    "t": (Column("id", "int"), Column("c", "char(5)"), Column("s", "string")),
    "u": (Column("id", "int"), Column("d", "char(3)")),
}


class Tables:
    def relation(self, table: TableName, state: State) -> Relation:
        return Relation(table.name)


def written(sql: str) -> str:
    query = bind(Query(sql, find_references(sql, "s"), {}), "s", lambda t: COLUMNS[t.name])
    text = Writer(Tables()).select(with_padding(query).plan).sql
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("condition", "padded"),
    [
        ("c = 'ab'", "`c` = RPAD('ab', 5, ' ')"),
        ("'ab' <> (c)", "RPAD('ab', 5, ' ') <> (`c`)"),
        ("c <=> 'ab'", "`c` IS NOT DISTINCT FROM RPAD('ab', 5, ' ')"),
        ("c = 'abcde'", "`c` = 'abcde'"),
        ("c < 'abcdefg'", "RPAD(`c`, 7, ' ') < 'abcdefg'"),
        ("c IN ('a', 'abcdef')", "RPAD(`c`, 6, ' ') IN (RPAD('a', 6, ' '), 'abcdef')"),
        ("NOT (id > 1 OR c = 'ab')", "NOT (`id` > 1 OR `c` = RPAD('ab', 5, ' '))"),
        ("CASE c WHEN 'a' THEN c = 'b' END", "CASE WHEN `c` = RPAD('a', 5, ' ') THEN `c` = RPAD("),
        ("s = 'ab'", "`s` = 'ab'"),
        ("c = s", "`c` = `s`"),
        ("upper(c) = 'ab'", "UPPER(`c`) = 'ab'"),
        ("c BETWEEN 'a' AND 'b'", "`c` BETWEEN 'a' AND 'b'"),
        ("c = concat('a', 'b')", "`c` = CONCAT('a', 'b')"),
    ],
)
def test_the_shorter_side_of_a_comparison_is_padded(condition: str, padded: str) -> None:
    assert padded in written(f"select id from t where {condition}")


def test_columns_of_different_lengths_are_padded_to_the_longer_one() -> None:
    assert "ON `c_2` = RPAD(`d_5`, 5, ' ')" in written("select t.id from t join u on c = d")


def test_a_union_has_the_length_of_its_first_branch() -> None:
    for first, second, length in (("c", "d", 5), ("d", "c", 3)):
        one, other = ("t", "u") if first == "c" else ("u", "t")
        union = f"select {first} as x from {one} union all select {second} from {other}"
        assert f"RPAD('a', {length}, ' ')" in written(f"select x from ({union}) where x = 'a'")


def test_a_key_of_groups_keeps_its_length_and_an_extreme_does_not() -> None:
    sql = "select c, max(c) as m from t group by c having c = 'ab' and max(c) <> 'ab'"
    assert "`c_2` = RPAD('ab', 5, ' ') AND `max_4` <> 'ab'" in written(sql)


PADDED = "static_invoke(CharVarcharCodegenUtils.readSidePadding({}#1{}, 3)){} AS {}#2"


def plan(column: str, field: str = "", end: str = "", table: str = "spark_catalog.s.t") -> str:
    padded = PADDED.format(column, field, end, column)
    return f"Project [{column}#2]\n+- Project [id#0, {padded}]\n   +- Relation {table}[{column}#1]"


def test_what_spark_pads_as_it_reads_has_the_type() -> None:
    assert read_char_columns(plan("c")) == {"s.t": {"c": "char(3)"}}
    assert read_char_columns("Project [c#1]\n+- Relation spark_catalog.s.t[c#1] parquet") == {}
    assert are_known(read_char_columns(plan("c")))


def test_what_is_inside_of_another_type_or_of_a_table_without_name_is_not_known() -> None:
    assert not are_known(read_char_columns(plan("n", ".a", ", b)")))
    assert not are_known(read_char_columns(plan("c", table="")))
    assert not are_known(read_char_columns("Filter readSidePadding(c#1, 3)\n+- LocalRelation"))
