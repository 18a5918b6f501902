"""Settings of a real session hold for a block, and are what they were afterwards."""

import pytest
from spark_shop import SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.settings import holding

ADAPTIVE = "spark.sql.adaptive.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"
# Known to Delta, set by nobody; and known to nobody.
UNSET = "spark.databricks.delta.merge.deletionVectors.persistent"
UNKNOWN = "spark.sql.nobody.knows.this"


@pytest.fixture
def warehouse(shop: SparkShop) -> SparkWarehouse:
    shop.run(f"SET {ADAPTIVE}=true", f"SET {PARTITIONS}=3")
    return SparkWarehouse(shop.session)


def values(warehouse: SparkWarehouse, *keys: str) -> list[str]:
    return [warehouse.rows(f"SET {key}")[0]["value"] for key in keys]


@pytest.mark.parametrize("count", [1, 4])
def test_they_hold_in_the_block_only(warehouse: SparkWarehouse, count: int) -> None:
    wanted = {ADAPTIVE: "false", PARTITIONS: "2", UNSET: "false", UNKNOWN: "x`y"}
    wanted = dict(list(wanted.items())[:count])
    before = values(warehouse, *wanted)
    with pytest.raises(ZeroDivisionError), holding(warehouse, wanted):
        assert values(warehouse, *wanted) == list(wanted.values())
        raise ZeroDivisionError
    assert values(warehouse, *wanted) == before
    listed = {row["key"] for row in warehouse.rows("SET")}
    assert {ADAPTIVE, PARTITIONS} <= listed and not {UNSET, UNKNOWN} & listed


def test_what_holds_already_is_not_set(warehouse: SparkWarehouse) -> None:
    with holding(warehouse, {ADAPTIVE: "TRUE", PARTITIONS: "3"}):
        pass
    assert warehouse.statements == ["SET"]
