"""Operations on streams: what they show, what they touch, and what names mean."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtRuntimeError
from fake_dbt import DbtShop, StateWarehouse, dbt_shop
from fake_streams import StreamWarehouse, position, select_of_changes

from dbt.adapters.spark_dynamic import dynamic_tables, streams
from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.stream_calls import STREAM_MACRO
from dbt.adapters.spark_dynamic.stream_operations import StreamOperations
from dbt.adapters.spark_dynamic.stream_positions import StreamPositions, named
from dbt.adapters.spark_dynamic.streams import Streams
from spark_dynamic.changes import read as changes
from spark_dynamic.changes.consumption import consumptions

STREAMS = {name: f"select id from shop.{name}" for name in ("orders", "customers")}
# It consumes one stream and reads the other.
TEXT = "select * from {{ stream('orders_stream') }} cross join {{ ref('customers_stream') }}"


class Session(StreamWarehouse, StateWarehouse):
    """A session for everything that operations ask; the list of consumptions is left out."""

    def _answer(self, sql: str) -> list[dict[str, Any]]:
        return [] if "`changes_stream_consumptions`" in sql else super()._answer(sql)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[DbtShop]:
    with dbt_shop(monkeypatch) as made:
        monkeypatch.setattr(changes, "change_select", select_of_changes)
        monkeypatch.setattr(changes, "position_now", position)
        session = Session(made.spark)
        for module in (streams, dynamic_tables):
            monkeypatch.setattr(module, "DbtWarehouse", lambda adapter: session)
        made.flags["which"] = "run"
        for name, sql in STREAMS.items():
            made.model(f"{name}_stream", sql, materialized="changes_stream")
        made.model("taken", TEXT, materialized="incremental")
        run(made, session)
        yield made


def run(shop: DbtShop, session: Session) -> None:
    """Build both streams, and let the consumer take from the one that it names."""
    adapter = adapter_of(shop)
    found = Streams(adapter, DynamicTables(adapter))
    nodes = {name: adapter._macro_resolver.nodes[f"model.shop.{name}"] for name in shop.configs}
    for name, sql in STREAMS.items():
        view = SimpleNamespace(schema="shop", identifier=f"{name}_stream")
        found.build(nodes[view.identifier].to_dict(), view, sql, False)
    model, this = nodes["taken"].to_dict(), SimpleNamespace(schema="shop", identifier="taken")
    stream = SimpleNamespace(schema="shop", identifier="orders_stream")
    query = f"SELECT id, change_action FROM {found.take(model, this, stream, False)} AS s"

    def main() -> Any:
        session.execute(f"CREATE OR REPLACE TABLE `shop`.`taken` AS {query}")
        return AdapterResponse("OK"), None

    found.write(model, main)


def adapter_of(shop: DbtShop) -> Any:
    shop.spark.tick(60)
    manifest = shop.manifest()
    depends_on = manifest.nodes["model.shop.taken"].depends_on
    depends_on.nodes = [f"model.shop.{name}_stream" for name in STREAMS]
    depends_on.macros = [STREAM_MACRO]
    return shop.adapter(manifest)


def operations(shop: DbtShop) -> StreamOperations:
    adapter = adapter_of(shop)
    return StreamOperations(adapter, DynamicTables(adapter))


def status(shop: DbtShop) -> dict[tuple[str, str], str]:
    rows = operations(shop).status(None).rows
    return {(row["stream"], row["consumer"]): row["state"] for row in rows}


def taken(shop: DbtShop) -> dict[str, int]:
    found = consumptions(shop.spark.table("shop.taken").commits)[0].consumption.streams
    return {name: pin.version for name, one in found.items() for pin in one.end.values()}


def test_a_stream_that_is_only_read_has_no_consumer(shop: DbtShop) -> None:
    assert status(shop) == {
        ("shop.customers_stream", "-"): "no consumer",
        ("shop.orders_stream", "shop.taken"): "up to date",
    }


def test_maintenance_is_no_change(shop: DbtShop) -> None:
    shop.spark.write("shop.orders").optimize()
    assert status(shop)["shop.orders_stream", "shop.taken"] == "up to date"
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.spark.write("shop.orders").optimize()
    assert status(shop)["shop.orders_stream", "shop.taken"] == "changes pending"


def test_a_move_of_all_streams_leaves_those_alone_that_are_only_read(shop: DbtShop) -> None:
    shop.spark.write("shop.orders").append((4, 20, 1))
    operations(shop).move("taken", None, "now")
    assert taken(shop) == {"model.shop.orders_stream": 1}
    with pytest.raises(DbtRuntimeError, match="'customers_stream' is no stream that taken cons"):
        operations(shop).move("taken", "customers_stream", "now")
    operations(shop).reset("taken", "shop.orders_stream")
    assert taken(shop) == {}


def node(name: str, schema: str = "shop", alias: str = "", package: str = "shop") -> Any:
    unique_id = f"model.{package}.{name}"
    return SimpleNamespace(
        unique_id=unique_id, name=name, alias=alias or name, schema=schema, package_name=package
    )


def test_a_name_means_one_model_or_none() -> None:
    one, other = node("people"), node("people", "archive", package="archive_of")
    alias = node("persons", "dev", "people")
    nodes = [one, other, alias]
    for name in ("shop.people", "`Shop`.people"):
        assert named(nodes, name, "nothing") == [one]
    assert named(nodes, "archive.people", "nothing") == [other]
    assert named(nodes, "archive_of.people", "nothing") == [other]
    assert named(nodes, "persons", "nothing") == [alias]
    with pytest.raises(DbtRuntimeError, match="several models.*: archive.people, shop"):
        named(nodes, "people", "nothing")
    with pytest.raises(DbtRuntimeError, match="'test.people' is nothing. Expected one of"):
        named(nodes, "test.people", "nothing")


def test_positions_are_found_by_whole_names(shop: DbtShop) -> None:
    adapter = adapter_of(shop)
    positions = StreamPositions(adapter, DynamicTables(adapter))
    [found] = positions.streams("shop.orders_stream")
    assert found.name == "orders_stream"
    with pytest.raises(DbtRuntimeError, match="'other.orders_stream' is no model with"):
        positions.streams("other.orders_stream")
    [consuming] = positions.consumers("shop.taken")
    assert [one.name for one in consuming.streams] == ["orders_stream"]
