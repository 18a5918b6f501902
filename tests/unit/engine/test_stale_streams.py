"""What consumers are told when changes are gone, and how these are kept longer."""

from copy import deepcopy
from datetime import timedelta

import pytest
from fake_streams import (
    BOTH,
    StreamShop,
    StreamWarehouse,
    position,
)

from spark_dynamic.errors import EngineError

pytestmark = pytest.mark.usefixtures("changes_by_comparison")


def test_a_stale_stream_says_what_to_do(changed: StreamShop) -> None:
    lost, late = deepcopy(changed), deepcopy(changed)
    lost.spark.table("shop.orders").forget_before(1)
    with pytest.raises(EngineError, match="STREAM_STALE.*--full-refresh"):
        lost.run("one")
    late.spark.tick(timedelta(days=8).total_seconds())
    with pytest.raises(EngineError, match="STREAM_STALE.*max_retention_extension"):
        late.run("one")
    late.spark.table("shop.orders").properties["delta.deletedFileRetentionDuration"] = (
        "interval 2 weeks"
    )
    with pytest.raises(EngineError, match="STREAM_STALE.*shop.customers"):
        late.run("one")
    changed.run("one")
    changed.spark.tick(timedelta(days=100).total_seconds())
    # Nothing has changed since, so nothing is lost.
    changed.run("one")
    assert changed.rows("one") == BOTH


def test_a_lost_start_is_the_streams_to_renew(new: StreamShop) -> None:
    """Every new consumer, and every rebuilt one, would begin there again."""
    session = StreamWarehouse(new.spark)
    start = position(new.stream("orders").read, new.shop.open_cycle(), session)
    stream = new.stream("orders", start=start, has_chosen_start=True, initial_rows=False)
    new.spark.write("shop.orders").append((4, 20, 1))
    new.consume("one", session, new.shop.open_cycle(), streams=[stream])
    new.spark.tick(timedelta(days=8).total_seconds())
    told = "STREAM_STALE: The start of orders_stream.*Run the stream itself with --full-refresh"
    for consumer, full_refresh in (("two", False), ("one", True)):
        with pytest.raises(EngineError, match=told):
            new.consume(
                consumer,
                session,
                new.shop.open_cycle(),
                streams=[stream],
                full_refresh=full_refresh,
            )
    # Nothing has changed after where this one is.
    new.consume("one", session, new.shop.open_cycle(), streams=[stream])
    new.spark.write("shop.orders").append((5, 20, 1))
    new.spark.tick(timedelta(days=8).total_seconds())
    told = "that come next.*Move on with changes_stream_move, or run the stream itself"
    with pytest.raises(EngineError, match=told):
        new.consume("one", session, new.shop.open_cycle(), streams=[stream])


def test_a_source_that_was_made_anew_is_no_source_that_is_behind(changed: StreamShop) -> None:
    changed.run("one")
    changed.spark.drop("shop.orders")
    orders = {"id": "bigint", "customer": "bigint", "amount": "bigint"}
    changed.spark.create("shop.orders", orders, (9, 9, 9))
    with pytest.raises(EngineError, match="STREAM_STALE.*made anew"):
        changed.run("one")


def test_sources_keep_their_changes_as_long_as_is_allowed(new: StreamShop) -> None:
    session, month = StreamWarehouse(new.spark), timedelta(days=60)
    stream = new.stream("orders", max_retention_extension=month)
    for _ in range(2):
        new.consume("one", session, new.shop.open_cycle(), streams=[stream])
    orders = new.spark.table("shop.orders")
    longer = f"interval {int(month.total_seconds())} seconds"
    assert orders.properties["delta.deletedFileRetentionDuration"] == longer
    assert orders.properties["delta.logRetentionDuration"] == longer
    assert [c.operation for c in orders.commits].count("SET TBLPROPERTIES") == 1
