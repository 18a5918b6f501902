"""What the adapter does for `stream()` and a consumer's main statement, on a fake Spark."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.contracts.connection import AdapterResponse
from fake_dbt import DbtShop, StateWarehouse, dbt_shop
from fake_streams import StreamWarehouse, position, select_of_changes

from dbt.adapters.spark_dynamic import dynamic_tables, streams
from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.errors import StreamError
from dbt.adapters.spark_dynamic.streams import Streams
from spark_dynamic.changes import read as changes
from spark_dynamic.changes.consumer import CONSUMER_PROPERTY
from spark_dynamic.changes.consumption import consumptions
from spark_dynamic.frontier.record import is_empty_run

STREAM = SimpleNamespace(schema="shop", identifier="orders_stream")
QUERY = "select id from shop.orders"


class Session(StreamWarehouse, StateWarehouse):
    """A session for everything that a run asks; the list of consumptions is kept as text."""

    def _answer(self, sql: str) -> list[dict[str, Any]]:
        if "`changes_stream_consumptions`" in sql:
            self.spark.state_rows.append(sql)
            return []
        return super()._answer(sql)


@dataclass
class Run:
    """One invocation of dbt."""

    shop: DbtShop
    adapter: Any
    streams: Streams

    def build(self) -> str:
        model = node("orders_stream", "changes_stream")
        return self.streams.build(model, STREAM, QUERY, False).response._message

    def take(self, consumer: dict[str, Any]) -> str:
        this = SimpleNamespace(schema="shop", identifier=consumer["name"])
        return self.streams.take(consumer, this, STREAM, False)

    def consume(self, consumer: dict[str, Any]) -> AdapterResponse:
        """Compile and run a model as dbt does."""
        query = f"SELECT id, change_action FROM {self.take(consumer)} AS s"
        config = dict(consumer["config"])
        self.streams.begin(SimpleNamespace(unique_id=consumer["unique_id"], config=config))
        assert config["tblproperties"] == {CONSUMER_PROPERTY: "true"}
        session = Session(self.shop.spark)
        table = f"`shop`.`{consumer['name']}`"

        def main() -> Any:
            if self.shop.spark.exists(table):
                session.execute(f"INSERT INTO {table} {query}")
            else:
                session.execute(f"CREATE OR REPLACE TABLE {table} AS {query}")
            return AdapterResponse("OK"), None

        return self.streams.write(consumer, main)[0]


def node(name: str, materialized: str, kind: str = "model", **config: Any) -> dict[str, Any]:
    return {
        "unique_id": f"{kind}.shop.{name}",
        "name": name,
        "resource_type": kind,
        "original_file_path": f"models/{name}.sql",
        "config": {"materialized": materialized, **config},
    }


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[DbtShop]:
    with dbt_shop(monkeypatch) as made:
        monkeypatch.setattr(changes, "change_select", select_of_changes)
        monkeypatch.setattr(changes, "position_now", position)
        made.flags["which"] = "run"
        yield made


@pytest.fixture
def begin(shop: DbtShop, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that begins an invocation, whose statements share one session."""

    def run() -> Run:
        session = Session(shop.spark)
        monkeypatch.setattr(streams, "DbtWarehouse", lambda adapter: session)
        monkeypatch.setattr(dynamic_tables, "DbtWarehouse", lambda adapter: session)
        monkeypatch.setattr(f"{__name__}.Session", lambda spark: session)
        shop.spark.tick(60)
        adapter = shop.adapter()
        return Run(shop, adapter, Streams(adapter, DynamicTables(adapter)))

    return run


CONSUMER = node("taken", "incremental")


def rows(shop: DbtShop) -> list[tuple[Any, ...]]:
    return shop.spark.read("select id, change_action from shop.taken")


def test_a_stream_and_its_consumer_over_several_runs(shop: DbtShop, begin: Any) -> None:
    run = begin()
    assert run.build().startswith("STARTED 2026-")
    response = run.consume(CONSUMER)
    assert (response._message, response.code) == ("CONSUMED orders_stream", "CONSUMED")
    run.streams.flush()
    assert rows(shop) == [(1, "INSERT"), (2, "INSERT"), (3, "INSERT")]
    shop.spark.write("shop.orders").append((4, 20, 1))
    again = begin()
    # The same rows, however often it is named, and whether or not the run comes to its end.
    assert again.take(CONSUMER) == again.take(CONSUMER)
    again.streams.flush()
    last = begin()
    assert last.build().startswith("STREAM 2026-")
    last.consume(CONSUMER)
    last.streams.flush()
    assert rows(shop)[-1] == (4, "INSERT") and len(rows(shop)) == 4
    listed = [text for text in shop.rows if "'CONSUME'" in str(text)]
    assert len(listed) == 2


