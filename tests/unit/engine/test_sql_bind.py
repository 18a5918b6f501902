"""Names and clauses: read as Spark reads them, or refused."""

import pytest

from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import Query, State
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.pin import Query as Text
from spark_dynamic.sql.references import find_references
from spark_dynamic.sql.write import Relation, Writer
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column

TABLES = {
    "t": {"a": "int", "b": "int", "s": "struct<f:int>", "arr": "array<int>"},
    "u": {"b": "int", "a": "int", "c": "int"},
    "v": {"c": "int", "a": "int"},
}


class Tables:
    def relation(self, table: TableName, state: State) -> Relation:
        return Relation(table.name)


def read(sql: str) -> Query:
    def columns_of(table: TableName) -> tuple[Column, ...]:
        return tuple(Column(*pair) for pair in TABLES[table.name].items())

    return bind(Text(sql, find_references(sql, "shop"), {}), "shop", columns_of)


def written(sql: str) -> str:
    """The plan's SQL on one line."""
    return " ".join(Writer(Tables()).select(read(sql).plan).sql.split())


REFUSED = {
    # Clauses that the plan has no node for.
    "select distinct a from t": "DISTINCT",
    "select a from t limit 1": "LIMIT",
    "select a from t union select a from u": "SET_OPERATION",
    "select a from t union all by name select a from u": "SYNTAX_NOT_KNOWN",
    "(select a from t limit 1) union all select a from u": "LIMIT",
    "select a from t union all select a from u limit 1": "LIMIT",
    "select a from t except select a from u": "SET_OPERATION",
    "select a from t left join u using (a)": "OUTER_JOIN",
    "select a from t full outer join u using (a)": "OUTER_JOIN",
    "select a from t left semi join u on t.a = u.a": "SEMI_JOIN",
    "select a from t anti join u on t.a = u.a": "SEMI_JOIN",
    "select * from t natural join u": "SYNTAX_NOT_KNOWN",
    "select a from t tablesample (5 rows)": "SYNTAX_NOT_KNOWN",
    "select a from (select a from t) tablesample (5 rows)": "SYNTAX_NOT_KNOWN",
    "select a from t version as of 1": "SYNTAX_NOT_KNOWN",
    "select a from t lateral view explode(arr) l as x": "TABLE_FUNCTION",
    "select * from t, lateral (select 1)": "TABLE_FUNCTION",
    "select * from values (1) v(a)": "TABLE_FUNCTION",
    "select * from t pivot (sum(a) for b in (1, 2))": "SYNTAX_NOT_KNOWN",
    "with recursive r as (select a from t) select a from r": "RECURSION",
    "select a from t qualify row_number() over (order by a) = 1": "WINDOW_FUNCTION",
    "select 1": "SYNTAX_NOT_KNOWN",
    "select * except (a) from t": "SYNTAX_NOT_KNOWN",
    "select a from t distribute by a": "SYNTAX_NOT_KNOWN",
    # Joins that do not simply follow each other.
    "select * from t join u join v on u.c = v.c on t.a = u.a": "SYNTAX_NOT_KNOWN",
    "select * from (t join u on t.a = u.a) join v on true": "SYNTAX_NOT_KNOWN",
    "select * from t join (u join v on u.c = v.c) on t.a = u.a": "SYNTAX_NOT_KNOWN",
    "select * from t, u join v using (c)": "SYNTAX_NOT_KNOWN",
    "select t.* from t join u using (b)": "SYNTAX_NOT_KNOWN",
    # Expressions over more than a row.
    "select sum(a) over () from t": "WINDOW_FUNCTION",
    "select (select max(a) from u) from t": "SUBQUERY",
    "select a from t where a in (select a from u)": "SUBQUERY",
    "select a from t where exists (select 1 from u where u.a = t.a)": "SUBQUERY",
    "select explode(arr) from t": "TABLE_FUNCTION",
    "select posexplode_outer(arr) from t": "TABLE_FUNCTION",
    "select inline_outer(arr) from t": "TABLE_FUNCTION",
    "select stack(2, a, b) from t": "TABLE_FUNCTION",
    "select json_tuple(a, 'x') as (p, q) from t": "SYNTAX_NOT_KNOWN",
    "select window(a, '1 day'), count(*) from t group by 1": "SYNTAX_NOT_KNOWN",
    # Values that depend on the names of columns, which a plan changes.
    "select struct(*) from t": "SYNTAX_NOT_KNOWN",
    "select (a, b) from t": "SYNTAX_NOT_KNOWN",
    "select arrays_zip(arr, arr) from t": "SYNTAX_NOT_KNOWN",
    "select transform(arr, a_1 -> a_1 + a) from t": "SYNTAX_NOT_KNOWN",
    # Spark does not tell `x` from `X`.
    "select transform(arr, A -> a + 1) from t": "SYNTAX_NOT_KNOWN",
    "select to_json(((t.a), (u.b))) from t cross join u": "SYNTAX_NOT_KNOWN",
    # A column of that name comes before the function.
    "select a as current_date, current_date as b from t": "SYNTAX_NOT_KNOWN",
    "select a from (select a, b as current_date from t) where current_date > 1": (
        "SYNTAX_NOT_KNOWN"
    ),
    # Names.
    "select missing from t": "SYNTAX_NOT_KNOWN",
    "select a from t, u": "SYNTAX_NOT_KNOWN",
    "select t.a from t as x": "SYNTAX_NOT_KNOWN",
    "select shop.t.a from shop.t": "SYNTAX_NOT_KNOWN",
    "select a from t x, (select x.a from u) y": "SYNTAX_NOT_KNOWN",
    "select x.p from t as x(p)": "SYNTAX_NOT_KNOWN",
    "select a as x, b as x, x + 1 from t": "SYNTAX_NOT_KNOWN",
    "select a as x, b as x, count(*) from t group by x, a, b": "SYNTAX_NOT_KNOWN",
    "with c as (select a from t) select b from c": "SYNTAX_NOT_KNOWN",
    # Groups.
    "select a, count(*) from t group by a with rollup": "GROUPING_SETS",
    "select a, count(*) from t group by rollup(a)": "GROUPING_SETS",
    "select a, count(*) from t group by cube(a)": "GROUPING_SETS",
    "select a, count(*) from t group by grouping sets ((a), ())": "GROUPING_SETS",
    "select count(*) from t group by ()": "SYNTAX_NOT_KNOWN",
    "select count(*) from t group by (a, b)": "SYNTAX_NOT_KNOWN",
    "select a, count(*) from t group by 0": "SYNTAX_NOT_KNOWN",
    "select a, count(*) from t group by 3": "SYNTAX_NOT_KNOWN",
    "select a, count(*) from t group by -1": "SYNTAX_NOT_KNOWN",
    "select a, count(*) from t group by 1.0": "SYNTAX_NOT_KNOWN",
    "select a, count(*) from t group by 2": "SYNTAX_NOT_KNOWN",
    "select 'x', count(*) from t group by all": "SYNTAX_NOT_KNOWN",
    "select b, count(*) from t group by a": "SYNTAX_NOT_KNOWN",
    "select a from t having a > 1": "SYNTAX_NOT_KNOWN",
    "select sum(a) as b from t group by b having b > 1": "SYNTAX_NOT_KNOWN",
    "select a from t where count(*) > 1": "SYNTAX_NOT_KNOWN",
    "select t.a from t join u on max(t.a) = u.a": "SYNTAX_NOT_KNOWN",
    "select a from t order by count(*)": "SYNTAX_NOT_KNOWN",
    "select sum(count(*)) from t group by a": "AGGREGATE_FUNCTION",
    "select a, count(*) as n from t group by a having sum(n) > 1": "AGGREGATE_FUNCTION",
    "select count(distinct a) from t": "AGGREGATE_DISTINCT",
    # Rows in which no other column is NULL.
    "select a, count(* except (a)) from t group by a": "AGGREGATE_FUNCTION",
    "select a, count(* except (a)) filter (where b > 1) from t group by a": "AGGREGATE_FUNCTION",
    "select sum(*) from t": "SYNTAX_NOT_KNOWN",
    "select count(a, b) from t": "AGGREGATE_FUNCTION",
    "select a, any(a = 1) from t group by a": "AGGREGATE_FUNCTION",
    "select a, every(a = 1) from t group by a": "AGGREGATE_FUNCTION",
    "select a, my_function(a) from t group by a": "SYNTAX_NOT_KNOWN",
    "select min(a order by b) from t": "AGGREGATE_FUNCTION",
    "select first(a) ignore nulls from t": "AGGREGATE_FUNCTION",
    "select percentile_cont(0.5) within group (order by a) from t": "AGGREGATE_FUNCTION",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_certain_is_refused(sql: str) -> None:
    with pytest.raises(NotIncremental) as refused:
        read(sql)
    assert refused.value.reason.code == REFUSED[sql], str(refused.value)


# Each query, with another one that says the same more plainly.
SAME = {
    # A name in GROUP BY or in the select list is a column first, then an alias.
    "select a + 1 as b, count(*) as n from t group by b, a": (
        "select t.a + 1 as b, count(*) as n from t group by t.b, t.a"
    ),
    "select a + 1 as x, x * 2 as y from t": "select a + 1 as x, (a + 1) * 2 as y from t",
    "select a + 1 as b, b * 2 as y from t": "select t.a + 1 as b, t.b * 2 as y from t",
    "select a as x, count(*) as n from t group by X": (
        "select a as x, count(*) as n from t group by a"
    ),
    "select a, count(*) as n from t group by (1)": "select a, count(*) as n from t group by a",
    "select b, sum(a) as a from t group by b having sum(a) > 1": (
        "select b, sum(t.a) as a from t group by b having sum(t.a) > 1"
    ),
    "select b, sum(a) as x from t group by all having x > 1": (
        "select b, sum(a) as x from t group by b having (sum(a)) > 1"
    ),
    # CTEs: a definition sees those before it, and hides tables.
    "with u as (select a from t) select a from u": "select a from (select a from t) as u",
    "with c as (select a from t), c2 as (select a from c) select a from c2": "select a from t",
    "with c as (select a from t) select * from (with c as (select a + 1 as a from c) select a from c)": (  # noqa: E501
        "select * from (select a + 1 as a from t)"
    ),
    "with c(x) as (select a from t) select x from c as d": "select a as x from t",
    # Hints and the order of rows change nothing.
    "select /*+ broadcast(t) */ a from t order by a": "select a from t",
}


@pytest.mark.parametrize("sql", SAME)
def test_two_ways_to_say_the_same_give_one_plan(sql: str) -> None:
    assert written(sql) == written(SAME[sql])


def test_star_begins_with_the_columns_of_using_in_their_order() -> None:
    assert read("select * from t join u using (b, a)").names == ("b", "a", "s", "arr", "c")
    assert read("select * from t join u using (a) join v using (c)").names == (
        "c", "a", "b", "s", "arr", "b", "a",
    )  # fmt: skip


def test_star_keeps_a_later_column_with_the_name_of_a_merged_one() -> None:
    names = read("select * from t join u using (a) join v on u.c = v.c").names
    assert names == ("a", "b", "s", "arr", "b", "c", "c", "a")


def test_a_name_of_using_is_that_of_the_left_side() -> None:
    assert read("select a from u join v using (a)").columns == ("a_2",)


def test_a_dotted_name_is_a_field_of_a_struct_if_no_relation_has_it() -> None:
    assert "`s_3`.`f` AS `f_" in written("select s.f from t")


def test_a_constant_key_makes_groups_only_of_rows() -> None:
    sql = written("select 7 as x, count(*) as n from t group by x")
    assert "GROUP BY `key_" in sql and "TRUE AS `key_" in sql
    assert "GROUP BY `a`" in written("select 7 as x, count(*) from t group by x, a")


def test_the_fields_of_a_struct_keep_their_names() -> None:
    assert "STRUCT(`a` AS A, `b` AS x)" in written("select struct(A, b as x) from t")


def test_the_parameter_of_a_lambda_hides_a_column() -> None:
    assert "TRANSFORM(`arr_4`, b -> b + `a_1`)" in written(
        "select transform(arr, b -> b + a) from t"
    )


def test_a_line_break_in_a_text_is_an_escape() -> None:
    sql = Writer(Tables()).select(read("select 'a\n\u2028\u0085\x1cb' as x from t").plan).sql
    assert "'a\\u000a\\u2028\\u0085\\u001cb'" in sql


def test_a_name_with_a_line_break_is_refused() -> None:
    with pytest.raises(NotIncremental, match="SYNTAX_NOT_KNOWN"):
        written("select to_json(struct(a as `x\ny`)) as x from t")


def test_inner_conditions_come_before_those_that_they_protect() -> None:
    inner = "select t.b, u.c from t join u on t.a = u.a where t.b <> u.c"
    sql = written(f"select b from ({inner}) where 1 / (b - c) > 0")
    assert sql.index("<>") < sql.index("/")
