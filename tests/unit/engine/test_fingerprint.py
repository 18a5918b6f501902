"""Edits that keep a query's meaning keep its fingerprint, and a record's meaning its storage."""

from dataclasses import replace
from typing import Any

import pytest
from fake_records import pin_of, record_of

from spark_dynamic.apply.rows import Rows
from spark_dynamic.frontier.cut import Cut
from spark_dynamic.frontier.record import Record, Verdict
from spark_dynamic.names import TableName
from spark_dynamic.plan.fingerprint import fingerprint
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.maintenance import Maintenance
from spark_dynamic.refresh.upkeep import Upkeep
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.pin import Query as Text
from spark_dynamic.sql.references import find_references
from spark_dynamic.sql.resolve import resolve
from spark_dynamic.warehouse import Column, Relation, ViewText


def bound(sql: str) -> Any:
    def columns_of(table: TableName) -> tuple[Column, ...]:
        return (Column("a", "int"), Column("b", "int"))

    return bind(Text(sql, find_references(sql, "shop"), {}), "shop", columns_of)


def print_of(sql: str) -> str:
    query = bound(sql)
    return fingerprint(query, query.names)


PLAIN = "select a, b from t where a > 1 and b = 2"
GROUPED = "select a, count(*) as n, sum(b) as s from t group by a"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Format and comments.
        (PLAIN, "SELECT\n  a,\n\tb\nFROM t\n\nWHERE a>1 AND\n  b=2\n"),
        (PLAIN, "select A, B from T where A > 1 and B = 2"),
        (PLAIN, "select a, -- the first\n b /* and the second */ from t where a > 1 and b = 2"),
        (PLAIN, "select /*+ broadcast(t) */ `a`, t.`b` from shop.t where (a > (1)) and ((b = 2))"),
        (PLAIN, f"{PLAIN} order by b"),
        # Aliases of tables, and of columns that do not reach the result.
        (PLAIN, "select x.a, x.b from t as x where x.a > 1 and x.b = 2"),
        (PLAIN, "select p as a, q as b from (select a as p, b as q from t) where p > 1 and q = 2"),
        (PLAIN, "select a, b from (select *, a + b as unused from t) where a > 1 and b = 2"),
        # Common tables: their names, and whether there are any.
        (PLAIN, f"with x as ({PLAIN}) select * from x"),
        (PLAIN, "with y(p, q) as (select * from t) select p as a, q as b from y "
                "where p > 1 and q = 2"),
        (PLAIN, "with x as (select * from t where b = 2), y as (select * from x where a > 1) "
                "select y.a, y.b from y"),
        # Operands in another order.
        (PLAIN, "select a, b from t where 2 = b and 1 < a"),
        ("select a + b as c from t", "select b + a as c from t"),
        ("select a * b as c from t", "select b * a as c from t"),
        ("select a from t where a = 1 or b = 2", "select a from t where 2 = b or a = 1"),
        ("select a from t where a <> b", "select a from t where b <> a"),
        ("select a from t where a <=> b", "select a from t where b <=> a"),
        ("select a from t where a >= b", "select a from t where b <= a"),
        # Groups.
        (GROUPED, "select a, count(1) as n, sum(b) as s from t group by a"),
        (GROUPED, "select a, count(*) as n, sum(b) as s from t group by 1"),
        (GROUPED, "select a, count(*) as n, sum(b) as s from t group by all"),
        (GROUPED, "with x as (select b as q, a as p from t) "
                  "select p as a, count(1) as n, sum(q) as s from x group by p"),
        (
            "select a, b, max(a) as m from t group by a, b having max(a) > 1",
            "select a, b, max(a) as m from t group by b, a having 1 < m",
        ),
        # Joins.
        (
            "select t.b, u.b as c from t join u on t.a = u.a",
            "select x.b, y.b as c from t x, u y where y.a = x.a",
        ),
        (
            "select t.b, u.b as c from t join u on t.a = u.a",
            "select t.b, u.b as c from t inner join u using (a)",
        ),
    ],
)  # fmt: skip
def test_a_cosmetic_edit_keeps_the_fingerprint(one: str, other: str) -> None:
    assert print_of(one) == print_of(other)


