"""Seeds, loaded in place: the table and its log stay, only the rows are replaced."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.spark_dynamic.replacing import replacing
from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.apply.commit import static_overwrite
from spark_dynamic.catalog import describe_relation
from spark_dynamic.names import TableName

if TYPE_CHECKING:
    import agate

    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter


def seed_columns(
    adapter: "SparkDynamicAdapter", model: Mapping[str, Any], rows: "agate.Table"
) -> list[list[str]]:
    """Return each column's name, as it is written in SQL, and its type."""
    chosen = model["config"].get("column_types") or {}
    quoting = model["config"].get("quote_columns")
    return [
        [
            adapter.quote_seed_column(str(name), quoting),
            chosen.get(name) or adapter.convert_type(rows, index),
        ]
        for index, name in enumerate(rows.column_names)
    ]


def make_table(
    adapter: "SparkDynamicAdapter", relation: Any, columns: list[list[str]], sql: str
) -> bool:
    """Make a table, unless one with these columns exists, perhaps since a moment ago."""

    def make() -> bool:
        exists = _has_columns(adapter, relation, columns)
        if not exists:
            adapter.execute(sql)
        return not exists

    return replacing(make)


def _has_columns(adapter: "SparkDynamicAdapter", relation: Any, columns: list[list[str]]) -> bool:
    """Tell whether a Delta table with just these columns exists."""
    table = TableName.of(relation.schema, relation.identifier)
    found = describe_relation(DbtWarehouse(adapter), table)
    if found is None or not found.is_delta:
        return False
    existing = [(column.name.lower(), column.type.lower()) for column in found.columns]
    return existing == [(name.strip("`").lower(), kind.lower()) for name, kind in columns]


def load_seed(
    adapter: "SparkDynamicAdapter",
    relation: Any,
    columns: list[list[str]],
    rows: "agate.Table",
    batch_size: int,
    overwrites: bool,
) -> str:
    """Insert the rows in batches; the first replaces what was there. Returns its SQL."""
    row = "(" + ", ".join(f"cast(%s as {kind})" for _, kind in columns) + ")"
    names = ", ".join(name for name, _ in columns)
    first = ""
    for start in range(0, len(rows.rows), batch_size):
        batch = list(rows.rows)[start : start + batch_size]
        replaces = overwrites and start == 0
        how = "insert overwrite table" if replaces else "insert into"
        sql = f"{how} {relation} ({names}) values\n" + ",\n".join([row] * len(batch))
        insert = partial(
            adapter.connections.add_query,
            sql,
            auto_begin=False,
            bindings=[value for values in batch for value in values],
            abridge_sql_log=True,
        )
        with static_overwrite(DbtWarehouse(adapter)):
            if replaces:
                replacing(insert)
            else:
                insert()
        first = first or sql
    return first