def test_a_default_that_is_named_from_now_on_changes_no_stream(shop: DbtShop, begin: Any) -> None:
    first = begin()
    first.build()
    first.consume(CONSUMER)
    shop.shop.settings["spark.sql.caseSensitive"] = "false"
    again = begin()
    assert again.build().startswith("STREAM 2026-")
    again.consume(CONSUMER)
    shop.shop.settings["spark.sql.caseSensitive"] = "true"
    changed = begin()
    changed.build()
    with pytest.raises(StreamError, match="STREAM_CHANGED"):
        changed.consume(CONSUMER)


def test_a_run_that_is_covered_writes_nothing(shop: DbtShop, begin: Any) -> None:
    first = begin()
    first.build()
    first.consume(CONSUMER)
    late = begin()
    late.take(node("another", "incremental"))
    shop.spark.write("shop.orders").append((4, 20, 1))
    other = begin()
    other.consume(CONSUMER)
    commits = len(shop.spark.table("shop.taken").commits)
    assert late.consume(CONSUMER)._message == "COVERED"
    assert len(shop.spark.table("shop.taken").commits) == commits


def test_of_two_runs_at_once_both_succeed(shop: DbtShop, begin: Any) -> None:
    first = begin()
    first.build()
    first.consume(CONSUMER)
    shop.spark.write("shop.orders").append((4, 20, 1))
    loser = begin()
    loser.take(CONSUMER)
    winner = begin()
    assert winner.consume(CONSUMER).code == "CONSUMED"
    response = loser.consume(CONSUMER)
    assert (response._message, response.code) == ("COVERED", "COVERED")
    assert (response.consumption_action, response.consumption_number) == ("COVERED", None)
    assert len(rows(shop)) == 4
    begin().consume(CONSUMER)
    assert len(rows(shop)) == 4


def test_of_two_runs_that_make_a_stream_one_gives_it_its_start(shop: DbtShop, begin: Any) -> None:
    one, other = begin(), begin()
    said: list[str] = []
    shop.spark.meanwhile.append(("^CREATE VIEW", lambda: said.append(other.build())))
    said.append(one.build())
    words, starts = zip(*(line.split() for line in said), strict=True)
    assert words == ("STARTED", "STREAM") and len(set(starts)) == 1


def test_another_time_zone_in_the_profile_stops_consumers(shop: DbtShop, begin: Any) -> None:
    first = begin()
    first.build()
    first.consume(CONSUMER)
    shop.spark.write("shop.orders").append((4, 20, 1))
    before = dict(shop.shop.settings)
    shop.shop.settings["spark.sql.session.timeZone"] = "Asia/Tokyo"
    with pytest.raises(StreamError, match="STREAM_CHANGED.*timeZone was UTC and is Asia/Tokyo"):
        begin().take(CONSUMER)
    shop.shop.settings.update(before)
    begin().consume(CONSUMER)
    assert len(rows(shop)) == 4


def test_what_cannot_consume(shop: DbtShop, begin: Any) -> None:
    run = begin()
    with pytest.raises(StreamError, match="STREAM_NOT_BUILT"):
        run.take(CONSUMER)
    shop.flags["which"] = "compile"
    assert begin().take(CONSUMER) == "`shop`.`orders_stream`"
    shop.flags["which"] = "run"
    run = begin()
    run.build()
    for refused in (node("v", "view"), node("e", "ephemeral"), node("t", "test", "test")):
        with pytest.raises(StreamError, match="STREAM_CONSUMER"):
            run.take(refused)
    assert run.take(node("u", "unit", "unit_test")) == str(STREAM)
    # A hook may read what its model takes, but not take by itself.
    run.take(CONSUMER)
    hooked = node("hooked", "incremental")
    for consumer in (CONSUMER, hooked):
        names = SimpleNamespace(unique_id=consumer["unique_id"], config={})
        run.streams.begin(names)
    run.take(CONSUMER)
    with pytest.raises(StreamError, match="A hook of hooked"):
        run.take(hooked)


def test_an_empty_run_takes_nothing_and_leaves_a_mark(
    shop: DbtShop, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "consumes", lambda *_: True)
    shop.model("taken", "select 1", materialized="incremental")
    shop.flags["EMPTY"] = True
    run = begin()
    assert run.build() == "EMPTY_RUN"
    taken = run.take(CONSUMER)
    assert taken == "(SELECT * FROM `shop`.`orders_stream` WHERE false)"
    session = Session(shop.spark)

    def main() -> Any:
        session.execute(f"CREATE OR REPLACE TABLE `shop`.`taken` AS SELECT * FROM {taken} AS s")
        return AdapterResponse("OK"), None

    assert run.streams.write({**CONSUMER, "unique_id": "model.shop.taken"}, main)[0].code is None
    [commit] = shop.spark.table("shop.taken").commits
    assert is_empty_run(commit) and not consumptions([commit])
    shop.flags["EMPTY"] = False
    normal = begin()
    assert normal.build().startswith("STARTED")
