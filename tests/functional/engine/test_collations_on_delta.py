"""Collations: no Delta table has columns with one, but columns of subqueries have."""

import pytest
from pyspark.errors import AnalysisException
from spark_shop import SparkShop


def test_no_source_has_a_collated_column(shop: SparkShop) -> None:
    with pytest.raises(AnalysisException, match="UTF8_LCASE"):
        shop.table("t", "s string collate UTF8_LCASE")


@pytest.mark.nightly
def test_collated_columns_of_subqueries_are_compared_as_spark_does(shop: SparkShop) -> None:
    shop.table("t", "a int, s string", "(1, 'a')", "(2, 'B')", "(3, NULL)")
    shop.table("u", "b int, s string", "(1, 'A')", "(2, 'b')", "(3, 'c')", "(4, NULL)")
    shop.model(
        "m",
        "select x.a, y.b, x.s = 'A' as is_a from "
        "(select a, s collate utf8_lcase as s from t) x join "
        "(select b, s collate utf8_lcase as s from u) y on x.s = y.s where y.s < 'C'",
    )
    shop.check("m", "FULL")
    shop.run("INSERT INTO t VALUES (4, 'A'), (5, 'C')", "INSERT INTO u VALUES (5, 'B'), (6, 'a')")
    shop.check("m")
    shop.run("UPDATE t SET s = upper(s)", "DELETE FROM u WHERE s = 'b'")
    shop.check("m")
