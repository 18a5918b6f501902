"""Building a stream: its start is found once, and the view shows what a first reader gets."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from fake_streams import StreamShop, StreamWarehouse, position, select_of_changes

from spark_dynamic.changes import read as changes
from spark_dynamic.changes.build_stream import BuiltStream, StreamRequest, build_stream
from spark_dynamic.changes.point import OtherPosition
from spark_dynamic.changes.read import ChangeRead, Mode, Position
from spark_dynamic.changes.stream import read_stream, write_stream
from spark_dynamic.changes.stream_config import StreamConfig
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName

VIEW = TableName("shop", "orders_stream")
ORDERS = TableName("shop", "orders")
READ = ChangeRead("select id from shop.orders", "shop", {})


@pytest.fixture(autouse=True)
def changes_by_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "change_select", select_of_changes)


@pytest.fixture
def shop() -> StreamShop:
    return StreamShop()


def build(shop: StreamShop, sql: str = READ.sql, full: bool = False, **config: Any) -> BuiltStream:
    session, cycle = StreamWarehouse(shop.spark), shop.shop.open_cycle()
    chosen = StreamConfig(**config)
    read = replace(READ, sql=sql, mode=chosen.mode)
    request = StreamRequest("model.shop.orders_stream", VIEW, read, chosen, full)

    class Known:
        def position(self, point: OtherPosition) -> Position:
            found = read_stream(session, TableName("shop", point.stream))
            assert found is not None and found.start is not None
            return found.start

        def dynamic_table(self, name: str) -> TableName:
            return TableName("shop", name)

    return build_stream(
        request,
        cycle,
        session,
        lambda one: position(replace(one, sql=READ.sql), cycle, session),
        Known(),
    )


def shown(shop: StreamShop) -> list[tuple[Any, ...]]:
    return shop.spark.read("select id, change_action from shop.orders_stream")


def version(built: BuiltStream) -> int | None:
    return built.stream.start[ORDERS].version if built.stream.start else None


def test_by_default_the_view_shows_the_contents_as_inserts(shop: StreamShop) -> None:
    assert build(shop).is_started
    assert shown(shop) == [(1, "INSERT"), (2, "INSERT"), (3, "INSERT")]
    shop.spark.write("shop.orders").append((4, 20, 1))
    # It moves nothing, and shows the cut of the last run.
    assert shown(shop) == [(1, "INSERT"), (2, "INSERT"), (3, "INSERT")]
    again = build(shop)
    assert not again.is_started and version(again) == 0
    assert [sql.split(" AS ")[0] for sql in again.statements] == [f"ALTER VIEW {VIEW.sql}"]
    assert len(shown(shop)) == 4


def test_from_a_chosen_start_only_changes_are_shown(shop: StreamShop) -> None:
    build(shop, at="now")
    assert shown(shop) == []
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert version(build(shop, at="now")) == 0
    assert shown(shop) == [(4, "INSERT")]
    build(shop, at="now", shows_initial_rows=True)
    assert len(shown(shop)) == 4


def test_a_log_shows_the_contents_at_its_start_and_what_happened_since(shop: StreamShop) -> None:
    build(shop, mode=Mode.REDO_LOG)
    shop.spark.write("shop.orders").delete((1, 10, 5))
    build(shop, mode=Mode.REDO_LOG)
    assert len(shown(shop)) == 4 and (1, "DELETE") in shown(shop)


def test_points(shop: StreamShop) -> None:
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.spark.write("shop.orders").append((5, 20, 1))
    assert version(build(shop, at=1)) == 1
    with pytest.raises(EngineError, match="POINT_NOT_KNOWN"):
        build(shop, at=7)
    assert version(build(shop, at="1 second")) == 2
    assert version(build(shop, at="before the first change")) is None
    assert version(build(shop, at="before the first change", mode=Mode.REDO_LOG)) == 0
    start = version(build(shop, at=1))
    other = OtherPosition("orders_stream")
    assert version(build(shop, at=other)) == start
    shop.spark.table("shop.orders").forget_before(1)
    with pytest.raises(EngineError, match="POINT_TOO_OLD: at is 'before the first change'"):
        build(shop, at="before the first change", mode=Mode.APPEND_ONLY)


def test_a_new_definition_starts_anew_and_a_view_that_it_reads_is_part_of_it(
    shop: StreamShop,
) -> None:
    shop.spark.create_view("shop.kept", "select id from shop.orders")
    sql = "select id from shop.kept"
    first = build(shop, sql, at="now")
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert build(shop, sql, at="now").stream.start == first.stream.start
    shop.spark.create_view("shop.kept", "select id from shop.orders where id > 1")
    other = build(shop, sql, at="now")
    assert other.is_started and version(other) == 1
    assert other.stream.fingerprint != first.stream.fingerprint
    shop.spark.write("shop.orders").append((5, 20, 1))
    assert version(build(shop, sql, full=True, at="now")) == 2


def test_an_edit_that_means_the_same_is_the_same_stream(shop: StreamShop) -> None:
    first = build(shop, "select id from shop.orders where id > 0 and amount > 1", at="now")
    shop.spark.write("shop.orders").append((4, 20, 1))
    again = build(shop, "SELECT o.id\nFROM shop.orders o WHERE 1 < amount AND id > 0", at="now")
    assert not again.is_started and again.stream.fingerprint == first.stream.fingerprint
    known = read_stream(StreamWarehouse(shop.spark), VIEW)
    assert known is not None and known == again.stream
    assert known.read.sql.startswith("SELECT o.id") and known.text_hash != first.stream.text_hash
    other = build(shop, "select id from shop.orders where id > 0 and amount > 2", at="now")
    assert other.is_started and other.stream.fingerprint != first.stream.fingerprint


def test_a_query_without_a_plan_is_known_by_its_text(shop: StreamShop) -> None:
    first = build(shop, "select distinct id from shop.orders")
    assert first.stream.fingerprint == first.stream.text_hash
    assert build(shop, "select distinct (id) from shop.orders").is_started


def test_a_stream_of_an_older_engine_goes_on(shop: StreamShop) -> None:
    """Its fingerprint is the hash of its text, and this engine would write another one."""
    first = build(shop, at="now")
    old = write_stream(replace(first.stream, fingerprint=first.stream.text_hash))
    shop.spark.view(str(VIEW)).properties.update(old)
    again = build(shop, at="now")
    assert not again.is_started and again.stream.fingerprint == first.stream.text_hash


def test_a_start_with_other_columns_stops_readers_and_not_the_run(
    shop: StreamShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(read: ChangeRead, start: Position | None, *more: Any) -> str:
        if start is not None:
            raise EngineError("COLUMNS_CHANGED", "Others.")
        return select_of_changes(read, start, *more)

    monkeypatch.setattr(changes, "change_select", refused)
    assert build(shop, at="now").warning.startswith("STREAM_COLUMNS_CHANGED: Others.")


def test_a_start_that_is_too_old_stops_readers_and_not_the_run(shop: StreamShop) -> None:
    build(shop, at="now")
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.spark.tick(timedelta(days=9).total_seconds())
    late = build(shop, at="now")
    assert late.warning.startswith("STREAM_STALE")
    assert "raise_error('STREAM_STALE" in shop.spark.view("shop.orders_stream").text
    assert build(shop, at="now", full=True).warning == ""
    assert shown(shop) == []


def test_a_table_of_that_name_becomes_a_view(shop: StreamShop) -> None:
    shop.spark.create("shop.orders_stream", {"id": "bigint"}, (1,))
    statements = build(shop).statements
    assert [sql.split(" `")[0] for sql in statements] == ["DROP TABLE", "CREATE VIEW"]


def test_the_sources_keep_their_changes_from_the_start_on(shop: StreamShop) -> None:
    build(shop, max_retention_extension=timedelta(days=40))
    assert "delta.deletedFileRetentionDuration" in shop.spark.table("shop.orders").properties
