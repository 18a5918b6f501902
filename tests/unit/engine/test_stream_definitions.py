"""A stream means what its query, the views below it and the session make of it right now."""

from dataclasses import replace
from typing import Any

import pytest
from fake_shop import SETTINGS
from fake_streams import StreamShop, StreamWarehouse, select_of_changes

from spark_dynamic.changes import read as changes
from spark_dynamic.changes.build_stream import StreamRequest, build_stream
from spark_dynamic.changes.consume import Batch
from spark_dynamic.changes.consumer import ConsumerRequest
from spark_dynamic.changes.read import ChangeRead, position_now
from spark_dynamic.changes.stream import Stream, read_stream, write_stream
from spark_dynamic.changes.stream_config import StreamConfig
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName

VIEW = TableName("shop", "kept_stream")
KEPT = "select id from shop.orders where amount > 1 and id > 0"
ZONE = "spark.sql.session.timeZone"


@pytest.fixture(autouse=True)
def changes_by_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "change_select", select_of_changes)


@pytest.fixture
def shop() -> StreamShop:
    """A stream over a view over a view, and a consumer that has taken from it once."""
    made = StreamShop()
    made.spark.create_view("shop.below", KEPT)
    made.spark.create_view("shop.kept", "select id from shop.below")
    build(made)
    consume(made)
    made.spark.write("shop.orders").append((4, 20, 5))
    return made


def build(shop: StreamShop, sql: str = "select id from shop.kept") -> Stream:
    session, cycle = StreamWarehouse(shop.spark), shop.shop.open_cycle()
    read = ChangeRead(sql, "shop", dict(SETTINGS))
    request = StreamRequest("model.shop.kept_stream", VIEW, read, StreamConfig())
    places: Any = None
    return build_stream(
        request, cycle, session, lambda one: position_now(one, cycle, session), places
    ).stream


def consume(shop: StreamShop, consumer: str = "one", **settings: str) -> list[int]:
    session, cycle = StreamWarehouse(shop.spark), shop.shop.open_cycle()
    stream = read_stream(session, VIEW)
    assert stream is not None
    table = TableName("shop", consumer)
    request = ConsumerRequest(
        f"model.shop.{consumer}", table, "0.test", settings={**SETTINGS, **settings}
    )
    batch = Batch(request, cycle, session, lambda name: None)
    query = batch.take(stream, position_now(stream.read, cycle, session), session)
    is_new = batch.consumer.relation is None
    how = f"CREATE OR REPLACE TABLE {table.sql} AS" if is_new else f"INSERT INTO {table.sql}"
    batch.run(lambda: session.execute(f"{how} SELECT id, change_action FROM ({query})"), session)
    return [row[0] for row in shop.spark.read(f"select id from shop.{consumer}")]


def test_a_changed_view_below_a_stream_stops_its_consumers(shop: StreamShop) -> None:
    shop.spark.create_view("shop.below", KEPT.replace("> 1", "> 2"))
    with pytest.raises(EngineError, match="STREAM_CHANGED.*a view that it reads was changed"):
        consume(shop)
    # As it was, it goes on.
    shop.spark.create_view("shop.below", KEPT)
    assert consume(shop) == [1, 2, 3, 4]


def test_an_edit_of_a_view_that_means_the_same_stops_nobody(shop: StreamShop) -> None:
    shop.spark.create_view(
        "shop.below", "SELECT o.id FROM shop.orders o WHERE 0 < id AND 1 < amount"
    )
    assert consume(shop) == [1, 2, 3, 4]
    # Nor does the stream, when it is built the next time.
    build(shop)
    shop.spark.write("shop.orders").append((5, 20, 5))
    assert consume(shop) == [1, 2, 3, 4, 5]


def test_a_setting_that_changes_results_stops_consumers_and_is_named(shop: StreamShop) -> None:
    build(shop, KEPT)
    shop.spark.drop("shop.one")
    consume(shop)
    told = f"STREAM_CHANGED.*{ZONE} was {SETTINGS[ZONE]} and is Asia/Tokyo"
    with pytest.raises(EngineError, match=told):
        consume(shop, **{ZONE: "Asia/Tokyo"})
    with pytest.raises(EngineError, match="spark.sql.timestampType was TIMESTAMP_LTZ and is NTZ"):
        consume(shop, **{"spark.sql.timestampType": "NTZ"})
    shop.spark.write("shop.orders").append((5, 20, 5))
    assert consume(shop) == [1, 2, 3, 4, 5]


def test_a_new_consumer_goes_by_what_it_has_consumed(shop: StreamShop) -> None:
    """The stream itself is built again later."""
    shop.spark.create_view("shop.below", KEPT.replace("> 1", "> 2"))
    consume(shop, "two")
    build(shop)
    consume(shop, "two")
    with pytest.raises(EngineError, match="STREAM_CHANGED"):
        consume(shop)


def test_a_stream_of_an_older_engine_is_compared_by_the_settings_that_it_names(
    shop: StreamShop,
) -> None:
    build(shop, KEPT)
    shop.spark.drop("shop.one")
    consume(shop)
    shop.spark.write("shop.orders").append((5, 20, 5))
    nulls = "spark.sql.jsonGenerator.ignoreNullFields"
    with pytest.raises(EngineError, match=f"STREAM_CHANGED.*{nulls} was true and is false"):
        consume(shop, **{nulls: "false"})
    properties = shop.spark.view("shop.kept_stream").properties
    stream = read_stream(StreamWarehouse(shop.spark), VIEW)
    assert stream is not None
    properties |= write_stream(replace(stream, names_all_settings=False))
    assert consume(shop, **{nulls: "false"}) == [1, 2, 3, 4, 5]
    with pytest.raises(EngineError, match="STREAM_CHANGED"):
        consume(shop, **{ZONE: "Asia/Tokyo"})
