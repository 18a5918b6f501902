"""Each change arrives in each consumer exactly once: killed, refused, raced, moved."""

from contextlib import suppress
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from fake_delta import APPLICATION, METADATA, TRANSACTION
from fake_streams import (
    BOTH,
    FIRST,
    SECOND,
    StreamShop,
    StreamWarehouse,
    change_sources,
    numbers,
    position,
)
from fake_warehouse import Killed

from spark_dynamic.changes.consume import moved
from spark_dynamic.changes.consumer import CONSUMER_PROPERTY, ConsumerRequest, read_consumer
from spark_dynamic.changes.stream import read_stream, show_stream
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.names import TableName

pytestmark = pytest.mark.usefixtures("changes_by_comparison")


def test_each_batch_once(new: StreamShop) -> None:
    new.run()
    assert new.rows("one") == new.rows("two") == FIRST
    change_sources(new.spark)
    new.run()
    new.run()
    assert new.rows("one") == new.rows("two") == BOTH
    # Also the empty batch has a record.
    assert numbers(new, "one") == [3, 2, 1]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_kill_at_any_statement(is_first: bool) -> None:
    """Two consumers, two streams; the sources change again before the next run."""
    prepared = StreamShop()
    if not is_first:
        prepared.run()
        change_sources(prepared.spark)
    count = deepcopy(prepared).run().count
    assert count > 20
    moments = [{"die_before": number} for number in range(1, count + 1)]
    landed = set()
    for moment in [*moments, {"die_after": count}]:
        shop = deepcopy(prepared)
        with pytest.raises(Killed):
            shop.run(**moment)
        if is_first:
            change_sources(shop.spark)
        landed.add(tuple(shop.spark.exists(f"shop.{name}") for name in ("one", "two")))
        shop.spark.write("shop.orders").append((5, 20, 1))
        shop.run()
        shop.run()
        for consumer in ("one", "two"):
            wanted = sorted([*BOTH, ("orders_stream", 5, "INSERT")])
            found = shop.rows(consumer)
            if is_first:
                # Whether before or after the change: the contents, and then what changed.
                gone = ("orders_stream", 1, "INSERT"), ("orders_stream", 1, "DELETE")
                without = [row for row in wanted if row not in gone]
                assert found in (wanted, without), moment
            else:
                assert found == wanted, moment
            assert numbers(shop, consumer) == sorted(set(numbers(shop, consumer)), reverse=True)
    assert len(landed) == (3 if is_first else 1)


def test_a_refused_statement_leaves_no_setting_behind(changed: StreamShop) -> None:
    count = deepcopy(changed).run().count
    for number in range(1, count + 1):
        shop = deepcopy(changed)
        session = StreamWarehouse(shop.spark)
        session.fail_at = number
        cycle = shop.shop.open_cycle()
        with suppress(WarehouseError):
            for consumer in ("one", "two"):
                shop.consume(consumer, session, cycle)
        assert session.refused
        ours = {METADATA, APPLICATION, TRANSACTION} & session.settings.keys()
        assert not ours or session.refused.startswith("RESET"), session.refused
        shop.run()
        assert shop.rows("one") == shop.rows("two") == BOTH, session.refused


def meeting(shop: StreamShop, other: dict[str, Any], **own: Any) -> bool:
    """Let another run of the same consumer commit just before this one writes."""
    session = StreamWarehouse(shop.spark)
    batch, query = shop.batch("one", session, shop.shop.open_cycle(), **own)
    winner = StreamWarehouse(shop.spark)
    shop.consume("one", winner, shop.shop.open_cycle(), **other)
    is_taken = batch.run(shop.write(batch, query, session), session)
    assert batch.is_covered is not is_taken
    assert not {METADATA, APPLICATION, TRANSACTION} & session.settings.keys()
    return is_taken


def test_of_two_runs_that_meet_one_wins_and_the_other_is_covered(changed: StreamShop) -> None:
    assert not meeting(changed, {})
    assert changed.rows("one") == BOTH
    assert numbers(changed, "one") == [2, 1]


def test_what_the_winner_has_not_taken_is_left_to_the_next_run(changed: StreamShop) -> None:
    session = StreamWarehouse(changed.spark)
    early = changed.shop.open_cycle()
    winner, winners_query = changed.batch("one", session, early)
    changed.spark.write("shop.orders").append((5, 20, 1))
    late, query = changed.batch("one", session, changed.shop.open_cycle())
    assert winner.run(changed.write(winner, winners_query, session), session)
    assert not late.run(changed.write(late, query, session), session)
    assert changed.rows("one") == BOTH
    changed.run("one")
    assert changed.rows("one") == sorted([*BOTH, ("orders_stream", 5, "INSERT")])


