"""Bags of rows: appended where nothing was deleted, else merged by hash and ordinal."""

import pytest
from spark_shop import SparkShop
from tests.bags import bag

from spark_dynamic.refresh import incremental


@pytest.fixture
def orders(shop: SparkShop) -> SparkShop:
    shop.table(
        "orders",
        "id int, customer string, amount decimal(10,2)",
        "(1, 'a', 10)", "(2, 'b', 20)", "(2, 'b', 20)", "(3, NULL, NULL)",
    )  # fmt: skip
    return shop


def test_a_filter_appends_what_was_inserted(orders: SparkShop) -> None:
    orders.model("big", "select id, amount * 2 as double_amount from orders where amount > 5")
    orders.check("big", "FULL")
    orders.run("INSERT INTO orders VALUES (4, 'd', 40), (4, 'd', 40), (5, 'e', 1)")
    outcome = orders.check("big")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (2, 0)
    assert not any(s.startswith(("MERGE", "CACHE")) for s in orders.statements)
    orders.check("big", "NO_DATA")


@pytest.mark.nightly
def test_duplicates_survive_a_delete_of_one_copy(orders: SparkShop) -> None:
    orders.model("pairs", "select customer, amount from orders")
    orders.check("pairs", "FULL")
    orders.run(
        "INSERT INTO orders VALUES (7, 'b', 20)",
        "DELETE FROM orders WHERE id = 7",
        "UPDATE orders SET customer = 'z' WHERE id = 1",
        "INSERT INTO orders VALUES (8, 'b', 20), (8, 'b', 20)",
    )
    orders.check("pairs")
    orders.run("DELETE FROM orders WHERE id = 2 OR customer IS NULL")
    outcome = orders.check("pairs")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (0, 3)


