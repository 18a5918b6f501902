"""A model that was a dynamic table before: its storage goes when it becomes something else."""

from typing import TYPE_CHECKING, Any

from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.apply.storage import generations, storage_name
from spark_dynamic.catalog import describe_relation
from spark_dynamic.names import TableName
from spark_dynamic.sql.pin import MODEL_PROPERTY

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter


def drop_storage(adapter: "SparkDynamicAdapter", table: TableName) -> None:
    """Drop all generations behind a name that is no dynamic table's any more."""
    relations = adapter.list_relations(None, table.schema)
    names = [relation.identifier.lower() for relation in relations if relation.identifier]
    found = generations(table, names)
    if not found:
        return
    warehouse = DbtWarehouse(adapter)
    now = describe_relation(warehouse, table)
    if now is None or MODEL_PROPERTY in now.properties:
        # The build failed before the name was taken over: the dynamic table is still in use.
        return
    for generation in found:
        storage = storage_name(table, generation)
        described = describe_relation(warehouse, storage)
        if described is not None and MODEL_PROPERTY in described.properties:
            warehouse.execute(f"DROP TABLE {storage.sql}")
            forget: Any = adapter.cache.drop
            for relation in relations:
                if str(relation.identifier).lower() == storage.name:
                    forget(relation)
