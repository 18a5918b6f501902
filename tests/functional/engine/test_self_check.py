"""The engine compares its first refreshes with the query, and does not go on if they differ."""

import pytest
from spark_shop import SparkShop

from spark_dynamic.apply.groups import Groups
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.refresh import self_check
from spark_dynamic.refresh.difference import Comparison


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


def test_a_wrong_first_build_is_found_and_built_as_the_query_says(
    shop: SparkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "FIRST", 2)
    shop.table("t", "a int, b int", "(1, 1)", "(1, 2)")
    sql = "select a, sum(b) as total from t group by a"
    shop.model("right", sql, refresh_mode="auto")
    assert shop.check("right", "FULL").plan.decision.reason.code == "INITIAL_BUILD"
    build = Groups.build
    monkeypatch.setattr(
        Groups, "build", lambda self, rows: build(self, rows).replace("sum(", "max(")
    )
    shop.model("m", sql, refresh_mode="auto")
    reason = shop.check("m", "REINITIALIZE").plan.decision.reason
    assert reason.code == "SELF_CHECK_FAILED"
    shop.run("INSERT INTO t VALUES (1, 7)")
    assert shop.check("m", "FULL").plan.decision.reason.code == "SELF_CHECK_FAILED"


def test_a_full_refresh_that_was_asked_for_trusts_the_query_again(
    shop: SparkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "FIRST", 2)
    monkeypatch.setattr("spark_dynamic.refresh.plan.cheaper_full", lambda *_: None)
    shop.table("t", "a int, b int", "(1, 1)", "(1, 2)")
    shop.model("m", "select a, sum(b) as total from t group by a", refresh_mode="auto")
    build = Groups.build
    with monkeypatch.context() as broken:
        broken.setattr(
            Groups, "build", lambda self, rows: build(self, rows).replace("sum(", "max(")
        )
        shop.check("m", "REINITIALIZE")
        # What is still wrong is found again, and not trusted any longer than before.
        reason = shop.refresh("m", full_refresh=True).plan.decision.reason
        assert reason.code == "SELF_CHECK_FAILED"
    shop.run("INSERT INTO t VALUES (1, 7)")
    assert shop.check("m", "FULL").plan.decision.reason.code == "SELF_CHECK_FAILED"
    assert shop.refresh("m", full_refresh=True).plan.decision.reason.code == "REQUESTED"
    shop.run("INSERT INTO t VALUES (1, 8)")
    shop.check("m")


def test_a_delta_that_is_wrongly_empty_is_found(
    shop: SparkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "FIRST", 2)
    monkeypatch.setattr("spark_dynamic.refresh.plan.cheaper_full", lambda *_: None)
    shop.table("t", "a int, b int", "(1, 1)")
    shop.model("m", "select a, sum(b) as total from t group by a", refresh_mode="auto")
    shop.check("m", "FULL")
    right = Groups.changes
    monkeypatch.setattr(
        Groups, "changes", lambda self, rows, only: f"{right(self, rows, only)} HAVING false"
    )
    shop.run("INSERT INTO t VALUES (2, 5)")
    assert shop.check("m", "REINITIALIZE").plan.decision.reason.code == "SELF_CHECK_FAILED"


