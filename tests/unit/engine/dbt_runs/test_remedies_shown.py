"""What to do about a reason: said where the reason is a surprise, not where it is only kept."""

from collections.abc import Iterator

import pytest
from fake_dbt import DbtShop, dbt_shop
from fake_warehouse import FakeWarehouse

from spark_dynamic.refresh.explain import explain_refresh
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.support import reason

# In these tests every query counts as one with a LIMIT.
WHY = reason("LIMIT")


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[DbtShop]:
    with dbt_shop(monkeypatch) as made:
        made.model("copy", "select id from shop.orders")
        made.run()
        made.spark.write("shop.orders").append((4, 20, 1))
        yield made


def test_a_full_refresh_that_nobody_asked_for_warns_with_the_remedy(shop: DbtShop) -> None:
    shop.run()
    assert shop.warnings == [f"shop.copy was rebuilt in full. {WHY} {WHY.remedy}"]


def test_the_state_table_and_the_response_have_the_sentence_alone(shop: DbtShop) -> None:
    response = shop.responses()["copy"]
    assert not isinstance(response, str)
    assert (response.reason_code, response.reason) == ("LIMIT", f"LIMIT: {WHY.sentence}")
    assert shop.rows[-1].reason == response.reason


def test_an_error_ends_with_the_remedies(shop: DbtShop) -> None:
    shop.configs["copy"]["refresh_mode"] = "incremental"
    found = shop.run()["copy"]
    assert found.startswith("LIMIT: The query cannot be refreshed incrementally: ")
    assert found.endswith(f"{WHY.remedy} Or use refresh_mode='auto' or 'full'.")
    assert shop.rows[-1].error == found


def test_explain_has_a_line_for_each_remedy(shop: DbtShop) -> None:
    session, cycle = FakeWarehouse(shop.spark), shop.shop.open_cycle()
    plan = plan_refresh(shop.shop.request("copy"), cycle, session)
    lines = explain_refresh(plan, cycle, session)
    assert [line.text for line in lines if line.part == "remedy"] == [WHY.remedy]
    plan = plan_refresh(shop.shop.request("copy", full_refresh=True), cycle, session)
    lines = explain_refresh(plan, cycle, session)
    wanted = [reason("REQUESTED").remedy, WHY.remedy]
    assert [line.text for line in lines if line.part == "remedy"] == wanted
