"""Size and bounds of what was computed: small queries over cached views."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from spark_dynamic.clock import from_micros
from spark_dynamic.delta.facts import Bounds
from spark_dynamic.names import quote
from spark_dynamic.plan.types import is_decimal, is_ordered, is_whole
from spark_dynamic.warehouse import Column, Warehouse


@dataclass(frozen=True)
class Measured:
    """How many rows there are, and the bounds of the columns that have no NULL among them.

    Both are of the rows that were asked for; `others` counts the rest.
    """

    rows: int
    bounds: Mapping[str, Bounds]
    others: int = 0


def measure(
    warehouse: Warehouse, relation: str, columns: list[Column], where: str = ""
) -> Measured:
    """Count rows and find bounds. Values come as texts, which every connection brings alike."""
    bounded = [column for column in columns if is_ordered(column.type)]
    of_those = f" FILTER (WHERE {where})" if where else ""
    parts = ["count(*) AS total", f"count(*){of_those} AS n"]
    for i, column in enumerate(bounded):
        value = quote(column.name)
        if column.type == "timestamp":
            value = f"unix_micros({value})"
        parts += [
            f"count({value}){of_those} AS n{i}",
            f"CAST(min({value}){of_those} AS string) AS low{i}",
            f"CAST(max({value}){of_those} AS string) AS high{i}",
        ]
    [row] = warehouse.rows(f"SELECT {', '.join(parts)} FROM {relation}")
    rows = int(row["n"])
    bounds = {
        column.name: Bounds(_read(row[f"low{i}"], column), _read(row[f"high{i}"], column))
        for i, column in enumerate(bounded)
        if rows and int(row[f"n{i}"]) == rows
    }
    known = {name: b for name, b in bounds.items() if None not in (b.low, b.high)}
    return Measured(rows, known, int(row["total"]) - rows)


def _read(text: str, column: Column) -> Any:
    """Return a value; None if Python has none for it, such as a date in the year 10000."""
    try:
        if is_whole(column.type):
            return int(text)
        if column.type == "date":
            return date.fromisoformat(text)
        if column.type == "timestamp":
            return from_micros(int(text))
    except (ValueError, OverflowError):
        return None
    if is_decimal(column.type):
        return Decimal(text)
    # Bytes that are no text arrive as this character, which may lie below them.
    return None if "\ufffd" in text else text
