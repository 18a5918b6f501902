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
from spark_dynamic.warehouse import Column


def bound(sql: str) -> Any:
    def columns_of(table: TableName) -> tuple[Column, ...]:
        return (Column("a", "int"), Column("b", "int"))

    return bind(Text(sql, find_references(sql, "shop"), {}), "shop", columns_of)


def print_of(sql: str) -> str:
    query = bound(sql)
    return fingerprint(query, query.names)


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
def test_another_meaning_is_another_fingerprint(one: str, other: str) -> None:
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
