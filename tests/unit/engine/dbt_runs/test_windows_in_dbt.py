"""Windows of changes in dbt runs: noted when a model is compiled, kept when it is refreshed."""

from collections.abc import Iterator
from typing import Any

import pytest
from fake_dbt import DbtShop, StateWarehouse, dbt_shop
from fake_windows import DEAR, WindowWarehouse

from dbt.adapters.spark_dynamic import change_queries, dynamic_tables
from dbt.adapters.spark_dynamic.change_queries import ChangeQueries
from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.errors import ChangesError, RefreshError
from spark_dynamic.changes.window import windows_named
from spark_dynamic.names import TableName
from spark_dynamic.refresh.request import Request

FEED = {"delta.enableChangeDataFeed": "true"}
ORDERS = {"id": "bigint", "customer": "bigint", "amount": "bigint"}


class Session(StateWarehouse, WindowWarehouse):
    """A session that knows the state table, and queries in DuckDB."""


class WindowsShop(DbtShop):
    """A shop in which `{changes}` in a text stands for the changes of the last hour."""

    since: Any = "1 hour"
    # The key by which they are integrated, if they are.
    key: str | None = None
    mode: str | None = "redo_log"

    def request(self, adapter: Any, name: str) -> Request:
        node = adapter._macro_resolver.nodes[f"model.shop.{name}"]
        if "{changes}" in node.raw_code:
            queries = ChangeQueries(adapter, self.running[0])
            try:
                model = node.to_dict()
                found = queries.changes(DEAR, self.since, mode=self.mode, model=model)
                if self.key is not None:
                    found = queries.integrated(found, unique_key=self.key, model=model)
            except ChangesError as error:
                raise RefreshError(str(error.msg)) from error
            node.raw_code = node.raw_code.replace("{changes}", found)
        return super().request(adapter, name)

    def windows(self) -> list[TableName]:
        names = (name.name for name in self.spark.entries)
        return windows_named(TableName("shop", "recent"), names)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[WindowsShop]:
    with dbt_shop(monkeypatch) as plain:
        made = WindowsShop(**vars(plain))
        plain.running, made.spark.state_rows = made.running, made.rows
        for module in (dynamic_tables, change_queries):
            monkeypatch.setattr(module, "DbtWarehouse", lambda adapter: Session(adapter.spark))
        made.spark.drop("shop.orders")
        made.spark.create("shop.orders", ORDERS, (1, 10, 5), properties=dict(FEED))
        made.spark.tick(2 * 3600)
        yield made


def test_a_model_is_refreshed_after_its_windows(shop: WindowsShop) -> None:
    shop.model("recent", "select id from {changes}")
    assert shop.run() == {"recent": "FULL +0 -0 (INITIAL_BUILD)"}
    [window] = shop.windows()
    shop.spark.write("shop.orders").append((2, 10, 9))
    assert shop.run()["recent"].startswith("FULL +1 -0")
    found = [(row.relation, row.refresh_action) for row in shop.rows[-2:]]
    assert found == [(str(window), "INCREMENTAL"), ("shop.recent", "FULL")]
    assert shop.run() == {"recent": "NO_DATA"}


@pytest.mark.parametrize("mode", [None, "min_delta", "append_only"])
def test_other_modes_are_kept_too(shop: WindowsShop, mode: str | None) -> None:
    shop.mode = mode
    shop.model("recent", "select id, change_action from {changes}")
    shop.run()
    shop.spark.write("shop.orders").append((2, 10, 9))
    assert shop.run()["recent"].startswith("FULL +1 -0")
    assert [row.refresh_action for row in shop.rows[-2:]] == ["INCREMENTAL", "FULL"]
    assert shop.run(after=300) == {"recent": "NO_DATA"}
    assert shop.run(after=3600)["recent"].startswith("FULL +0 -1")
    # Net changes have no order, so a key has no last one.
    shop.key = "id"
    shop.model("recent", "select id from {changes}")
    assert shop.run()["recent"].startswith("CHANGELOG_NOT_ORDERED")


