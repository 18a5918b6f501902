"""Refreshers at once, kills, and what they leave behind, on Delta itself."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from spark_shop import SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.frontier.history import Recorded, records
from spark_dynamic.names import TableName
from spark_dynamic.refresh.run import Outcome

COPY = "select id, amount from orders where amount > 0"
TOTALS = "select region, sum(amount) as total from orders group by region"


class Killed(BaseException):
    """The process is gone: nothing that it would have done after this is done."""


class Interrupted(SparkWarehouse):
    """A process of its own; something happens just before the first statement of some kind."""

    def __init__(self, shop: SparkShop, before: str, happens: Callable[[], Any]) -> None:
        super().__init__(shop.session.newSession())
        self.session.sql(f"USE {shop.schema}")
        self._before, self._happens = before, happens
        self._is_dead = False

    def _run(self, sql: str, columns: list[str] | None = None) -> list[Any]:
        if self._is_dead:
            raise Killed
        if self._before and sql.startswith(self._before):
            self._before = ""
            try:
                self._happens()
            except Killed:
                self._is_dead = True
                raise
        return super()._run(sql, columns)


def kill() -> None:
    raise Killed


@pytest.fixture
def orders(shop: SparkShop) -> SparkShop:
    shop.table(
        "orders", "id int, region string, amount int",
        "(1, 'n', 10)", "(2, 's', 20)", "(2, 's', 20)", "(3, 'n', 30)",
    )  # fmt: skip
    shop.model("copy", COPY)
    shop.model("totals", TOTALS)
    return shop


def records_of(shop: SparkShop, storage: str) -> list[Recorded]:
    table = TableName.of(shop.schema, storage)
    return records(SparkWarehouse(shop.session).history(table, 100))


def numbers(shop: SparkShop, storage: str) -> list[int]:
    """Return the refresh numbers of a table's records, newest first."""
    return [recorded.record.refresh_number for recorded in records_of(shop, storage)]


def at_once(shop: SparkShop, name: str, before: str, **more: Any) -> list[Outcome]:
    """Let two processes refresh a table; both have planned when they write."""
    planned = threading.Barrier(2, timeout=60)

    def run(_: int) -> Outcome:
        return shop.refresh(name, Interrupted(shop, before, planned.wait), **more)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run, range(2)))


def actions(outcomes: list[Outcome]) -> list[str]:
    return sorted(outcome.plan.decision.action for outcome in outcomes)


def test_two_at_once(orders: SparkShop) -> None:
    assert actions(at_once(orders, "copy", "CREATE TABLE")) == ["FULL", "NO_DATA"]
    assert orders.difference("copy") == []
    assert not orders.session.catalog.tableExists("copy__dyn_2")
    orders.check("totals", "FULL")

    # An append, which for Delta conflicts with nothing by itself, and a merge.
    orders.run("INSERT INTO orders VALUES (4, 'w', 40), (1, 'n', 10)")
    for name, write in (("copy", "INSERT INTO"), ("totals", "MERGE INTO")):
        assert actions(at_once(orders, name, write)) == ["INCREMENTAL", "NO_DATA"]
        assert orders.difference(name) == []
        assert numbers(orders, f"{name}__dyn") == [2, 1]

    # Rebuilds that were asked for, one after the other; then all is as usual.
    rebuilt = at_once(orders, "copy", "INSERT OVERWRITE", full_refresh=True)
    assert actions(rebuilt) == ["FULL", "FULL"]
    assert orders.difference("copy") == []
    assert numbers(orders, "copy__dyn") == [4, 3, 2, 1]
    orders.run("DELETE FROM orders WHERE id = 4")
    orders.check("copy")


def test_an_older_cut_is_covered(orders: SparkShop) -> None:
    orders.check("totals", "FULL")
    orders.run("INSERT INTO orders VALUES (5, 'e', 50)")
    older = orders.cycle()
    orders.run("INSERT INTO orders VALUES (6, 'e', 60)")
    orders.check("totals")
    assert orders.action("totals", cycle=older) == "COVERED"
    assert orders.difference("totals") == []
    assert numbers(orders, "totals__dyn") == [2, 1]


def test_a_record_is_written_again_before_it_ages_out(orders: SparkShop) -> None:
    orders.check("copy", "FULL")
    before = orders.session.sql("TABLE copy__dyn").collect()
    outcome = orders.refresh("copy", cycle=orders.cycle(timedelta(days=16)))
    assert outcome.plan.decision.action == "NO_DATA"
    newest, first = records_of(orders, "copy__dyn")
    assert newest.record.refresh_number == 2 and newest.record.incarnation == (
        first.record.incarnation
    )
    assert newest.record.data_timestamp > first.record.data_timestamp
    assert newest.commit.metrics.get("numOutputRows", "0") == "0"
    assert sorted(orders.session.sql("TABLE copy__dyn").collect()) == sorted(before)
    # It is a record like any other: changes go on from it.
    orders.run("DELETE FROM orders WHERE id = 2")
    assert orders.action("copy", cycle=orders.cycle(timedelta(days=17))) == "INCREMENTAL"
    assert orders.difference("copy") == []
    assert numbers(orders, "copy__dyn") == [3, 2, 1]


def killed(shop: SparkShop, name: str, before: str) -> None:
    with pytest.raises(Killed):
        shop.refresh(name, Interrupted(shop, before, kill))


def test_a_kill_after_the_data_and_before_the_rest(orders: SparkShop) -> None:
    # A first build whose view is missing.
    killed(orders, "copy", "CREATE VIEW")
    orders.check("copy", "NO_DATA")
    # A refresh that nobody was told of, and one that was about to be written.
    orders.run("INSERT INTO orders VALUES (4, 'w', 40)")
    killed(orders, "copy", "RESET")
    orders.check("copy", "NO_DATA")
    orders.run("DELETE FROM orders WHERE id = 1")
    killed(orders, "copy", "MERGE INTO")
    orders.check("copy")
    assert numbers(orders, "copy__dyn") == [3, 2, 1]
    # Another generation that the view does not show yet.
    orders.model("copy", COPY.replace("id, amount", "id, amount, region"))
    killed(orders, "copy", "ALTER VIEW")
    assert orders.session.table("copy").columns == ["id", "amount"]
    orders.check("copy", "NO_DATA")
    assert orders.session.table("copy").columns == ["id", "amount", "region"]
    orders.run("INSERT INTO orders VALUES (7, 'w', 70)")
    orders.check("copy")


def test_what_a_killed_build_leaves_is_passed_over(orders: SparkShop) -> None:
    place = Path(urlparse(orders.session.sql(
        f"DESCRIBE DETAIL {orders.schema}.orders").first()["location"]).path).parent  # fmt: skip
    # Killed while it wrote files, and killed between the log and the catalog.
    orders.session.range(3).write.parquet(str(place / "totals__dyn"))
    orders.session.range(3).write.format("delta").save(str(place / "totals__dyn_2"))
    outcome = orders.check("totals", "FULL")
    assert outcome.plan.generation == 3
    orders.run("INSERT INTO orders VALUES (4, 'w', 40)")
    orders.check("totals")
    orders.model("totals", TOTALS.replace("total from", "total, count(*) as n from"))
    assert orders.check("totals", "REINITIALIZE").plan.generation == 4
