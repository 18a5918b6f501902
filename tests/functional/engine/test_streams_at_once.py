"""Two runs of one consumer at the same moment: both end well, and every change arrives once."""

import threading
from typing import Any

import pytest
from spark_shop import SparkShop
from spark_warehouse import SparkWarehouse
from stream_shop import StreamShop, arrived

from spark_dynamic.frontier.state import KnownState
from spark_dynamic.refresh.cycle import Cycle

# A snapshot merges as well.
KINDS = ("append", "merge", pytest.param("snapshot", marks=pytest.mark.nightly), "table")
# Before and after `change(2)`, which adds a row to each table and takes none away.
OLD, NEW = {1}, {1, 2}


def at_once(streams: StreamShop, consumer: str, *requests: dict[str, Any]) -> list[bool]:
    """Let two runs plan first and then write; return which of them took its batch."""
    planned = threading.Barrier(2)
    taken: list[bool] = []
    failures: list[BaseException] = []

    def run(request: dict[str, Any]) -> None:
        try:
            session = streams.shop.session.newSession()
            session.sql(f"USE {streams.shop.schema}")
            warehouse = SparkWarehouse(session)
            cycle = Cycle("invocation", warehouse.now(), KnownState())
            batch, sql = streams.plan(consumer, cycle, warehouse, **request)
            planned.wait(120)
            taken.append(batch.run(lambda: warehouse.execute(sql), warehouse))
        except BaseException as error:
            planned.abort()
            failures.append(error)

    threads = [threading.Thread(target=run, args=[one]) for one in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert failures == []
    return sorted(taken)


@pytest.mark.parametrize("kind", KINDS)
def test_two_at_once(shop: SparkShop, kind: str) -> None:
    streams = StreamShop(shop)
    streams.run([])
    consumer, plain = f"{kind}_1", {"holds_last_batch": kind == "table"}

    def holds(came: set[int]) -> bool:
        ids = {name: (came, set[int]()) for name in ("orders", "customers")}
        return streams.taken(consumer) == arrived(ids, kind)

    # Both make the table.
    assert at_once(streams, consumer, plain, plain) == [False, True]
    assert holds(OLD) and streams.numbers(consumer) == [1]
    # Both take the same changes.
    streams.change(2)
    assert at_once(streams, consumer, plain, plain) == [False, True]
    assert holds(NEW - OLD if kind == "table" else NEW) and streams.numbers(consumer) == [1, 2]
    # One builds it from the start, which is done whatever the other does.
    taken = at_once(streams, consumer, plain, {**plain, "full_refresh": True})
    assert holds(NEW) and taken[-1]
    if kind != "table":
        streams.run([consumer])
        assert holds(NEW)
