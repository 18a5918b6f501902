"""A dynamic table that was built anew is, for its readers, the difference to what it was."""

import pytest
from spark_shop import SparkShop


@pytest.mark.nightly
def test_readers_follow_a_new_generation(shop: SparkShop) -> None:
    shop.table("t", "a int, b int", "(1, 10)", "(2, 20)", "(2, 20)")
    shop.model("up", "select a, b from t")
    shop.model("kept", "select a, b from up where a > 0")
    shop.model("counted", "select count(*) as n from up")
    for name in ("up", "kept", "counted"):
        shop.check(name, "FULL")

    # A further column: another table, with the same rows in those that are read.
    shop.model("up", "select a, b, a + b as c from t")
    assert shop.check("up", "REINITIALIZE").plan.generation == 2
    shop.check("kept", "NO_DATA")
    shop.check("counted", "NO_DATA")

    shop.run("INSERT INTO t VALUES (3, 30)", "DELETE FROM t WHERE a = 1")
    shop.check("up")
    shop.check("kept")

    # Other rows as well, and a reader that lags behind by a generation.
    shop.model("up", "select a, b, true as d from t where b <> 30")
    assert shop.check("up", "REINITIALIZE").plan.generation == 3
    outcome = shop.check("kept")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (0, 1)
    shop.check("counted")


@pytest.mark.nightly
def test_other_types_or_a_condition_cannot_be_compared(shop: SparkShop) -> None:
    shop.table("t", "a int, b int", "(1, 10)", "(2, 20)")
    shop.model("up", "select a, sum(b) as b from t group by a")
    shop.model("kept", "select a, cast(b as bigint) as b from up", refresh_mode="auto")
    for name in ("up", "kept"):
        shop.check(name, "FULL")
    shop.model("up", "select a, sum(cast(b as decimal(10, 2))) as b from t group by a")
    shop.check("up", "REINITIALIZE")
    assert shop.check("kept", "REINITIALIZE").plan.decision.reason.code == "UPSTREAM_REBUILT"
    shop.model(
        "up", "select a, sum(cast(b as decimal(10, 2))) as b from t group by a having a > 1"
    )
    shop.check("up", "REINITIALIZE")
    assert shop.check("kept", "REINITIALIZE").plan.decision.reason.code == "UPSTREAM_REBUILT"


@pytest.mark.nightly
def test_a_reader_may_lag_behind_by_many_refreshes(shop: SparkShop) -> None:
    shop.table("t", "a int", "(0)")
    shop.model("up", "select a from t")
    shop.model("kept", "select a + 1 as b from up")
    for name in ("up", "kept"):
        shop.check(name, "FULL")
    for number in range(1, 12):
        shop.run(f"INSERT INTO t VALUES ({number})")
        assert shop.action("up") == "INCREMENTAL"
    shop.check("kept")
