"""The engine compares its first refreshes with the query, and does not go on if they differ."""

import pytest
from spark_shop import SparkShop

from spark_dynamic.apply.groups import Groups
from spark_dynamic.errors import EngineError
from spark_dynamic.refresh import self_check


def test_a_wrong_refresh_is_found_rebuilt_and_not_tried_again(
    shop: SparkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "FIRST", 2)
    shop.table("t", "a int, b int", "(1, 1)", "(2, 2)")
    shop.model("m", "select a, sum(b) as total from t group by a", refresh_mode="auto")
    monkeypatch.setattr("spark_dynamic.refresh.plan.cheaper_full", lambda *_: None)
    shop.check("m", "FULL")
    shop.run("INSERT INTO t VALUES (1, 5)")
    shop.check("m")

    right = Groups.changes
    monkeypatch.setattr(
        Groups, "changes", lambda self, rows, only: right(self, rows, only).replace("sum(", "max(")
    )
    shop.run("INSERT INTO t VALUES (1, 5), (1, 6)")
    reason = shop.check("m", "REINITIALIZE").plan.decision.reason
    assert reason.code == "SELF_CHECK_FAILED"
    assert "'a': 1" in reason.sentence

    monkeypatch.setattr(Groups, "changes", right)
    shop.run("INSERT INTO t VALUES (1, 7)")
    assert shop.check("m", "FULL").plan.decision.reason.code == "SELF_CHECK_FAILED"
    sql, _ = shop.models["m"]
    shop.model("m", sql, refresh_mode="incremental")
    shop.run("INSERT INTO t VALUES (1, 8)")
    with pytest.raises(EngineError, match="SELF_CHECK_FAILED"):
        shop.refresh("m")


@pytest.mark.nightly
def test_later_refreshes_and_large_sources_are_not_checked(
    shop: SparkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    verify = self_check.verify

    def note(request, cycle, warehouse):
        checked.append(request.model)
        return verify(request, cycle, warehouse)

    monkeypatch.setattr(self_check, "verify", note)
    monkeypatch.setattr(self_check, "FIRST", 1)
    shop.table("t", "a int", "(1)")
    shop.model("m", "select a from t")
    shop.check("m", "FULL")
    for number in (2, 3):
        shop.run(f"INSERT INTO t VALUES ({number})")
        shop.check("m")
    assert checked == ["model.shop.m"]
    monkeypatch.setattr(self_check, "FIRST", 10)
    monkeypatch.setattr(self_check, "CHEAP", 3)
    shop.run("INSERT INTO t VALUES (4)")
    shop.check("m")
    assert checked == ["model.shop.m"]
