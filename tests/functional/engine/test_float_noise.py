"""Sums of floating-point numbers: what their rounding explains is no difference."""

import pytest
from spark_shop import SparkShop

from spark_dynamic.apply.groups import Groups
from spark_dynamic.refresh import self_check

# Every posting has a counter-posting, so that balances come out near 0.
_POSTINGS = (
    "SELECT CAST(id % 4 AS int) AS account, (id * 7919 % 1000003) * 1e6D / 3 AS amount "
    "FROM range({start}, {end}, 1, {files}) "
    "UNION ALL SELECT CAST(id % 4 AS int), -(id * 7919 % 1000003) * 1e6D / 3 "
    "FROM range({start}, {end}, 1, 5)"
)


@pytest.fixture
def ledger(shop: SparkShop, monkeypatch: pytest.MonkeyPatch) -> SparkShop:
    monkeypatch.setattr(self_check, "FIRST", 3)
    monkeypatch.setattr("spark_dynamic.refresh.plan.cheaper_full", lambda *_: None)
    shop.table("postings", "account int, amount double")
    post(shop, 0, 100_000)
    return shop


def post(shop: SparkShop, start: int, end: int, files: int = 3) -> None:
    shop.run(f"INSERT INTO postings {_POSTINGS.format(start=start, end=end, files=files)}")


def test_sums_that_cancel_are_compared_by_the_size_of_their_summands(ledger: SparkShop) -> None:
    ledger.model(
        "balances",
        "select account, sum(amount) as balance, round(avg(amount), 3) as average, "
        "cast(sum(amount) as decimal(30, 6)) as exact, count(*) as n "
        "from postings group by account",
        refresh_mode="auto",
    )
    assert ledger.action("balances") == "FULL"
    for number in range(2):
        post(ledger, 100_000 + number, 100_001 + number)
        decision = ledger.refresh("balances").plan.decision
        assert decision.action == "INCREMENTAL", str(decision.reason)


def test_wrong_sums_of_small_numbers_are_found(
    shop: SparkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "FIRST", 2)
    monkeypatch.setattr("spark_dynamic.refresh.plan.cheaper_full", lambda *_: None)
    shop.table("t", "a int, x double", "(1, 1e-12D)")
    shop.model("m", "select a, sum(x) as total from t group by a", refresh_mode="auto")
    shop.check("m", "FULL")
    right = Groups.recomputed
    monkeypatch.setattr(
        Groups,
        "recomputed",
        lambda self, rows, further=(): right(self, rows, further).replace("sum(`", "max(`"),
    )
    shop.run("INSERT INTO t VALUES (1, 2e-12D)")
    reason = shop.refresh("m").plan.decision.reason
    assert reason.code == "SELF_CHECK_FAILED"
