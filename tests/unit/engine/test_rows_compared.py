from typing import Any

import pytest
from fake_shop import Shop, small_shop
from fake_warehouse import FakeWarehouse

from spark_dynamic.frontier.compare import same_rows, touches_columns
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Commit

TABLE = TableName("shop", "t")


def with_table(kind: str, *rows: Any) -> Shop:
    shop = small_shop()
    shop.spark.create("shop.t", {"a": kind, "b c": "string"}, *rows)
    return shop


def compared(shop: Shop, old: int = 0, new: int = 1) -> bool:
    return same_rows(FakeWarehouse(shop.spark), TABLE, old, new)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([(1, "x"), (2, "y")], [(2, "y"), (1, "x")], True),
        ([(1, "x"), (1, "x")], [(1, "x")], False),
        ([(1, "x"), (1, "x"), (2, "y")], [(1, "x"), (2, "y"), (2, "y")], False),
        ([(None, None)], [(None, None)], True),
        ([(None, "x")], [(0, "x")], False),
        ([], [], True),
        ([(1, "x")], [], False),
    ],
)
def test_versions_are_compared_as_bags(
    before: list[Any], after: list[Any], expected: bool
) -> None:
    shop = with_table("bigint", *before)
    shop.spark.write("shop.t").overwrite(*after)
    assert compared(shop) is expected
    assert compared(shop, 1, 0) is expected


@pytest.mark.parametrize(
    "kind", ["tinyint", "int", "string", "binary", "date", "timestamp", "timestamp_ntz",
             "decimal(10,2)", "boolean", "double", "float", "string collate UTF8_LCASE"],
)  # fmt: skip
def test_these_types_can_be_compared(kind: str) -> None:
    shop = with_table(kind, (1, "x"))
    shop.spark.write("shop.t").overwrite((1, "x"))
    assert compared(shop)


@pytest.mark.parametrize(
    "kind", ["array<double>", "struct<a: double>", "map<string, int>", "variant", "time(6)"]
)
def test_what_cannot_be_compared_counts_as_different(kind: str) -> None:
    shop = with_table("bigint", (1, "x"))
    described = [{"col_name": "a", "data_type": kind}]

    class Described(FakeWarehouse):
        def rows(self, sql: str) -> list[dict[str, Any]]:
            return described if sql.startswith("DESCRIBE QUERY") else []

    assert not same_rows(Described(shop.spark), TABLE, 0, 1)


def test_equal_numbers_with_another_sign_of_zero_are_told_apart() -> None:
    shop = with_table("double", (0.0, "x"))
    shop.spark.write("shop.t").overwrite((0.0, "x"))
    assert compared(shop)
    [query] = [sql for sql in shop.spark.log if sql.startswith("SELECT 1")]
    assert query.count("cast(`a` AS string) AS k0") == 2
    assert query.count("`b c` AS k1") == 2


def test_other_columns_are_another_table() -> None:
    shop = with_table("bigint", (1, "x"))
    shop.spark.write("shop.t").add_column("d", "int")
    assert not compared(shop)


def test_a_version_that_is_gone_proves_nothing() -> None:
    shop = with_table("bigint", (1, "x"))
    shop.spark.write("shop.t").overwrite((1, "x"))
    shop.spark.table("shop.t").forget_before(1)
    assert not compared(shop)


def test_column_changes_are_seen() -> None:
    at = small_shop().spark.clock
    assert touches_columns([Commit(1, at, "OPTIMIZE"), Commit(2, at, "ADD COLUMNS")])
    assert not touches_columns([Commit(1, at, "OPTIMIZE")])