def test_few_changed_rows_are_handed_to_all_who_look_for_them(
    orders: SparkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.model("pairs", "select customer, amount from orders")
    orders.check("pairs", "FULL")
    for most, id, is_handed_out in ((2, 1, True), (1, 3, False)):
        monkeypatch.setattr(incremental, "_BROADCAST", most)
        orders.run(f"UPDATE orders SET customer = 'z' WHERE id = {id}")
        orders.check("pairs")
        [merge] = [s for s in orders.statements if s.startswith("MERGE")]
        assert ("/*+ BROADCAST(changed) */" in merge) == is_handed_out


def test_few_deleted_rows_of_a_large_table_are_listed(
    orders: SparkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.model("pairs", "select customer, amount from orders")
    orders.check("pairs", "FULL")
    listed = "shiftright(t.__dyn_hash_1, 44) IN ("
    monkeypatch.setattr(incremental, "_FEW", 0)
    # One row; two of three copies; too many for the list; too many of what is stored.
    for id, changed, most, others, is_listed in (
        (1, "customer = 'b', amount = 20", 1, 4, True),
        (2, "customer = NULL", 1, 4, True),
        (3, "amount = -1", 0, 4, False),
        (3, "amount = -2", 1, 5, False),
    ):
        monkeypatch.setattr(incremental, "_LISTED", most)
        monkeypatch.setattr(incremental, "_OTHERS", others)
        orders.run(f"UPDATE orders SET {changed} WHERE id = {id}")
        orders.check("pairs")
        [merge] = [s for s in orders.statements if s.startswith("MERGE")]
        assert (listed in merge) == is_listed
        orders.check("pairs", "NO_DATA")


def test_a_join_follows_both_sides(orders: SparkShop) -> None:
    orders.table("customers", "name string, country string", "('a', 'x')", "('b', 'y')")
    orders.model(
        "joined",
        "select o.id, c.country, o.amount from orders o join customers c on o.customer = c.name",
    )
    orders.check("joined", "FULL")
    orders.run("INSERT INTO orders VALUES (9, 'a', 9), (10, 'c', 1)")
    orders.check("joined")
    orders.run("INSERT INTO customers VALUES ('c', 'z')", "INSERT INTO orders VALUES (11, 'c', 2)")
    outcome = orders.check("joined")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (2, 0)
    orders.run(
        "MERGE INTO customers t USING (SELECT 'a' n UNION ALL SELECT 'q') s ON t.name = s.n "
        "WHEN MATCHED THEN UPDATE SET country = 'w' WHEN NOT MATCHED THEN "
        "INSERT (name, country) VALUES (n, 'q')",
        "DELETE FROM orders WHERE id = 1",
    )
    orders.check("joined")
    orders.check("joined", "NO_DATA")


def test_views_below_a_table_are_part_of_its_query(orders: SparkShop) -> None:
    orders.table("customers", "name string, country string", "('a', 'x')", "('b', 'y')")
    view = "CREATE OR REPLACE VIEW"
    orders.run(
        f"{view} large AS SELECT id, customer AS name, amount FROM orders WHERE amount > 5",
        f"{view} placed (number, place, paid) AS SELECT l.id, c.country, l.amount FROM large l "
        "JOIN customers c ON l.name = c.name WHERE c.country <> 'z'",
    )
    orders.model("shown", "select number, place, paid * 2 as twice from placed where number < 9")
    orders.check("shown", "FULL")
    orders.run(
        "INSERT INTO orders VALUES (4, 'a', 7), (5, 'a', 1), (10, 'a', 8), (6, 'c', 9)",
        "UPDATE customers SET country = 'w' WHERE name = 'b'",
        "DELETE FROM orders WHERE id = 1",
    )
    outcome = orders.check("shown")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (3, 3)
    # The same in other words, two views down.
    orders.run(
        f"{view} large AS WITH o AS (SELECT * FROM orders) "
        "SELECT o.id, o.customer AS name, o.amount FROM o WHERE (5 < o.amount) -- the large ones"
    )
    orders.check("shown", "NO_DATA")
    orders.run("INSERT INTO customers VALUES ('c', 'q')")
    outcome = orders.check("shown")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (1, 0)
    orders.run(f"{view} large AS SELECT id, customer AS name, amount FROM orders WHERE amount > 8")
    why = orders.check("shown", "REINITIALIZE").plan.decision.reason
    assert why.code == "DEFINITION_CHANGED"


def test_a_rewrite_with_few_differences_is_a_small_change(orders: SparkShop) -> None:
    orders.model("copy", "select * from orders")
    orders.check("copy", "FULL")
    orders.run(
        "INSERT OVERWRITE orders VALUES (1, 'a', 10), (2, 'b', 20), (2, 'b', 20), (4, 'd', 4)"
    )
    outcome = orders.check("copy")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (1, 1)
    orders.run("TRUNCATE TABLE orders")
    orders.check("copy")


@pytest.mark.nightly
def test_a_source_without_change_feed_is_compared(shop: SparkShop) -> None:
    shop.table("plain", "a int", "(1)", "(1)", "(2)", feed=False)
    shop.model("copy", "select a from plain")
    shop.check("copy", "FULL")
    shop.run("DELETE FROM plain WHERE a = 2", "INSERT INTO plain VALUES (3), (1)")
    outcome = shop.check("copy")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (2, 1)


@pytest.mark.nightly
def test_a_change_that_was_taken_back_writes_nothing(orders: SparkShop) -> None:
    orders.model("copy", "select id, customer from orders")
    orders.check("copy", "FULL")
    orders.run("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    orders.check("copy", "NO_DATA")
    orders.check("copy", "NO_DATA")


@pytest.mark.nightly
def test_a_union_keeps_its_types(shop: SparkShop) -> None:
    shop.table("whole", "a int", "(1)")
    shop.table("exact", "a decimal(10,2)", "(1.00)", "(2.50)")
    shop.model("both", "select a from whole union all select a from exact")
    shop.check("both", "FULL")
    shop.run("INSERT INTO whole VALUES (2), (1)")
    shop.check("both")
    shop.run("DELETE FROM whole WHERE a = 1", "DELETE FROM exact WHERE a = 1")
    outcome = shop.check("both")
    assert outcome.rows_deleted == 3


def test_a_union_of_dynamic_tables(shop: SparkShop) -> None:
    shop.table("t", "a int, b string", "(1, 'x')", "(2, 'y')")
    shop.model("low", "select a, b from t where a < 2")
    shop.model("high", "select a, b from t where a >= 2")
    shop.model("all_of_them", "select * from low union all select a, b from high")
    for name in shop.models:
        shop.check(name, "FULL")
    shop.run("INSERT INTO t VALUES (0, 'z'), (3, 'z')", "DELETE FROM t WHERE a = 1")
    for name in shop.models:
        shop.check(name)


@pytest.mark.nightly
def test_maps_are_told_apart_by_their_entries(shop: SparkShop) -> None:
    shop.table(
        "tagged",
        "id int, tags map<string, array<int>>",
        "(1, map('a', array(1), 'b', array(2)))", "(2, map('b', array(1), 'a', array(2)))",
        "(3, map('a', NULL))", "(4, map('a', array(NULL)))", "(5, map())", "(6, NULL)",
    )  # fmt: skip
    shop.model("tags", "select tags from tagged")
    shop.refresh("tags")
    shown = "SELECT to_json(tags) AS tags FROM"
    for id in (1, 3, 5):
        shop.run(f"DELETE FROM tagged WHERE id = {id}")
        outcome = shop.refresh("tags")
        assert outcome.plan.decision.action == "INCREMENTAL"
        assert (outcome.rows_inserted, outcome.rows_deleted) == (0, 1)
        stored, wanted = (shop.session.sql(f"{shown} {t}").collect() for t in ("tags", "tagged"))
        assert bag(stored) == bag(wanted)


@pytest.mark.nightly
def test_sources_may_have_deletion_vectors(shop: SparkShop) -> None:
    shop.table("marked", "a int, b int", "(1, 1)", "(2, 2)", "(3, 3)", "(4, 4)")
    shop.run(
        "ALTER TABLE marked SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "DELETE FROM marked WHERE a = 1",
    )
    shop.model("copied", "select x.a, y.b from marked x join marked y on x.a = y.a")
    shop.check("copied", "FULL")
    shop.run("DELETE FROM marked WHERE a = 2", "INSERT INTO marked VALUES (5, 5)")
    shop.check("copied")


@pytest.mark.nightly
def test_columns_may_have_any_name(shop: SparkShop) -> None:
    shop.table("odd", "rank int, net int, copy int, available int", "(1, 1, 1, 1)", feed=False)
    shop.model("copied", "select * from odd")
    shop.check("copied", "FULL")
    shop.run("UPDATE odd SET net = 2")
    shop.check("copied")


@pytest.mark.nightly
def test_a_rebuild_with_the_same_rows_is_no_change_for_readers(orders: SparkShop) -> None:
    orders.model("copy", "select id, amount from orders")
    orders.model("reader", f"select id from {orders.schema}.copy where amount > 1")
    for name in ("copy", "reader"):
        orders.check(name, "FULL")
    orders.check("copy", "NO_DATA")
    assert orders.action("copy", full_refresh=True) == "FULL"
    orders.check("reader", "NO_DATA")