def test_rows_of_a_run_never_land_on_rebuilt_contents(changed: StreamShop) -> None:
    assert not meeting(changed, {"full_refresh": True})
    contents = [row for row in BOTH if row[1] != 1]
    assert changed.rows("one") == contents
    changed.run("one")
    assert changed.rows("one") == contents


def test_a_full_refresh_is_done_although_another_run_was_faster(changed: StreamShop) -> None:
    assert meeting(changed, {}, full_refresh=True)
    contents = [row for row in BOTH if row[1] != 1]
    assert changed.rows("one") == contents
    assert numbers(changed, "one") == [3, 2, 1]
    changed.run("one")
    assert changed.rows("one") == contents


def test_of_two_first_runs_one_wins(new: StreamShop) -> None:
    assert not meeting(new, {})
    assert new.rows("one") == FIRST


def test_of_two_runs_that_begin_to_consume_into_a_table_one_wins(new: StreamShop) -> None:
    columns = {"stream": "string", "id": "bigint", "change_action": "string"}
    new.spark.create("shop.one", columns, ("old", 0, "row"))
    assert not meeting(new, {})
    assert new.rows("one") == sorted([*FIRST, ("old", 0, "row")])
    assert new.spark.table("shop.one").properties[CONSUMER_PROPERTY] == "true"


def test_a_conflict_with_anything_else_is_tried_again(changed: StreamShop) -> None:
    """Maintenance, or a hand that deletes rows: the position is as it was."""

    def conflict() -> None:
        raise WarehouseError("DELTA_CONCURRENT_DELETE_READ", "[DELTA_CONCURRENT_DELETE_READ] No.")

    changed.spark.meanwhile += [("^INSERT INTO `shop`.`one`", conflict)] * 2
    changed.run()
    assert changed.rows("one") == changed.rows("two") == BOTH
    changed.spark.meanwhile += [("^INSERT INTO `shop`.`one`", conflict)] * 5
    with pytest.raises(EngineError, match="STREAM_NOT_CONSUMED"):
        changed.run("one")
    assert changed.rows("one") == BOTH


def test_a_table_that_another_run_drops_after_the_write_is_written_again(new: StreamShop) -> None:
    """dbt drops a table that it does not know before it makes it."""
    dropped = TableName("shop", "one")
    drop = ("^DESCRIBE HISTORY `shop`.`one`", lambda: new.spark.entries.pop(dropped))
    new.spark.meanwhile.append(drop)
    new.run("one")
    assert new.rows("one") == FIRST


def test_a_position_that_somebody_moves_meanwhile_is_reported(changed: StreamShop) -> None:
    session, cycle = StreamWarehouse(changed.spark), changed.shop.open_cycle()
    batch, query = changed.batch("one", session, cycle)
    consumer = read_consumer(batch.consumer.request, session, lambda _: None)
    moved(consumer, {changed.stream("orders").model: None}, "RESET", cycle, session)
    with pytest.raises(EngineError, match="STREAM_NOT_CONSUMED"):
        batch.run(changed.write(batch, query, session), session)
    assert changed.rows("one") == FIRST


def test_a_cut_behind_the_position_takes_nothing(changed: StreamShop) -> None:
    session = StreamWarehouse(changed.spark)
    early = changed.shop.open_cycle()
    changed.batch("one", session, early)
    changed.spark.write("shop.orders").append((5, 20, 1))
    changed.run("one")
    rows = changed.rows("one")
    batch = changed.consume("one", session, early)
    assert batch.is_covered
    assert changed.rows("one") == rows
    changed.run("one")
    assert changed.rows("one") == rows == sorted([*BOTH, ("orders_stream", 5, "INSERT")])


def test_a_batch_is_written_once(changed: StreamShop) -> None:
    session = StreamWarehouse(changed.spark)
    batch = changed.consume("one", session, changed.shop.open_cycle())
    with pytest.raises(ValueError, match="written once"):
        batch.run(lambda: None, session)


def test_all_consumers_of_a_cycle_end_at_the_same_point(changed: StreamShop) -> None:
    session, cycle = StreamWarehouse(changed.spark), changed.shop.open_cycle()
    first = changed.consume("one", session, cycle)
    changed.spark.write("shop.orders").append((5, 20, 1))
    second = changed.consume("two", session, cycle)
    ends = [{s: t.end for s, t in batch.record.streams.items()} for batch in (first, second)]
    assert ends[0] == ends[1]


def test_a_lost_record_is_never_new(changed: StreamShop) -> None:
    changed.spark.write("shop.one").optimize()
    changed.spark.table("shop.one").forget_before(1)
    changed.spark.table("shop.two").properties.clear()
    kept = deepcopy(changed)
    kept.run("one")
    assert kept.rows("one") == BOTH
    changed.kept.clear()
    with pytest.raises(EngineError, match="STREAM_POSITION_LOST"):
        changed.run("one")
    # Without the mark the record still counts.
    changed.run("two")
    assert changed.rows("two") == BOTH
    session = StreamWarehouse(changed.spark)
    changed.consume("one", session, changed.shop.open_cycle(), full_refresh=True)
    assert changed.rows("one") == [row for row in BOTH if row[1] != 1]


