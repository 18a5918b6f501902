from datetime import UTC

import pytest
from dbt.adapters.capability import Capability
from fake_shop import small_shop
from fake_warehouse import FakeWarehouse

from dbt.adapters.spark_dynamic import impl
from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.freshness import last_change
from spark_dynamic.names import TableName

ORDERS = TableName("shop", "orders")


def test_a_source_is_as_fresh_as_its_newest_change_of_rows() -> None:
    shop = small_shop()
    writer = shop.spark.write("shop.orders")
    writer.append((4, 20, 100))
    changed = shop.spark.table("shop.orders").commits[-1].timestamp
    writer.optimize()
    writer.comment_column("id", "a number")
    assert last_change(FakeWarehouse(shop.spark), ORDERS) == changed


def test_maintenance_is_looked_through() -> None:
    shop = small_shop()
    built = shop.spark.table("shop.orders").commits[0].timestamp
    for _ in range(30):
        shop.spark.write("shop.orders").optimize()
    assert last_change(FakeWarehouse(shop.spark), ORDERS) == built


def test_what_was_forgotten_is_as_old_as_the_history() -> None:
    shop = small_shop()
    for _ in range(3):
        shop.spark.write("shop.orders").optimize()
    orders = shop.spark.table("shop.orders")
    orders.forget_before(2)
    assert last_change(FakeWarehouse(shop.spark), ORDERS) == orders.commits[0].timestamp


def test_a_dynamic_table_can_be_a_source_of_another_project() -> None:
    shop = small_shop(totals="select customer, sum(amount) as t from shop.orders group by 1")
    shop.run()
    built = shop.storage("totals").commits[0].timestamp
    assert last_change(FakeWarehouse(shop.spark), TableName("shop", "totals")) == built


def test_what_has_no_history_is_refused() -> None:
    shop = small_shop()
    shop.spark.create_parquet("shop.old", {"id": "bigint"})
    shop.spark.create_view("shop.shown", "select * from shop.orders")
    for name in ("old", "shown"):
        with pytest.raises(EngineError, match="NO_HISTORY: .*loaded_at_field"):
            last_change(FakeWarehouse(shop.spark), TableName("shop", name))
    with pytest.raises(EngineError, match="SOURCE_MISSING"):
        last_change(FakeWarehouse(shop.spark), TableName("shop", "nowhere"))


def test_dbt_gets_the_age_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = small_shop()
    monkeypatch.setattr(impl, "DbtWarehouse", lambda adapter: FakeWarehouse(shop.spark))
    assert SparkDynamicAdapter.supports(Capability.TableLastModifiedMetadata)
    adapter = object.__new__(SparkDynamicAdapter)
    source = SparkDynamicAdapter.Relation.create(schema="shop", identifier="orders")
    loaded = shop.spark.table("shop.orders").commits[-1].timestamp
    shop.spark.tick(100)
    _, found = adapter.calculate_freshness_from_metadata(source)
    assert found["max_loaded_at"] == loaded.astimezone(UTC)
    assert 100 <= found["age"] < 110
