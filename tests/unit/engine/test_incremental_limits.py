"""What an incremental refresh finds out only when it is about to write: that it had better not."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from fake_shop import Shop, small_shop

from spark_dynamic.apply.rows import Rows
from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import scans
from spark_dynamic.refresh import cost, incremental
from spark_dynamic.refresh.incremental import Work, Write, incremental_statement
from spark_dynamic.refresh.maintenance import Maintenance
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.pin import Query as Text
from spark_dynamic.sql.references import find_references
from spark_dynamic.support import NotIncremental, reason
from spark_dynamic.warehouse import Column

OLD, NEW = 3, 5
JOINED = "select t.b, u.b as c from t join u on t.a = u.a"
COUNTED = (
    "select x.n, u.b from (select a, count(*) as n from t group by a) as x join u on x.a = u.a"
)


class OneRow:
    """A warehouse in which every question is answered by 1."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def execute(self, sql: str) -> None:
        self.statements.append(sql)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [defaultdict(lambda: "1")]


def work_of(sql: str, beyond: Iterable[str] = ()) -> Work:
    """Return the refresh of a query all of whose tables have columns a and b, and have changed."""

    def columns_of(table: TableName) -> tuple[Column, ...]:
        return (Column("a", "int"), Column("b", "int"))

    query = bind(Text(sql, find_references(sql, "shop"), {}), "shop", columns_of)
    tables = {scan.table for scan in scans(query.plan)}
    columns = tuple(StoredColumn(name, name, "int") for name in query.names)
    return Work(
        maintenance=Maintenance(query, "", Rows(columns)),
        storage=TableName("shop", "result__dyn"),
        version=7,
        refresh=8,
        intervals={table: Interval(table, OLD, NEW, Kind.CHANGES) for table in tables},
        versions=dict.fromkeys(tables, NEW),
        beyond_travel=frozenset(TableName("shop", name) for name in beyond),
    )


def prepared(work: Work) -> list[str]:
    """Return all statements of a refresh."""
    warehouse: Any = OneRow()
    with incremental_statement(work, warehouse) as write:
        assert isinstance(write, Write)
        return [*warehouse.statements, write.statement]


def reads_old(statements: list[str]) -> bool:
    return any(f"`u` VERSION AS OF {OLD}" in sql or f"`t` VERSION AS OF {OLD}" in sql
               for sql in statements)  # fmt: skip


@pytest.mark.parametrize("beyond", [["t"], ["u"], ["t", "u"]])
def test_groups_below_need_the_old_version_of_all_sources(beyond: list[str]) -> None:
    assert reads_old(prepared(work_of(COUNTED)))
    with pytest.raises(NotIncremental) as error:
        prepared(work_of(COUNTED, beyond))
    names = ", ".join(f"shop.{name}" for name in beyond)
    assert error.value.reason == reason("HISTORY_LOST", names)


def test_rows_do_without_an_old_version_that_is_gone() -> None:
    assert not reads_old(prepared(work_of(JOINED, ["t", "u"])))


@pytest.mark.parametrize(
    ("stored", "is_adaptive", "is_compiled"),
    [(20_000, False, False), (20_001, False, True), (200_000, False, True), (200_001, True, True)],
)
def test_the_fewer_rows_are_stored_the_less_is_planned(
    stored: int, is_adaptive: bool, is_compiled: bool
) -> None:
    work = replace(work_of(JOINED), rows_stored=lambda: stored)
    warehouse: Any = OneRow()
    with incremental_statement(work, warehouse) as write:
        assert write is not None and write.statement.startswith("MERGE")
        assert ("spark.sql.adaptive.enabled" not in write.settings) == is_adaptive
        assert ("spark.sql.codegen.wholeStage" not in write.settings) == is_compiled


def test_a_statement_that_takes_too_long_to_plan_is_not_run() -> None:
    """Each of n groups in a join has a term for its own changes, in which the others are read."""

    def work(n: int) -> Work:
        groups = [f"(select a, count(*) as n from t{i} group by a) as x{i}" for i in range(n)]
        equal = [f"x{i}.a = x0.a" for i in range(1, n)]
        return work_of(f"select x0.n from {', '.join(groups)} where {' and '.join(equal)}")

    prepared(work(20))
    with pytest.raises(NotIncremental, match=r"DELTA_TOO_LARGE: .* of 2\d\d,\d{3} characters"):
        prepared(work(30))


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch, judged: None) -> Shop:
    """A table with changes that take too long a statement."""
    shop = small_shop(copy="select id from shop.orders where amount > 6")
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    monkeypatch.setattr(cost, "SMALL", 0)
    monkeypatch.setattr(cost, "LARGE", 1)
    monkeypatch.setattr(incremental, "LONGEST", 10)
    return shop


def test_auto_then_refreshes_in_full(changed: Shop) -> None:
    assert changed.run() == {"copy": "FULL/DELTA_TOO_LARGE"}
    assert changed.is_right("copy")
    assert changed.run() == {"copy": "NO_DATA"}


def test_incremental_then_fails_and_writes_nothing(changed: Shop) -> None:
    changed.configs["copy"] = {"refresh_mode": "incremental"}
    version = changed.storage("copy").version
    with pytest.raises(EngineError) as error:
        changed.run()
    assert str(error.value).startswith("DELTA_TOO_LARGE: The query cannot be refreshed incr")
    assert reason("DELTA_TOO_LARGE").remedy in str(error.value)
    assert changed.storage("copy").version == version
