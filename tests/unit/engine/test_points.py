"""Points that name other things: positions of streams, and cuts of dynamic tables."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from fake_shop import SETTINGS, Shop, small_shop

from spark_dynamic.changes.asked import ChangeRead, Mode, Position
from spark_dynamic.changes.point import OtherPosition
from spark_dynamic.changes.points import Asking, position_of, start_of
from spark_dynamic.changes.read import position_now
from spark_dynamic.clock import stamp
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.history import records
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle

ORDERS = TableName("shop", "orders")
ALL = "select * from shop.orders"
JOINED = "select o.id from shop.orders o join shop.customers c on o.customer = c.id"
STREAM = {"stream": "people_stream", "consumer": "people_changes"}
DAY = timedelta(days=1).total_seconds()


@dataclass
class Places:
    """Positions by name."""

    known: dict[OtherPosition, Position] = field(default_factory=dict)

    def position(self, point: OtherPosition) -> Position:
        return self.known[point]

    def dynamic_table(self, name: str) -> TableName:
        return TableName("shop", name)


def read_of(sql: str = ALL, mode: str = "min_delta") -> ChangeRead:
    return ChangeRead(sql, "shop", dict(SETTINGS), Mode(mode))


def at(
    shop: Shop, value: Any, bound: str = "strict", sql: str = ALL, consumer: Position | None = None
) -> dict[str, int]:
    cycle = Cycle("invocation", shop.session.now(), shop.known())
    places = Places({OtherPosition(*STREAM.values()): consumer or {}})
    asking = Asking("since", value, bound)
    found = position_of(asking, read_of(sql), cycle, shop.session, places=places)
    return {table.name: pin.version for table, pin in found.items()}


@pytest.fixture
def shop() -> Shop:
    return small_shop()


def here(shop: Shop, sql: str = ALL) -> Position:
    """Return where a query is now."""
    return position_now(read_of(sql), shop.open_cycle(), shop.session)


def test_versions_as_texts_and_now_are_points(shop: Shop) -> None:
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert at(shop, "0") == at(shop, 0) == {"orders": 0}
    assert at(shop, "now") == at(shop, "NOW ") == {"orders": 1}


def test_before_the_first_change(shop: Shop) -> None:
    shop.spark.write("shop.orders").append((4, 20, 1))
    asking, cycle = Asking("since", "before the first change"), shop.open_cycle()
    assert start_of(asking, read_of(), cycle, shop.session) is None
    log = start_of(asking, read_of(mode="redo_log"), cycle, shop.session)
    assert log is not None and log[ORDERS].version == 0
    shop.spark.table("shop.orders").forget_before(1)
    with pytest.raises(EngineError, match="POINT_TOO_OLD: since is 'before the first change'"):
        at(shop, "before the first change")
    assert at(shop, "before the first change", "at_least") == {"orders": 1}


def test_a_position_is_where_the_consumer_is(shop: Shop) -> None:
    consumer = here(shop, JOINED)
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert at(shop, STREAM, sql=JOINED, consumer=consumer) == {"orders": 0, "customers": 0}
    # As much of it as the query needs.
    assert at(shop, STREAM, consumer=consumer) == {"orders": 0}
    consumer = here(shop)
    with pytest.raises(EngineError, match="POSITION_INCOMPLETE.*shop.customers"):
        at(shop, STREAM, sql=JOINED, consumer=consumer)


def test_a_position_that_is_too_old(shop: Shop) -> None:
    consumer = here(shop)
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.spark.tick(8 * DAY)
    shop.spark.write("shop.orders").append((5, 20, 1))
    told = (
        "POINT_TOO_OLD: since is the position of people_changes in people_stream.*"
        "earliest available point is 2026-01-.*shop.orders.*bound='at_least'"
    )
    with pytest.raises(EngineError, match=told):
        at(shop, STREAM, consumer=consumer)
    # It begins where history begins.
    assert at(shop, STREAM, "at_least", consumer=consumer) == {"orders": 1}
    # A log that was cleaned is as good as none.
    shop.spark.table("shop.orders").forget_before(2)
    with pytest.raises(EngineError, match="POINT_TOO_OLD"):
        at(shop, STREAM, consumer=consumer)
    assert at(shop, STREAM, "at_least", consumer=consumer) == {"orders": 2}


def test_the_cut_of_a_dynamic_table(shop: Shop) -> None:
    shop.models["totals"] = "select customer, amount from shop.orders"
    with pytest.raises(EngineError, match="POINT_NOT_KNOWN.*shop.totals has no refresh yet"):
        at(shop, {"dynamic_table": "totals"})
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.spark.write("shop.customers").append((30, "c"))
    point = {"dynamic_table": "totals"}
    assert at(shop, point) == {"orders": 0}
    # Other tables at that moment, and the dynamic table itself at its refresh.
    assert at(shop, point, sql=JOINED) == {"orders": 0, "customers": 0}
    assert at(shop, point, sql="select * from shop.totals") == {"totals__dyn": 0}
    shop.run()
    assert at(shop, point) == {"orders": 1}


def test_the_cut_has_what_a_model_of_its_run_left(shop: Shop) -> None:
    """It was pinned at a version that is younger than the data timestamp."""
    shop.models["totals"] = "select customer, amount from shop.orders"
    cycle = shop.open_cycle()
    shop.spark.write("shop.orders").append((4, 20, 1))
    cycle.note_written(ORDERS, shop.spark.clock)
    shop.refresh("totals", cycle)
    assert shop.spark.table("shop.orders").commits[-1].timestamp > cycle.data_timestamp
    shop.spark.write("shop.orders").append((5, 20, 1))
    assert at(shop, {"dynamic_table": "totals"}) == {"orders": 1}
    # Also where it is read beside the dynamic table.
    both = "select o.id from shop.orders o join shop.totals t on o.customer = t.customer"
    assert at(shop, {"dynamic_table": "totals"}, sql=both) == {"orders": 1, "totals__dyn": 0}


def often_refreshed(**models: str) -> Shop:
    """Return a shop in which a dynamic table, the first of these, was refreshed many times."""
    shop = small_shop(**models)
    shop.spark.table("shop.orders").properties["delta.enableChangeDataFeed"] = "true"
    shop.run()
    for number in range(25):
        shop.spark.write("shop.orders").append((100 + number, 20, 1))
        shop.run(next(iter(models)))
    return shop


TOTALS = "select * from shop.totals"
PLAIN = "select id, amount from shop.orders"


@pytest.mark.parametrize("bound", ["strict", "at_least"])
def test_a_moment_is_found_however_many_refreshes_ago_it_was(bound: str) -> None:
    shop = often_refreshed(totals=PLAIN)
    then = records(shop.storage("totals").commits)[-3]
    moment = stamp(then.record.data_timestamp)
    assert at(shop, moment, bound, sql=TOTALS) == {"totals__dyn": then.commit.version}
    with pytest.raises(EngineError, match="POINT_TOO_OLD"):
        at(shop, "2020-01-01", sql=TOTALS)
    assert at(shop, "2020-01-01", "at_least", sql=TOTALS) == {"totals__dyn": 0}


def test_the_cut_of_a_dynamic_table_that_another_has_long_left_behind() -> None:
    shop = often_refreshed(totals=PLAIN, other="select id from shop.orders")
    assert at(shop, {"dynamic_table": "other"}, sql=TOTALS) == {"totals__dyn": 0}
    # Read together they are where the slower one is.
    both = "select t.id from shop.totals t join shop.other o on t.id = o.id"
    assert at(shop, "now", sql=both) == {"totals__dyn": 0, "other__dyn": 0}


def test_now_needs_the_newest_refreshes_alone() -> None:
    shop = often_refreshed(totals=PLAIN)
    before = len(shop.spark.log)
    assert at(shop, "now", sql=TOTALS) == {"totals__dyn": 25}
    asked = [sql for sql in shop.spark.log[before:] if sql.startswith("DESCRIBE HISTORY")]
    assert asked == ["DESCRIBE HISTORY `shop`.`totals__dyn`"]
