"""Queries that programs write follow changes on Spark, too; and planning may fail."""

import pytest
from spark_shop import SparkShop

from spark_dynamic.refresh import maintenance


@pytest.fixture
def orders(shop: SparkShop) -> SparkShop:
    for table in ("orders", "returns", "gifts"):
        shop.table(table, "id INT, k INT, amount INT", "(1, 1, 10)", "(2, 2, 20)", "(3, 3, 30)")
    return shop


def change(shop: SparkShop) -> None:
    shop.run(
        "INSERT INTO orders VALUES (4, 4, 40), (5, 1, 50)",
        "UPDATE returns SET amount = amount + 1 WHERE id = 2",
        "DELETE FROM gifts WHERE id = 1",
    )


def test_two_hundred_branches_of_a_union_follow_changes(orders: SparkShop) -> None:
    tables = ("orders", "returns", "gifts")
    branches = [
        f"SELECT id, k + {i} AS k, amount FROM {tables[i % 3]} WHERE amount > {i % 40}"
        for i in range(200)
    ]
    orders.model("all_of_them", "\nUNION ALL\n".join(branches))
    orders.check("all_of_them", "FULL")
    change(orders)
    orders.check("all_of_them")


def test_six_hundred_conditions_follow_changes(orders: SparkShop) -> None:
    conditions = " AND ".join(f"(k <> {i} OR amount > {i})" for i in range(3, 603))
    orders.model("chosen", f"SELECT id, amount FROM orders WHERE {conditions}")
    orders.check("chosen", "FULL")
    change(orders)
    orders.check("chosen")


def test_thirty_joins_follow_changes(orders: SparkShop) -> None:
    """Spark itself plans more of them for minutes."""
    joins = " ".join(f"JOIN gifts g{i} ON g{i}.id = o.id" for i in range(29))
    orders.model("joined", f"SELECT o.id, o.amount FROM orders o {joins}")
    orders.check("joined", "FULL")
    orders.run("INSERT INTO orders VALUES (2, 9, 90), (7, 9, 90)")
    orders.check("joined")


def test_sixty_nested_queries_follow_changes(orders: SparkShop) -> None:
    query = "SELECT id, k, amount FROM orders"
    for i in range(60):
        query = f"SELECT id, k + 1 AS k, amount FROM (\n{query}\n) AS q{i} WHERE k >= {i}"
    orders.model("nested", query)
    orders.check("nested", "FULL")
    change(orders)
    orders.check("nested")


def test_values_pass_through_all_types_of_a_chain_of_unions(shop: SparkShop) -> None:
    """0.45 becomes 0.5 and then 1; at once it would become 0."""
    shop.table("hundredths", "x DECIMAL(38,2)", "(0.45)")
    shop.table("tenths", "x DECIMAL(38,1)", "(0.4)")
    shop.table("wholes", "x DECIMAL(38,0)", "(7)")
    chain = (
        "SELECT x FROM hundredths UNION ALL SELECT x FROM tenths UNION ALL SELECT x FROM wholes"
    )
    shop.model("together", f"{chain} UNION ALL SELECT x FROM wholes")
    shop.check("together", "FULL")
    assert shop.session.sql("SELECT count(*) FROM together WHERE x = 1").collect()[0][0] == 1
    for table, value in (("hundredths", "1.45"), ("tenths", "1.5"), ("wholes", "8")):
        shop.run(f"INSERT INTO {table} VALUES ({value})")
        shop.check("together")
    shop.run("DELETE FROM hundredths WHERE x = 0.45")
    shop.check("together")


def test_what_is_nested_too_deeply_for_the_engine_runs_as_it_is(orders: SparkShop) -> None:
    value = f"{'abs(' * 90}amount{')' * 90}"
    orders.model("nested", f"SELECT id, {value} AS x FROM orders", refresh_mode="auto")
    for _ in range(2):
        reason = orders.check("nested", "FULL").plan.decision.reason
        assert reason.code == "PLANNING_FAILED" and "RecursionError" in reason.sentence
        change(orders)


@pytest.mark.parametrize("error", [RecursionError, KeyError])
def test_a_refresh_whose_planning_fails_is_a_full_one(
    error: type[Exception], orders: SparkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    totals = "SELECT k, sum(amount) AS total FROM orders GROUP BY k"
    orders.model("totals", totals, refresh_mode="auto")
    orders.check("totals", "FULL")

    def fails(*_: object) -> str:
        raise error("planted")

    with monkeypatch.context() as patched:
        patched.setattr(maintenance, "fingerprint", fails)
        for number in (1, 2):
            change(orders)
            decision = orders.check(
                "totals", "REINITIALIZE" if number == 1 else "FULL"
            ).plan.decision
            assert decision.reason.code == "PLANNING_FAILED"
        orders.check("totals", "NO_DATA")
    change(orders)
    orders.check("totals", "REINITIALIZE")
    orders.models["totals"] = (totals, {"refresh_mode": "incremental"})
    change(orders)
    orders.check("totals")
