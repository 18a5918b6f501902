"""Views as catalogs have them: in schemas whose names are quoted, and without their columns."""

from collections.abc import Iterator

import pytest
from spark_shop import SparkShop

from spark_dynamic.errors import WarehouseError


@pytest.fixture
def quoted(shop: SparkShop) -> Iterator[SparkShop]:
    """A schema whose name Spark quotes, with a source and two views of it."""
    other = SparkShop(shop.session, "`2024_shop`")
    other.schema = "2024_shop"
    other.table("t", "a int, b int", "(1, 2)", "(3, 4)")
    other.run(
        "CREATE VIEW plain AS SELECT a FROM t WHERE b > 0",
        "CREATE VIEW renamed (x, y) AS SELECT a, b FROM `2024_shop`.t",
    )
    yield other
    other.run(f"USE {shop.schema}", "DROP SCHEMA `2024_shop` CASCADE")


def test_views_are_followed_in_a_schema_whose_name_is_quoted(quoted: SparkShop) -> None:
    quoted.model("of_a_table", "select a, b from `2024_shop`.t")
    quoted.model("of_a_view", "select a from plain")
    quoted.model("of_both", "select r.y, count(*) as n from renamed r group by r.y")
    # As dbt writes it.
    quoted.model("of_another", "select a from 2024_shop.of_a_view")
    for name in quoted.models:
        quoted.check(name, "FULL")
    quoted.run("INSERT INTO t VALUES (5, 6)")
    for name in quoted.models:
        quoted.check(name)
    for name in quoted.models:
        quoted.check(name, "NO_DATA")


def test_a_view_of_an_old_metastore_has_the_columns_of_its_query(shop: SparkShop) -> None:
    shop.table("t", "a int, b int", "(1, 2)")
    shop.run("CREATE VIEW old AS SELECT b AS c, a FROM t")
    # So are views that Hive made, or Spark before 2.2.
    shop.run("ALTER VIEW old UNSET TBLPROPERTIES ('view.query.out.numCols')")
    shop.model("copied", "select a, c from old")
    shop.check("copied", "FULL")
    shop.run("INSERT INTO t VALUES (3, 4)")
    shop.check("copied")


def test_a_view_that_spark_cannot_read_is_named_in_the_first_line(shop: SparkShop) -> None:
    shop.table("t", "a int, b int", "(1, 2)")
    shop.run(
        "CREATE VIEW old (x, y) AS SELECT a, b FROM t",
        "ALTER VIEW old UNSET TBLPROPERTIES ('view.query.out.numCols')",
    )
    shop.model("copied", "select x from old")
    with pytest.raises(WarehouseError) as raised:
        shop.refresh("copied")
    assert raised.value.report.startswith("INCOMPATIBLE_VIEW_SCHEMA_CHANGE: The SQL query of view")
