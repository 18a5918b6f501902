"""A model that was a dynamic table before: its storage goes when it becomes something else."""

from typing import TYPE_CHECKING, Any

from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.apply.storage import generations, storage_name
from spark_dynamic.catalog import describe_relation
from spark_dynamic.changes.window import windows_named
from spark_dynamic.names import TableName
from spark_dynamic.sql.pin import MODEL_PROPERTY

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter


def drop_storage(adapter: "SparkDynamicAdapter", table: TableName) -> None:
    """Drop all that stands behind a name which is no dynamic table's any more."""
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
    behind = [storage_name(table, generation) for generation in found]
    for window in windows_named(table, names):
        behind += [storage_name(window, number) for number in generations(window, names)]
        behind.append(window)
    for name in behind:
        described = describe_relation(warehouse, name)
        if described is not None and MODEL_PROPERTY in described.properties:
            kind = "TABLE" if described.view is None else "VIEW"
            warehouse.execute(f"DROP {kind} {name.sql}")
            forget: Any = adapter.cache.drop
            for relation in relations:
                if str(relation.identifier).lower() == name.name:
                    forget(relation)
