"""Constraints of a contract, checked by Delta: bad rows fail every refresh and change nothing."""

from typing import Any

import pytest
from spark_shop import SparkShop

from spark_dynamic.apply.constraints import Constraint, check, not_null
from spark_dynamic.errors import EngineError


def refused(shop: SparkShop, name: str, *constraints: Constraint, times: int = 1) -> None:
    """Require the error on every refresh, and the same table after each."""
    before = contents(shop, name)
    for _ in range(times):
        with pytest.raises(EngineError, match=r"^CONSTRAINT_VIOLATED: Rows of .* break"):
            shop.refresh(name, constraints=constraints)
        assert contents(shop, name) == before


def contents(shop: SparkShop, name: str) -> Any:
    if not shop.session.catalog.tableExists(f"{shop.schema}.{name}"):
        return None
    return sorted(map(str, shop.session.sql(f"TABLE {name}").collect()))


def storages(shop: SparkShop) -> list[str]:
    found = shop.session.sql("SHOW TABLES").collect()
    return sorted(row.tableName for row in found if "__dyn" in row.tableName)


def test_rows_that_break_a_constraint_are_never_shown(
    shop: SparkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_dynamic.refresh.plan.cheaper_full", lambda *_: None)
    shop.table("t", "a int, b int", "(1, 10)", "(2, 20)", "(3, -1)")
    shop.model("kept", "select a as `a``k`, b as `b, x` from t", refresh_mode="auto")
    checks = (not_null("b, x"), check("`B, x` > 0 and `a``k` <> 0", "Positive"))
    refused(shop, "kept", *checks)
    assert storages(shop) == []
    shop.run("DELETE FROM t WHERE b < 0")
    assert shop.action("kept", constraints=checks) == "FULL"

    # An append and a merge are refused, and are not tried once more as a rebuild.
    shop.run("INSERT INTO t VALUES (4, null)")
    refused(shop, "kept", *checks, times=2)
    assert storages(shop) == ["kept__dyn"]
    shop.run("DELETE FROM t WHERE a = 4", "UPDATE t SET b = -5 WHERE a = 1")
    refused(shop, "kept", *checks)
    shop.run("UPDATE t SET b = 5 WHERE a = 1")
    assert shop.action("kept", constraints=checks) == "INCREMENTAL"

    # A further one meets rows that break it, and that changes of this very run mend.
    further = (*checks, check("`a``k` < 2"))
    shop.run("DELETE FROM t WHERE a = 2")
    outcome = shop.refresh("kept", constraints=further)
    assert outcome.plan.decision.reason.code == "CONSTRAINTS_CHANGED"
    assert shop.difference("kept") == []
    assert shop.action("kept", constraints=further) == "NO_DATA"
    # And one that is gone lets in what it kept out.
    shop.run("INSERT INTO t VALUES (0, -1)")
    shop.refresh("kept")
    assert shop.difference("kept") == []


def test_rows_that_the_view_leaves_out_may_break_a_constraint(shop: SparkShop) -> None:
    shop.table("t", "a int, b int", "(1, 10)", "(2, 20)", "(3, -1)")
    shop.model("sums", "select a, sum(b) as s from t group by a having sum(b) > 0")
    positive = (check("s > 0"),)
    assert shop.action("sums", constraints=positive) == "FULL"
    shop.run("INSERT INTO t VALUES (4, -7), (5, 7)", "UPDATE t SET b = -2 WHERE a = 2")
    assert shop.action("sums", constraints=positive) == "INCREMENTAL"
    assert shop.difference("sums") == []