@pytest.mark.parametrize("trouble", ["forbidden", "killed"])
def test_wrong_rows_are_not_forgotten_until_they_are_rebuilt(
    shop: SparkShop, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    monkeypatch.setattr(self_check, "FIRST", 2)
    shop.table("t", "a int, b int", "(1, 1)")
    shop.model("m", "select a, sum(b) as total from t group by a")
    shop.check("m", "FULL")
    shop.run("INSERT INTO t VALUES (1, 5), (1, 6)")
    right = Groups.changes
    with monkeypatch.context() as broken:
        broken.setattr(
            Groups,
            "changes",
            lambda self, rows, only: right(self, rows, only).replace("sum(", "max("),
        )
        if trouble == "killed":
            broken.setattr("spark_dynamic.refresh.run.as_full", None)
            with pytest.raises(TypeError):
                shop.refresh("m")
        else:
            with pytest.raises(EngineError, match="SELF_CHECK_FAILED.*'a': 1"):
                shop.refresh("m", full_refresh_forbidden=True)
    if trouble == "forbidden":
        with pytest.raises(EngineError, match="SELF_CHECK_FAILED.*'a': 1"):
            shop.refresh("m", full_refresh_forbidden=True)
    reason = shop.check("m", "REINITIALIZE").plan.decision.reason
    assert reason.code == "SELF_CHECK_FAILED" and "'a': 1" in reason.sentence
    assert shop.action("m") == "NO_DATA"


@pytest.mark.nightly
def test_later_refreshes_and_large_sources_are_not_checked(
    shop: SparkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    verify = self_check.verify

    def note(request, *others):
        checked.append(request.model)
        return verify(request, *others)

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


def test_floating_point_numbers_are_compared_in_pairs(shop: SparkShop) -> None:
    types = (("k", "int"), ("x", "double"), ("y", "float"))
    comparison = Comparison(tuple(StoredColumn(name, name, type) for name, type in types))
    close = {
        "(1, 1e20D, 1F)": "(1, 1e20D + 1e10D, 1F)",
        "(2, 5.5e-17D, NULL)": "(2, 0D, NULL)",
        "(3, double('nan'), float('infinity'))": "(3, double('nan'), float('infinity'))",
        "(4, 1D, 1F), (4, 2D, 2F)": "(4, 2.0000000000001D, 2F), (4, 1D, 1F)",
        "(NULL, 1D, NULL)": "(NULL, 1.0000000000001D, NULL)",
    }
    apart = {
        "(5, 1e20D, 1F)": "(5, 1e20D + 1e12D, 1F)",
        "(6, double('infinity'), 1F)": "(6, 1D, 1F)",
        "(7, double('nan'), 1F)": "(7, 1D, 1F)",
        "(8, 1D, NULL)": "(8, 1D, 1F)",
        "(9, 1D, 1F), (9, 1D, 1F)": "(9, 1.0000000000001D, 1F)",
    }

    def both(rows: dict[str, str]) -> tuple[str, str]:
        sides = (rows.keys(), rows.values())
        one, other = (f"SELECT * FROM VALUES {', '.join(s)} AS v(k, x, y)" for s in sides)
        return one, other

    one, other = both(close | apart)
    found = shop.session.sql(comparison.query(one, other)).collect()
    assert sorted(row["c0"] for row in found) == [5, 5, 6, 6, 7, 7, 8, 8, 9, 9]
    assert sorted(row["copies"] for row in found if row["c0"] == 9) == [-1, 2]
    many = "SELECT id AS k, id + 1e-12D AS x, float(1) AS y FROM range(1, 30000)"
    found = shop.session.sql(comparison.query(many, many.replace("1e-12D", "0D"))).collect()
    assert found == []


def test_what_reads_wrong_rows_waits_until_they_are_rebuilt(
    shop: SparkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "FIRST", 2)
    shop.table("t", "a int, b int", "(1, 1)")
    shop.model("m", "select a, sum(b) as total from t group by a")
    shop.model("reader", "select a, total from m where total > 0")
    shop.check("m", "FULL")
    shop.check("reader", "FULL")
    shop.run("INSERT INTO t VALUES (1, 5), (1, 6)")
    right = Groups.changes
    with monkeypatch.context() as broken:
        broken.setattr(
            Groups,
            "changes",
            lambda self, rows, only: right(self, rows, only).replace("sum(", "max("),
        )
        with pytest.raises(EngineError, match="SELF_CHECK_FAILED"):
            shop.refresh("m", full_refresh_forbidden=True)
    assert shop.action("reader") == "WAITING"
    shop.check("m", "REINITIALIZE")
    assert shop.action("reader") != "WAITING"
    assert shop.difference("reader") == []
