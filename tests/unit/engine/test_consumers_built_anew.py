"""Consumers that were restored, emptied or built anew: what is new to them, and what is not."""

import pytest
from fake_delta import METADATA
from fake_streams import (
    BOTH,
    SECOND,
    StreamShop,
    StreamWarehouse,
    change_sources,
    numbers,
)

from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import empty_run_mark

pytestmark = pytest.mark.usefixtures("changes_by_comparison")


def test_a_restored_table_goes_on_from_where_it_was(changed: StreamShop) -> None:
    changed.run("one")
    table = changed.spark.table("shop.one")
    restore = {"version": "0"}
    table.commit(changed.spark.tick(), "RESTORE", table.at(0), {}, restore)
    changed.run("one")
    assert changed.rows("one") == BOTH
    table.commit(changed.spark.tick(), "RESTORE", table.at(0), {}, {"timestamp": "2026-01-01"})
    with pytest.raises(EngineError, match="STREAM_POSITION_LOST"):
        changed.run("one")


def test_a_build_that_consumes_nothing_makes_the_next_one_begin_anew(changed: StreamShop) -> None:
    table = changed.spark.table("shop.one")
    emptied = type(table.newest)(table.newest.columns, ())
    settings = {METADATA: empty_run_mark()}
    table.commit(
        changed.spark.tick(), "CREATE OR REPLACE TABLE AS SELECT", emptied, settings, {}, {}
    )
    changed.run("one")
    assert changed.rows("one") == [row for row in BOTH if row[1] != 1]


def build_without_consuming(shop: StreamShop) -> None:
    """Do what --full-refresh does if the model calls stream() behind is_incremental()."""
    query = "SELECT 'orders_stream' AS stream, id, 'OLD' AS change_action FROM shop.orders"
    StreamWarehouse(shop.spark).execute(f"CREATE OR REPLACE TABLE `shop`.`one` AS {query}")


def test_a_consumer_that_was_built_anew_without_its_streams_is_new(changed: StreamShop) -> None:
    build_without_consuming(changed)
    changed.run("one")
    anew = [row for row in changed.rows("one") if row[2] != "OLD"]
    # The contents; not what has changed since a position that other rows had.
    assert anew == [row for row in BOTH if row[1] != 1]
    changed.spark.write("shop.orders").append((5, 20, 1))
    changed.run("one")
    assert len(changed.rows("one")) == len(anew) + 3 + 1
    assert numbers(changed, "one") == [3, 2, 1]


def test_a_consumer_of_which_partitions_were_overwritten_is_not_new(changed: StreamShop) -> None:
    # `saveAsTable` of a data frame calls it by the name of a rebuild.
    table = changed.spark.table("shop.one")
    parameters = {"isDynamicPartitionOverwrite": "true", "isV1SaveAsTableOverwrite": "true"}
    operation = "CREATE OR REPLACE TABLE AS SELECT"
    table.commit(changed.spark.tick(), operation, table.newest, {}, parameters)
    changed.run("one")
    assert changed.rows("one") == BOTH


def test_a_rebuild_that_was_restored_has_its_position_back(changed: StreamShop) -> None:
    build_without_consuming(changed)
    table = changed.spark.table("shop.one")
    table.commit(changed.spark.tick(), "RESTORE", table.at(0), {}, {"version": "0"})
    changed.run("one")
    assert changed.rows("one") == BOTH


def test_a_consumption_that_cannot_be_read_is_no_rebuild(changed: StreamShop) -> None:
    table = changed.spark.table("shop.one")
    settings = {METADATA: '{"spark_dynamic_consumption": 99}'}
    operation = "CREATE OR REPLACE TABLE AS SELECT"
    table.commit(changed.spark.tick(), operation, table.newest, settings, {}, {})
    changed.run("one")
    assert changed.rows("one") == BOTH


def test_a_last_batch_that_was_not_taken_does_not_begin_anew() -> None:
    shop = StreamShop(holds_last_batch=True)
    shop.run("one")
    build_without_consuming(shop)
    change_sources(shop.spark)
    shop.run("one")
    assert shop.rows("one") == SECOND


def test_a_table_holds_just_the_last_batch() -> None:
    shop = StreamShop(holds_last_batch=True)
    shop.run("one")
    change_sources(shop.spark)
    shop.run("one")
    assert shop.rows("one") == SECOND
    shop.run("one")
    assert shop.rows("one") == []
