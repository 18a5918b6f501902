"""What `explain` says of sources that changed."""

import pytest
from fake_shop import small_shop
from fake_warehouse import FakeWarehouse

from spark_dynamic.refresh.explain import explain_refresh
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.shape import MINIMIZE, shape_text
from spark_dynamic.refresh.sources import intervals


@pytest.mark.parametrize(
    ("feed", "source", "shape"),
    [
        ("true", "inserts only since version 0", "inserts only"),
        ("false", "delta.enableChangeDataFeed", "no change feed"),
    ],
)
def test_a_source_without_a_change_feed_is_said_to_have_none(
    feed: str, source: str, shape: str
) -> None:
    shop = small_shop(copy="select id from shop.orders")
    shop.spark.table("shop.orders").properties["delta.enableChangeDataFeed"] = feed
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    session, cycle = FakeWarehouse(shop.spark), shop.open_cycle()
    plan = plan_refresh(shop.request("copy"), cycle, session)
    said = {line.part: line.text for line in explain_refresh(plan, cycle, session)}
    assert source in said["source"] and "a rewrite" not in said["source"]
    assert plan.record and plan.cut
    found = intervals(plan.record, plan.cut, plan.analysis, cycle, session)
    assert shape_text(MINIMIZE, found) == f"MINIMIZE (shop.orders: {shape})"
