"""Properties of plans and deltas: which columns tell rows apart, and what cannot cancel out."""

import pytest

from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.delta.analysis import is_delete_only, is_minimal, is_net, unique_by
from spark_dynamic.delta.differentiate import differentiate
from spark_dynamic.delta.facts import Changes
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import Plan, Query
from spark_dynamic.refresh.shape import expected_shape, facts_of
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.pin import Query as Text
from spark_dynamic.sql.references import find_references
from spark_dynamic.warehouse import Column

R, S = TableName("shop", "r"), TableName("shop", "s")
TYPES = {"k": "int", "v": "int", "name": "string", "d": "double"}
R_BY_K = "(select k, sum(v) as total from r group by k)"
S_BY_K = "(select k, count(*) as n from s group by k)"


def bound(sql: str) -> Query:
    def columns_of(table: TableName) -> tuple[Column, ...]:
        return tuple(Column(name, type) for name, type in TYPES.items())

    return bind(Text(sql, find_references(sql, "shop"), {}), "shop", columns_of)


def keys(sql: str) -> list[set[str]]:
    """The proven keys of a query, by the names of its columns; what is not shown is no key."""
    query = bound(sql)
    names = dict(zip(query.columns, query.names, strict=True))
    found = [key for key in unique_by(query.plan, {}) if key <= names.keys()]
    return [{names[id] for id in key} for key in found]


def delta_of(sql: str, **kinds: Kind) -> tuple[Plan, dict[TableName, Changes]]:
    plan = bound(sql).plan
    intervals = {
        TableName("shop", name): Interval(TableName("shop", name), 0, 1, kind)
        for name, kind in kinds.items()
    }
    facts = dict(facts_of(plan, intervals))
    delta = differentiate(plan, facts)
    assert delta is not None
    return delta, facts


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select k, sum(v) as total from r group by k", [{"k"}]),
        ("select k as a, name as b, max(v) as c from r group by k, name", [{"a", "b"}]),
        ("select sum(v) as total from r", [set()]),
        (f"select total, k from {R_BY_K} x where total > 3", [{"k"}]),
        # A column that a join sets equal stands for the other one.
        (f"select x.k, total, n from {R_BY_K} x join {S_BY_K} y on x.k = y.k", [{"k"}]),
        (
            f"select x.k, n, y.k as j from {R_BY_K} x join {S_BY_K} y on x.total > y.n",
            [{"k", "j"}],
        ),
    ],
)
def test_keys_of_groups_travel_up(sql: str, expected: list[set[str]]) -> None:
    assert keys(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "select k, v from r",
        "select sum(v) as total from r group by k",
        # Two keys may have the same value after it.
        "select k + 0 as k, sum(v) as total from r group by k",
        f"select k, total from {R_BY_K} x union all select k, n from {S_BY_K} y",
        # Nothing is known of the rows of a table.
        f"select x.k, s.v from {R_BY_K} x join s on x.k = s.k",
        f"select x.k, total, n from {R_BY_K} x join {S_BY_K} y on x.total = y.n",
        # As numbers, '1' and '01' are equal.
        f"select x.k, n from {R_BY_K} x join (select name, count(*) as n from s group by name) y "
        "on x.k = y.name",
        # 0.0 = -0.0, which are two values.
        "select x.d, n from (select d, k, count(*) as n from r group by d, k) x "
        "join (select d, k from s group by d, k) y on x.d = y.d and x.k = y.k",
    ],
)
def test_nothing_is_proven_where_rows_may_be_equal(sql: str) -> None:
    assert keys(sql) == []


def test_the_difference_of_two_versions_stays_minimal_while_no_column_is_lost() -> None:
    whole = "select name as label, k, v from r where d > 1 and v > 2"
    for sql, expected in (
        ("select * from r", True),
        ("select v as a, k as b from (select k, v from r where v > 1) x where k < 5", True),
        # Rows that differ in the column that is filtered by become equal, with both signs.
        (whole, False),
        ("select k from r where v > 1", False),
        ("select k + v as a, k from r", False),
        ("select k from r union all select v from r", False),
        ("select r.k, s.v, s.k as j from r join s on r.k = s.k", False),
    ):
        delta, facts = delta_of(sql, r=Kind.REWRITE)
        assert is_net(delta, bound(sql).columns, facts) is expected, sql
        assert is_minimal(delta, bound(sql).columns, facts) is expected, sql


def test_a_scan_of_some_of_the_columns_that_are_compared_is_not_minimal() -> None:
    """The other scan of the table needs more columns, and both read one difference."""
    plan = bound("select k from r").plan
    facts = {R: Changes(net_by=frozenset({"k", "v"}))}
    delta = differentiate(plan, facts)
    assert delta is not None and not unique_by(delta, facts)


def test_changes_of_one_sign_are_minimal_but_not_without_copies() -> None:
    for kind in (Kind.INSERTS, Kind.CHANGES):
        delta, facts = delta_of("select k from r where v > 1", r=kind)
        assert is_minimal(delta, delta.columns, facts) is (kind is Kind.INSERTS)
        assert not unique_by(delta, facts)


def test_rows_that_left_a_join_with_groups_are_only_removed() -> None:
    plan = bound(f"select r.v, x.n from r join {S_BY_K} x on r.k = x.k").plan
    facts = {R: Changes(delete_only=True)}
    delta = differentiate(plan, facts)
    assert delta is not None and is_delete_only(delta, facts)
    facts = {R: Changes(delete_only=True), S: Changes(delete_only=True)}
    delta = differentiate(plan, facts)
    assert delta is not None and not is_minimal(delta, plan.columns, facts)


def test_the_shape_says_whether_rows_are_consolidated() -> None:
    rewritten = {R: Interval(R, 0, 1, Kind.REWRITE)}
    query = bound("select k, v from r")
    plan, shown = query.plan, query.columns
    assert expected_shape(plan, rewritten, shown) == "MINIMAL (shop.r: a rewrite)"
    assert expected_shape(plan, rewritten, shown[:1]) == "MINIMIZE (shop.r: a rewrite)"
    # Groups are added up whether rows are there once or not.
    assert expected_shape(plan, rewritten) == "MINIMIZE (shop.r: a rewrite)"
    # The changes that a join reads are read beforehand, copy by copy.
    joined = bound(f"select r.*, x.k as j from r join {S_BY_K} x on r.k = x.k")
    assert expected_shape(joined.plan, rewritten, joined.columns).startswith("MINIMIZE")
    facts = facts_of(joined.plan, rewritten)
    delta = differentiate(joined.plan, facts)
    assert delta is not None and is_net(delta, joined.columns, facts)
