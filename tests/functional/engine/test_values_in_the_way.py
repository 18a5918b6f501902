"""Values that Spark or Delta take for others: never a wrong row because of them."""

import pytest
from spark_shop import SparkShop

from spark_dynamic.errors import WarehouseError


def test_an_empty_text_in_a_partition_column_is_refused(shop: SparkShop) -> None:
    """Delta would store NULL."""
    shop.table("t", "region string, v int", "('n', 1)", "(NULL, 2)")
    by_region = {"partition_by": "region"}
    shop.model("rows", "select region, v from t", **by_region)
    shop.model("groups", "select region, count(*) as n from t group by region", **by_region)
    shop.model("whole", "select distinct region, v from t", refresh_mode="full", **by_region)
    for name in shop.models:
        shop.check(name, "FULL")
    shop.run("INSERT INTO t VALUES ('s', 3), (NULL, 4)")
    for name, action in (("rows", "INCREMENTAL"), ("groups", "INCREMENTAL"), ("whole", "FULL")):
        shop.check(name, action)
    shop.run("INSERT INTO t VALUES ('', 5)")
    for name in shop.models:
        with pytest.raises(WarehouseError, match="EMPTY_TEXT_IN_PARTITION"):
            shop.refresh(name)


def test_decimals_that_are_equal_only_as_rounded_are_joined(shop: SparkShop) -> None:
    shop.table("a", "k decimal(38,10), v int", "(1.004, 7)", "(2, 8)")
    shop.table("b", "k decimal(38,2)", "(2)")
    shop.model("joined", "select a.v from a join b on a.k = b.k")
    shop.check("joined", "FULL")
    shop.run("INSERT INTO b VALUES (1.00)")
    shop.check("joined")
    assert {row.v for row in shop.session.sql("TABLE joined").collect()} == {7, 8}


def test_fields_whose_names_have_brackets_are_not_taken_for_types(shop: SparkShop) -> None:
    shop.table("t", "id int, s struct<`>100`:int>", "(1, named_struct('>100', 5))")
    shop.model("kept", "select id, s from t", refresh_mode="auto")
    shop.check("kept", "FULL")
    shop.run("UPDATE t SET s = named_struct('>100', 6) WHERE id = 1")
    assert shop.check("kept", "FULL").plan.decision.reason.code == "TYPE_NOT_SUPPORTED"
    assert shop.session.sql("SELECT s.`>100` FROM kept").first()[0] == 6


def test_what_count_leaves_out_is_not_counted(shop: SparkShop) -> None:
    shop.table("t", "k int, a int, b int", "(1, 1, NULL)", "(1, 2, 5)")
    shop.model(
        "counted", "select k, count(* except (a, k)) as n from t group by k", refresh_mode="auto"
    )
    shop.check("counted", "FULL")
    shop.run("INSERT INTO t VALUES (1, NULL, 6), (1, 3, NULL)")
    assert shop.check("counted", "FULL").plan.decision.reason.code == "AGGREGATE_FUNCTION"
