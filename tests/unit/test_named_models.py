from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from tests.unit.model_nodes import model_node

from dbt.adapters.spark_dynamic.named_models import named_model

DYNAMIC = {"materialized": "dynamic_table"}


def node(name: str, relation: str) -> Any:
    schema, alias = relation.split(".")
    unique_id = f"model.shop.{name}.{relation}"
    return model_node(name, DYNAMIC, schema=schema, alias=alias, unique_id=unique_id)


DAILY = node("daily", "shop.revenue")
ARCHIVED = node("archived", "archive.revenue")
# Named like the alias of others.
REVENUE = node("revenue", "marts.totals")
FIRST, SECOND = node("orders", "shop.orders_v1"), node("orders", "shop.orders_v2")
ALL = [DAILY, ARCHIVED, REVENUE, FIRST, SECOND]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop.revenue", DAILY),
        ("archive.revenue", ARCHIVED),
        ("Archive.`REVENUE`", ARCHIVED),
        ("daily", DAILY),
        # A model's name comes before the alias of another one.
        ("revenue", REVENUE),
        ("totals", REVENUE),
        ("orders_v2", SECOND),
        # A schema is never passed over.
        ("marts.revenue", None),
        ("elsewhere.daily", None),
        ("unknown", None),
    ],
)
def test_a_model_is_found_by_its_relation_then_its_name_then_its_alias(
    name: str, expected: Any
) -> None:
    assert named_model(ALL, name) is expected
    assert named_model(reversed(ALL), name) is expected


@pytest.mark.parametrize(
    ("nodes", "name", "relations"),
    [
        (ALL, "orders", "shop.orders_v1, shop.orders_v2"),
        ([DAILY, ARCHIVED], "revenue", "archive.revenue, shop.revenue"),
    ],
)
def test_a_name_of_several_models_is_refused(nodes: list[Any], name: str, relations: str) -> None:
    with pytest.raises(DbtRuntimeError) as error:
        named_model(nodes, name)
    assert str(error.value.msg) == (
        f"MODEL_AMBIGUOUS: '{name}' is the name of several models. "
        f"Expected the whole name of one: {relations}."
    )
