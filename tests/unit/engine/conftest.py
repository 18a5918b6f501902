"""What the engine's own tests share."""

import pytest
from fake_streams import StreamShop, change_sources, position, select_of_changes

from spark_dynamic.apply.rows import Rows
from spark_dynamic.apply.storage import select_for_storage
from spark_dynamic.changes import read as changes
from spark_dynamic.refresh import analyse, upkeep
from spark_dynamic.refresh.analyse import _misread
from spark_dynamic.refresh.maintenance import maintain
from spark_dynamic.support import NotIncremental


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
def rows_are_maintained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let queries be judged and read as on Spark; rows are then stored without their hashes."""

    def build(rows: Rows, query: str, refresh: int) -> str:
        return select_for_storage(query, rows.columns)

    monkeypatch.setattr(analyse, "_misread", _misread)
    monkeypatch.setattr(upkeep, "maintain", maintain)
    monkeypatch.setattr(Rows, "build", build)


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