def through(views: dict[str, str], sql: str) -> str:
    """The fingerprint of a query over views, all of which have the columns a and b."""
    columns = (Column("a", "int"), Column("b", "int"))

    def lookup(name: TableName) -> Relation:
        text = views.get(name.name)
        view = ViewText(text, "shop", ("a", "b"), {}) if text else None
        return Relation(name, columns, "" if view else "delta", "", view=view)

    query = bind(resolve(sql, "shop", lookup, {}), "shop", lambda _: columns)
    return fingerprint(query, query.names)


VIEWS = {"large": "select * from t where a > 1", "both": "select a, b from large where b = 2"}


@pytest.mark.parametrize(
    ("view", "text"),
    [
        ("large", "SELECT x.a, x.b -- all of it\nFROM t AS x WHERE (1 < x.a)"),
        ("large", "with y as (select * from shop.t) select * from y where a > 1"),
        ("both", "SELECT a, b FROM large AS z WHERE 2 = z.b"),
        # What the view below does may stand here as well.
        ("both", "select a, b from t where a > 1 and b = 2"),
    ],
)
def test_a_cosmetic_edit_of_a_view_keeps_the_fingerprint(view: str, text: str) -> None:
    before = through(VIEWS, "select a, b from both")
    assert through(VIEWS | {view: text}, "select a, b from both") == before
    assert print_of(PLAIN) == before