def test_a_position_that_was_written_down_too_early_repeats_nothing(changed: StreamShop) -> None:
    """The run was killed before it could list its consumption; later its record was lost."""
    listed = changed.kept["shop.one"]
    changed.run("one")
    changed.kept["shop.one"] = listed
    changed.spark.write("shop.one").optimize()
    changed.spark.table("shop.one").forget_before(2)
    with pytest.raises(EngineError, match="STREAM_NOT_CONSUMED"):
        changed.run("one")
    assert changed.rows("one") == BOTH


def test_a_changed_definition_stops_its_consumers(changed: StreamShop) -> None:
    session = StreamWarehouse(changed.spark)
    streams = [changed.stream("orders", fingerprint="another")]
    with pytest.raises(EngineError, match="STREAM_CHANGED"):
        changed.batch("one", session, changed.shop.open_cycle(), streams)
    # A full refresh begins with the new definition.
    cycle = changed.shop.open_cycle()
    changed.consume("one", session, cycle, streams=streams, full_refresh=True)
    changed.consume("one", session, changed.shop.open_cycle(), streams=streams)
    assert [row[1] for row in changed.rows("one")] == [2, 3, 4]


def test_a_stream_that_is_left_out_for_a_while_loses_nothing(changed: StreamShop) -> None:
    session = StreamWarehouse(changed.spark)
    streams = [changed.stream("orders")]
    changed.consume("one", session, changed.shop.open_cycle(), streams=streams)
    changed.run("one")
    assert changed.rows("one") == BOTH


def test_a_stream_with_a_start_begins_there(new: StreamShop) -> None:
    session = StreamWarehouse(new.spark)
    read = new.stream("orders").read
    start = position(read, new.shop.open_cycle(), session)
    new.spark.write("shop.orders").append((4, 20, 1))
    chosen = {"start": start, "has_chosen_start": True}
    for initial_rows, ids in ((False, [4]), (True, [1, 2, 3, 4])):
        stream = new.stream("orders", **chosen, initial_rows=initial_rows)
        consumer = f"first_{initial_rows}"
        new.consume(consumer, session, new.shop.open_cycle(), streams=[stream])
        assert [row[1] for row in new.rows(consumer)] == ids


def test_positions_are_moved_and_forgotten_by_a_commit_of_their_own(changed: StreamShop) -> None:
    session, cycle = StreamWarehouse(changed.spark), changed.shop.open_cycle()
    request = ConsumerRequest("model.shop.one", TableName("shop", "one"), "0.test")
    found = read_consumer(request, session, lambda _: None)
    assert found.record is not None
    orders = changed.stream("orders")
    now = position(orders.read, cycle, session)
    taken = type(found.record.streams[orders.model])(
        orders.fingerprint, now, now, changed.spark.clock
    )
    rows = changed.rows("one")
    moved(found, {orders.model: taken}, "MOVE", cycle, session)
    assert changed.rows("one") == rows
    changed.run("one")
    assert changed.rows("one") == sorted([*FIRST, SECOND[0]])
    again = read_consumer(request, session, lambda _: None)
    moved(again, {orders.model: None}, "RESET", changed.shop.open_cycle(), session)
    changed.run("one")
    ids = [row[1] for row in changed.rows("one") if row[0] == "orders_stream"]
    assert sorted(ids) == [1, 2, 2, 3, 3, 4]


def test_a_stream_is_kept_in_the_properties_of_its_view(new: StreamShop) -> None:
    session = StreamWarehouse(new.spark)
    start = position(new.stream("orders").read, new.shop.open_cycle(), session)
    stream = new.stream("orders", start=start, max_retention_extension=timedelta(days=1))
    query = "SELECT id FROM `shop`.`orders`"
    for statement in show_stream(stream, query, None, False):
        session.execute(statement)
    assert read_stream(session, stream.view) == stream
    assert read_stream(session, TableName("shop", "nothing")) is None
    texts = "".join(new.spark.view("shop.orders_stream").properties.values())
    # Spark hides a value with a word like `token` in it.
    assert set(texts) <= set("0123456789abcdef")
    [only] = show_stream(stream, query, True, True)
    assert only.startswith("ALTER VIEW")
    new.spark.view("shop.orders_stream").properties["spark_dynamic.stream.0"] = "00"
    with pytest.raises(EngineError, match="STREAM_NOT_READABLE"):
        read_stream(session, stream.view)
