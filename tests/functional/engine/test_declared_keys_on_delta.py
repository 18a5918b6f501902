"""A declared unique_key on a real Spark: what it narrows and names, also where it is none."""

import pytest
from change_reads import Reader, shown
from spark_shop import SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.changes.read import ChangeRead
from spark_dynamic.changes.upstream_keys import with_upstream_keys
from spark_dynamic.names import TableName


@pytest.fixture
def orders(shop: SparkShop) -> SparkShop:
    shop.table(
        "orders",
        "id int, customer string, amount double",
        "(1, 'a', 1)", "(2, 'b', double('NaN'))", "(2, 'b', double('NaN'))",
        "(2, 'c', double('-0.0'))", "(NULL, 'd', 0.0)", "(NULL, NULL, NULL)",
    )  # fmt: skip
    return shop


def merged(shop: SparkShop) -> str:
    [statement] = [s for s in shop.statements if s.startswith("MERGE")]
    return statement.partition("\nON ")[2].partition("\n")[0]


def test_a_key_that_names_no_row_narrows_and_changes_nothing_else(orders: SparkShop) -> None:
    orders.model("copy", "select * from orders", unique_key="id")
    orders.check("copy", "FULL")
    orders.run("UPDATE orders SET customer = 'x' WHERE id = 1", "DELETE FROM orders WHERE id = 1")
    orders.check("copy")
    assert "t.`id` BETWEEN 1 AND 1" in merged(orders) and "customer" not in merged(orders)
    # One of two copies, and another row with the same key.
    orders.run(
        "INSERT OVERWRITE orders VALUES (2, 'b', double('NaN')), (2, 'c', 0.0), (3, 'e', 1), "
        "(NULL, 'd', double('-0.0')), (NULL, NULL, NULL), (NULL, NULL, NULL)"
    )
    outcome = orders.check("copy")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (4, 3)
    # Of rows without a key nothing is known.
    assert "BETWEEN" not in merged(orders)
    # The comparison of both versions has every row once: it is not consolidated again.
    assert outcome.shape.startswith("MINIMAL")
    [changed] = [s for s in orders.statements if s.startswith("CACHE LAZY TABLE __dyn_rows")]
    assert changed.count("GROUP BY") == 1 and "explode(" not in changed
    orders.check("copy", "NO_DATA")


def test_a_rewrite_is_consolidated_where_columns_are_left_out(orders: SparkShop) -> None:
    orders.model("some", "select customer from orders where amount > 0 or id is null")
    orders.check("some", "FULL")
    orders.run("INSERT OVERWRITE orders SELECT id, customer, amount + 1 FROM orders")
    assert orders.check("some").shape.startswith("MINIMIZE")


def test_a_key_names_the_rows_of_changes_until_it_names_two(shop: SparkShop) -> None:
    shop.table("people", "id int, name string", "(1, 'Jeff')", "(2, 'Donny')")
    shop.model("known", "select id as `the id`, name from people", unique_key="The Id")
    shop.check("known", "FULL")
    warehouse = SparkWarehouse(shop.session)
    read = ChangeRead("select * from known", shop.schema, {})
    keys = with_upstream_keys(read, shop.cycle(), warehouse).upstream_keys
    assert keys == {TableName.of(shop.schema, "known"): ("The Id",)}
    reader = Reader(shop, "select name from known", upstream_keys=keys)
    start = reader.now()
    shop.run("UPDATE people SET name = 'Jeffrey' WHERE id = 1", "DELETE FROM people WHERE id = 2")
    shop.check("known")
    rows = reader.rows(start)
    assert shown(rows, "name", "change_action", "change_is_update") == [
        ("Donny", "DELETE", False),
        ("Jeff", "DELETE", True),
        ("Jeffrey", "INSERT", True),
    ]
    assert len({row["change_row_id"] for row in rows}) == 2
    shop.run("UPDATE people SET name = 'J' WHERE id = 1", "INSERT INTO people VALUES (1, 'Same')")
    shop.check("known")
    told = "ROW_KEY_NOT_UNIQUE.*unique_key of .*known \\(The Id\\)"
    with pytest.raises(Exception, match=told):
        reader.rows(start)
