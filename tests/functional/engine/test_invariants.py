"""What cannot be right makes the one statement that writes raise, and nothing commits.

The statements are the engine's own, over changes that no sources have.
"""

from typing import Any

import pytest
from spark_shop import SparkShop

from spark_dynamic.apply.groups import Groups
from spark_dynamic.apply.rows import Rows
from spark_dynamic.names import TableName


def built(shop: SparkShop, name: str, sql: str) -> tuple[Any, TableName]:
    """Build a model; what writes it, and where."""
    shop.model(name, sql)
    plan = shop.refresh(name).plan
    assert plan.maintenance is not None
    return plan.maintenance.target, plan.storage


def raises(shop: SparkShop, code: str, merge: str) -> None:
    with pytest.raises(Exception, match=code):
        shop.session.sql(merge).collect()


def changes(target: Groups, *rows: str) -> str:
    """The changes of groups from rows: two columns and a weight."""
    ids = ", ".join((*target.shape.aggregate.input.columns, "__dyn_weight"))
    delta = f"SELECT * FROM VALUES {', '.join(rows)} AS v({ids})"
    return f"({target.changes(delta, insert_only=False)})"


def recomputed(target: Groups, *rows: str) -> str:
    ids = ", ".join(target.shape.aggregate.input.columns)
    found = target.recomputed(f"SELECT * FROM VALUES {', '.join(rows)} AS v({ids})")
    return f"({found})"


def test_groups(shop: SparkShop) -> None:
    shop.table("t", "a int, b int", "(1, 1)", "(2, 2)")
    target, storage = built(shop, "sums", "select a, sum(b) as s, max(b) as m from t group by a")
    for row in ("(1, 1, -1), (1, 1, -1)", "(3, 1, -1)"):
        merge = target.merge(storage, changes(target, row), "", {})
        raises(shop, "GROUP_COUNT_NEGATIVE", merge)
    # One row more, and one row less, than are found in the group when it is computed again.
    for rows, again in (
        ("(1, 5, 1)", "(1, 5)"),
        ("(2, 2, -1)", "(2, 2)"),
        ("(4, 4, 1)", "(4, 4), (4, 4)"),
    ):
        merge = target.merge(storage, changes(target, rows), recomputed(target, again), {})
        raises(shop, "GROUP_COUNT_DIFFERENT", merge)
    # A group lost its extreme and has to be computed again, but none of its rows is found.
    stale = f"(SELECT 1 AS {', '.join(target.keys)})"
    found = recomputed(target, "(9, 9)")
    merge = target.merge(storage, changes(target, "(1, 5, 1)"), found, {}, stale)
    raises(shop, "GROUP_NOT_FOUND", merge)
    floats, storage = built(shop, "means", "select a, avg(b / 3e0) as m from t group by a")
    assert floats.always_recomputed
    merge = floats.merge(storage, changes(floats, "(1, 5, 1)"), recomputed(floats, "(9, 9)"), {})
    raises(shop, "GROUP_COUNT_DIFFERENT", merge)


def test_rows(shop: SparkShop) -> None:
    shop.table("t", "a int, b int", "(1, 1)", "(2, 2)")
    target, storage = built(shop, "m", "select a, b from t")
    assert isinstance(target, Rows)

    def merge(*rows: str) -> str:
        delta = f"SELECT * FROM VALUES {', '.join(rows)} AS v(a, b, __dyn_weight)"
        net = f"({target.consolidated(delta, ('a', 'b'))})"
        newest = shop.session.sql(f"DESCRIBE HISTORY {storage.sql} LIMIT 1").first()
        return target.merge(storage, newest["version"], net, 9, {})

    raises(shop, "DELETED_ROW_MISSING", merge("(3, 3, -1)"))
    raises(shop, "DELETED_ROW_MISSING", merge("(1, 1, -2)", "(5, 5, 1)"))
    shop.run(f"INSERT INTO {storage.sql} SELECT * FROM {storage.sql} WHERE a = 2")
    raises(shop, "ROW_STORED_TWICE", merge("(2, 2, -1)"))
    shop.run(merge("(1, 1, -1)"))


def test_a_sum_that_overflows(shop: SparkShop) -> None:
    most = "9" * 35 + ".99"
    shop.table("t", "a int, b decimal(38,2)", f"(1, {most})")
    target, storage = built(shop, "sums", "select a, sum(b) as s from t group by a")
    shop.run("SET spark.sql.ansi.enabled = false")
    try:
        for row in (f"(1, 9{most}BD, 1)", f"(2, 9{most}BD, 1), (2, 9{most}BD, 1)"):
            raises(shop, "SUM_OVERFLOW", target.merge(storage, changes(target, row), "", {}))
    finally:
        shop.run("SET spark.sql.ansi.enabled = true")