@pytest.mark.parametrize(
    ("view", "text"),
    [
        ("large", "select * from t where a > 2"),
        ("large", "select * from u where a > 1"),
        ("large", "select b as a, a as b from t where a > 1"),
        ("both", "select a, b from large where b <> 2"),
        ("both", "select a, b from large"),
        ("both", "select a, max(b) as b from large where b = 2 group by a"),
    ],
)
def test_the_meaning_of_a_view_is_part_of_the_fingerprint(view: str, text: str) -> None:
    before = through(VIEWS, "select a, b from both")
    assert through(VIEWS | {view: text}, "select a, b from both") != before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PLAIN, "select a, b from t where a > 1 or b = 2"),
        (PLAIN, "select a, b from t where a >= 1 and b = 2"),
        (PLAIN, "select a, b from t where 1 > a and b = 2"),
        (PLAIN, "select a, b from t where a > 1 and b = 3"),
        (PLAIN, "select a, b from t where a > 1 and b <=> 2"),
        (PLAIN, "select a, b from t where a > '1' and b = 2"),
        (PLAIN, "select a, b from t where a > 1"),
        (PLAIN, "select a, b from t where a > 1 and not b = 2"),
        (PLAIN, "select a, b from u where a > 1 and b = 2"),
        (PLAIN, "select a, b from other.t where a > 1 and b = 2"),
        # The result: its columns, their order and their names.
        (PLAIN, "select b, a from t where a > 1 and b = 2"),
        (PLAIN, "select b as a, a as b from t where a > 1 and b = 2"),
        (PLAIN, "select a, b as c from t where a > 1 and b = 2"),
        (PLAIN, "select a from t where a > 1 and b = 2"),
        (PLAIN, "select a, cast(b as string) as b from t where a > 1 and b = 2"),
        # A row that is there twice.
        (PLAIN, f"{PLAIN} union all {PLAIN}"),
        ("select a = 1 and b = 2 as c from t", "select a = 1 or b = 2 as c from t"),
        ("select a - b as c from t", "select b - a as c from t"),
        ("select a / b as c from t", "select b / a as c from t"),
        ("select pmod(a, b) as c from t", "select pmod(b, a) as c from t"),
        ("select 'x' as c from t", "select 'X' as c from t"),
        ("select a from t where (a = 1 or a = 2) and b = 3",
         "select a from t where a = 1 or (a = 2 and b = 3)"),
        ("select (a + b) * 2 as c from t", "select a + b * 2 as c from t"),
        (GROUPED, "select a, count(b) as n, sum(b) as s from t group by a"),
        (GROUPED, "select a, count(*) as n, max(b) as s from t group by a"),
        (GROUPED, "select a, count(*) as n, sum(a) as s from t group by a"),
        (GROUPED, "select a, count(*) as n, sum(b) as s from t group by a, b"),
        (GROUPED, f"{GROUPED} having count(*) > 1"),
        # Before the groups are made or after.
        ("select a, max(b) as m from t where b > 1 group by a",
         "select a, max(b) as m from t group by a having max(b) > 1"),
        ("select t.b from t join u on t.a = u.a", "select t.b from t join u on t.a = u.b"),
        ("select t.b from t join u on t.a = u.a", "select t.b from t cross join u"),
        ("select t.a, u.a as c from t join u on t.a = u.a",
         "select t.a, u.a as c from t join u on t.a < u.a"),
    ],
)  # fmt: skip
def test_another_meaning_is_another_fingerprint(one: str, other: str) -> None:
    assert print_of(one) != print_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "select t.b as x, u.b as y from t join u on t.a = u.a and t.b > 1",
            "select t.b as x, u.b as y from u join t on u.a = t.a where 1 < t.b",
        ),
        (
            "select t.b, sum(v.b) as s from t, u, v where t.a = u.a and u.b = v.b group by t.b",
            "select t.b, sum(v.b) as s from v join u on v.b = u.b join t on t.a = u.a group by 1",
        ),
        ("select a from t where b in (1, 2, 3)", "select a from t where b in (3, 1, 2)"),
        ("select a from t where b not in (1, 2)", "select a from t where b not in (2, 1)"),
    ],
)
def test_the_order_of_equals_makes_no_difference(one: str, other: str) -> None:
    assert print_of(one) == print_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "select t.b as x from t join u on t.a = u.a",
            "select u.b as x from t join u on t.a = u.a",
        ),
        (
            "select x.b as p, y.b as q from t x join t y on x.a < y.b",
            "select y.b as p, x.b as q from t x join t y on x.a < y.b",
        ),
        (
            "select x.b as p from t x join t y on x.a = y.b where x.b > 1",
            "select x.b as p from t x join t y on x.a = y.b where y.b > 1",
        ),
        ("select a from t where b in (1, 2)", "select a from t where b in (1, 2, 2, 3)"),
        ("select a from t where a in (b, 2)", "select a from t where b in (a, 2)"),
        ("select a from t where b in (1)", "select a from t where b not in (1)"),
        # To Spark & binds tighter than |, to sqlglot it does not.
        ("select a from t where a | b & 4 = 4", "select a from t where (a | b) & 4 = 4"),
        ("select a ^ b & 1 as x from t", "select (a ^ b) & 1 as x from t"),
    ],
)
def test_sides_and_lists_with_another_meaning_are_told_apart(one: str, other: str) -> None:
    assert print_of(one) != print_of(other)


def why_not(record: Record) -> str:
    """What speaks against carrying on a table whose text is `hash` over the columns `columns`."""
    analysis = Analysis(None, "hash", bases=(TableName("shop", "t"),))
    nothing: Any = None
    upkeep = Upkeep(nothing, analysis, Verdict("key", "columns"), "", nothing, nothing)
    query = bound("select a from t")
    upkeep.found = Maintenance(query, fingerprint(query, ("id",)), Rows(record.columns))
    refusal = upkeep.why_not(record, Cut(record.data_timestamp, {}, {}))
    return refusal.code if refusal else ""


def test_a_new_version_of_fingerprints_rebuilds_nothing() -> None:
    record = replace(
        record_of("m", 0, pin_of("t", 1)),
        verdict=Verdict("key", "columns"),
        state=Rows(()).state,
        fingerprint="1:of an older engine",
    )
    assert why_not(record) == ""
    for change in (
        {"text_hash": "another"},
        {"verdict": Verdict("key", "others")},
        {"frontier": (pin_of("u", 1),)},
        {"state": {}},
    ):
        assert why_not(replace(record, **change)) == "STORAGE_FORM"