def test_a_table_is_not_quiet_as_long_as_rows_can_age(shop: WindowsShop) -> None:
    shop.model("recent", "select id from {changes}")
    shop.run()
    shop.spark.write("shop.orders").append((2, 10, 9))
    shop.run()
    for _ in range(3):
        assert shop.run(after=300) == {"recent": "NO_DATA"}
    assert shop.run(after=3600)["recent"].startswith("FULL +0 -1")
    for _ in range(3):
        assert shop.run(after=300) == {"recent": "NO_DATA"}
    # Without rows there is nothing that could age, so nothing is asked for it.
    assert not [sql for sql in shop.statements["recent"] if "`recent" in sql]


def test_compiling_opens_no_cycle_and_writes_nothing(shop: WindowsShop) -> None:
    shop.model("recent", "select id from {changes}")
    adapter = shop.adapter()
    tables = DynamicTables(adapter)
    shop.running[:] = [tables]
    begin = len(shop.spark.log)
    request = shop.request(adapter, "recent")
    assert len(shop.spark.log) == begin and tables._cycle is None
    [window] = tables.windows.of(request).windows
    assert window.name_for(request.view).sql in request.sql
    # Of what was compiled before, only what the text reads is kept.
    tables.windows.define("model.shop.recent", TableName("shop", "other"), window)
    assert tables.windows.of(request).windows == (window,)


def test_a_model_that_is_not_due_leaves_its_windows_alone(shop: WindowsShop) -> None:
    shop.model("recent", "select id from {changes}", target_lag="1 day")
    shop.run()
    shop.spark.write("shop.orders").append((2, 10, 9))
    assert shop.run(after=5)["recent"].startswith("NOT_DUE")
    assert len(shop.statements["recent"]) == 1, "the state table's history"
    [window] = shop.windows()
    assert shop.spark.table(f"{window}__dyn").newest.rows == ()


def test_a_window_that_fails_fails_its_model(shop: WindowsShop) -> None:
    shop.model("recent", "select id from {changes}")
    shop.run()
    before = shop.spark.table("shop.recent__dyn").version
    shop.since = "6 hours"
    assert shop.run()["recent"].startswith("POINT_TOO_OLD")
    assert (shop.rows[-1].relation, shop.rows[-1].state) == ("shop.recent", "FAILED")
    assert shop.spark.table("shop.recent__dyn").version == before


def test_a_rebuilt_window_is_warned_of(shop: WindowsShop) -> None:
    shop.model("recent", "select id from {changes}")
    shop.run()
    [window] = shop.windows()
    change = (7, 7, "INSERT", False, "x", "shop.orders", 1, None, 1)
    shop.spark.write(f"{window}__dyn").append(change)
    shop.run()
    [warning] = [text for text in shop.warnings if str(window) in text]
    assert "FOREIGN_COMMIT" in warning
    assert shop.spark.table(f"{window}__dyn").newest.rows == ()


def test_a_model_that_no_longer_asks_for_changes(shop: WindowsShop) -> None:
    shop.model("recent", "select id from {changes}")
    shop.run()
    shop.model("recent", "select id from shop.orders")
    shop.run()
    assert shop.windows() == []


@pytest.mark.parametrize(
    ("since", "code"), [(3, "CHANGES_POINT_FIXED"), ("3 hours", "CHANGES_WINDOW_TOO_LONG")]
)
def test_what_cannot_be_kept(shop: WindowsShop, since: Any, code: str) -> None:
    shop.model("recent", "select id from {changes}", max_changes_window="2 hours")
    shop.since = since
    assert shop.run()["recent"].startswith(code)
    assert shop.windows() == []


def test_a_window_is_integrated_by_key_where_it_is_kept(shop: WindowsShop) -> None:
    shop.key = "id"
    shop.model("recent", "select * from {changes}")
    shop.run()
    shop.spark.write("shop.orders").append((2, 10, 9), (3, 10, 7))
    shop.spark.write("shop.orders").delete((3, 10, 7))
    shop.run()
    # What was deleted in the last hour is gone.
    assert shop.spark.table("shop.recent__dyn").newest.rows[0][:2] == (2, 9)
    assert len(shop.spark.table("shop.recent__dyn").newest.rows) == 1
    assert len(shop.windows()) == 1
    shop.key = ""
    assert shop.run()["recent"].startswith("CHANGES_NOT_MAINTAINED: integrate() without")
