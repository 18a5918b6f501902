"""What the engine's own tests share."""

from collections.abc import Sequence

import pytest
from fake_streams import StreamShop, change_sources, position, select_of_changes

from spark_dynamic.apply.rows import Rows
from spark_dynamic.apply.storage import select_for_storage
from spark_dynamic.catalog import describe_query
from spark_dynamic.changes import read as changes
from spark_dynamic.refresh import analyse, maintenance, self_check, upkeep
from spark_dynamic.refresh.analyse import _misread
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column, Warehouse


@pytest.fixture(autouse=True)
def every_change_is_a_rebuild(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every query count as one with a LIMIT.

    The fake Delta answers by SQLite, which has neither hashes nor MERGE; incremental refreshes
    are tested on Spark, in tests/functional/engine.
    """

    def refuse(*_: object) -> None:
        raise NotIncremental("LIMIT", "")

    monkeypatch.setattr(upkeep, "maintain", refuse)
    monkeypatch.setattr(analyse, "_misread", lambda *_: "")


@pytest.fixture
def maintained(every_change_is_a_rebuild: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let queries be what they are: refreshes can be planned then, and tables built."""

    def one_by_one(
        warehouse: Warehouse, last: str, others: Sequence[tuple[str, int]]
    ) -> list[tuple[Column, ...]]:
        return [describe_query(warehouse, sql) for sql in (*(sql for sql, _ in others), last)]

    monkeypatch.setattr(upkeep, "maintain", maintenance.maintain)
    # Of several queries in one, the fake sees every name once.
    monkeypatch.setattr(maintenance, "describe_queries", one_by_one)
    # There are no hashes.
    monkeypatch.setattr(self_check, "FIRST", 0)
    monkeypatch.setattr(
        Rows, "build", lambda rows, query, _: select_for_storage(query, rows.columns)
    )


@pytest.fixture
def judged(maintained: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let queries also be judged as on Spark."""
    monkeypatch.setattr(analyse, "_misread", _misread)


@pytest.fixture
def changes_by_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let change queries compare two versions, which the fake Spark can do."""
    monkeypatch.setattr(changes, "change_select", select_of_changes)
    monkeypatch.setattr(changes, "position_now", position)


@pytest.fixture
def new() -> StreamShop:
    return StreamShop()


@pytest.fixture
def changed() -> StreamShop:
    """Streams that were consumed, and sources that have changed since."""
    shop = StreamShop()
    shop.run()
    change_sources(shop.spark)
    return shop
