"""The table of consumptions: one row for each. An index for people; commits are the truth.

It is also what a consumer falls back on whose own log has lost its last record.
"""

from collections.abc import Iterable
from typing import Final

from spark_dynamic.changes.consumption import Consumption, read_consumption, write_consumption
from spark_dynamic.conflicts import despite_conflicts
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.own_tables import append_to, create_own_table, make
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Warehouse

CONSUMPTIONS_TABLE: Final = "changes_stream_consumptions"
_COLUMNS: Final = {
    "consumer": "STRING",
    "action": "STRING",
    "consumption_number": "BIGINT",
    "incarnation": "STRING",
    "streams": "ARRAY<STRING>",
    "data_timestamp": "TIMESTAMP",
    "cycle_id": "STRING",
    "engine_version": "STRING",
    "record": "STRING",
    # Newer columns stand at the end, where they are added to tables that exist.
    "shapes": "ARRAY<STRING>",
}


def create_consumptions_table(table: TableName) -> str:
    """Return the statement that makes the table, if there is none."""
    return create_own_table(table, _COLUMNS)


def append_consumptions(table: TableName, rows: Iterable[Consumption]) -> str:
    """Return the statement that adds consumptions."""
    values = ",\n".join(f"({', '.join(_values(row))})" for row in rows)
    return f"INSERT INTO {table.sql} ({', '.join(_COLUMNS)}) VALUES\n{values}"


def _values(row: Consumption) -> list[str]:
    return [
        literal(value)
        for value in (
            row.consumer,
            row.action,
            row.number,
            row.incarnation,
            sorted(row.streams),
            row.data_timestamp,
            row.cycle,
            row.engine,
            write_consumption(row),
            [taken.shape for _, taken in sorted(row.streams.items())],
        )
    ]


def keep(warehouse: Warehouse, table: TableName, rows: list[Consumption]) -> None:
    """Add consumptions, and make the table first if it is not there."""
    append = append_consumptions(table, rows)
    try:
        append_to(warehouse, table, _COLUMNS, lambda: warehouse.execute(append))
    except WarehouseError as error:
        if not error.misses_table:
            raise
        make(warehouse, table, create_consumptions_table(table))
        despite_conflicts(lambda: warehouse.execute(append))


def kept_consumption(
    warehouse: Warehouse, table: TableName, consumer: TableName
) -> Consumption | None:
    """Return the newest consumption of a consumer that was written down.

    It is the one with the highest number, since the clock of a run may have been ahead; numbers
    begin again where the table was made again, and that has another incarnation.
    """
    select = (
        "SELECT max_by(record, consumption_number) AS record "
        f"FROM {table.sql} WHERE consumer = {literal(str(consumer))} GROUP BY incarnation "
        "ORDER BY min(data_timestamp) DESC, max(consumption_number) DESC LIMIT 1"
    )
    try:
        rows = warehouse.rows(select)
    except WarehouseError as error:
        if error.misses_table:
            return None
        raise
    return read_consumption(rows[0]["record"]) if rows else None
