"""Bounds of changed rows, and the columns that they also hold for."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from spark_dynamic.delta.differentiate import differentiate
from spark_dynamic.delta.facts import Bounds, Changes
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import Filter, walk
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.pin import Query as Text
from spark_dynamic.sql.references import find_references
from spark_dynamic.warehouse import Column


def bounded(key: str, other: str, low: Any, high: Any) -> list[str]:
    """The bounds that the delta of a join puts on its unchanged member."""
    types = {"r": key, "s": other}

    def columns_of(table: TableName) -> tuple[Column, ...]:
        return (Column("k", types[table.name]),)

    sql = "select r.k from r join s on r.k = s.k"
    query = bind(Text(sql, find_references(sql, "shop"), {}), "shop", columns_of)
    facts = {TableName("shop", "r"): Changes(bounds={"k": Bounds(low, high)})}
    delta = differentiate(query.plan, facts)
    assert delta is not None
    return [c.sql() for node in walk(delta) if isinstance(node, Filter) for c in node.conditions]


@pytest.mark.parametrize(
    ("key", "other", "low", "high"),
    [
        ("int", "bigint", 1, 9),
        ("bigint", "decimal(10,2)", 1, 9),
        ("decimal(20,2)", "decimal(12,4)", Decimal("1.00"), Decimal("9.00")),
        ("string", "string", "10", "9"),
        ("date", "timestamp", date(2024, 1, 1), date(2024, 1, 2)),
    ],
)
def test_an_equal_column_lies_between_the_same_bounds(
    key: str, other: str, low: Any, high: Any
) -> None:
    [condition] = bounded(key, other, low, high)
    assert condition.startswith('"k_2" BETWEEN ')


@pytest.mark.parametrize(
    ("key", "other", "low", "high"),
    [
        # As texts '10' < '9', so that 5 = '5' lies between them; as numbers it does not.
        ("string", "int", "10", "9"),
        ("string", "date", "2024-1-10", "2024-1-9"),
        # '3000000000' = 3000000000, but as an int, which is what it is compared with 1 as, it is
        # NULL without ANSI mode.
        ("bigint", "string", 1, 3000000000),
        ("bigint", "double", 1, 9),
        # NaN is above all numbers, but not among bounds.
        ("double", "double", 1.0, 2.0),
        # With 38 digits in all, 1.004 = 1.00.
        ("decimal(38,2)", "decimal(38,10)", Decimal("1.00"), Decimal("1.00")),
        ("bigint", "decimal(38,20)", 1, 9),
    ],
)
def test_bounds_of_another_order_are_not_passed_on(
    key: str, other: str, low: Any, high: Any
) -> None:
    assert bounded(key, other, low, high) == []


def test_a_line_break_in_a_bound_is_an_escape() -> None:
    [between] = bounded("string", "string", "abc\n", "abc\u2028")
    assert "'abc\\u000a' AND 'abc\\u2028'" in between
