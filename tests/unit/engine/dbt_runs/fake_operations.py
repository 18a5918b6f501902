"""The operations on the fake Spark, with the shop in dbt's place as the compiler."""

from typing import Any

from fake_dbt import DbtShop

from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.schedule_operations import ScheduleOperations


class FakeOperations(ScheduleOperations):
    """What `dbt run-operation` calls; a selection is a list of names, or all of them."""

    def __init__(self, shop: DbtShop, adapter: Any) -> None:
        super().__init__(adapter, DynamicTables(adapter))
        self._shop = shop

    def _chosen(self, select: Any, exclude: Any) -> list[str]:
        names = select or self._shop.shop.models
        return [id for id, node in self._manifest.nodes.items() if node.name in names]

    def _request(self, node: Any) -> Any:
        return self._shop.request(self._adapter, node.name)


def operations(shop: DbtShop, after: float = 1) -> FakeOperations:
    shop.spark.tick(after)
    return FakeOperations(shop, shop.adapter())


def rows(table: Any) -> list[list[Any]]:
    return [list(row.values()) for row in table.rows]
