"""How long a table keeps what was replaced, and so how far back its rows can be read."""

import re
from datetime import datetime, timedelta
from typing import Final

from spark_dynamic.frontier.record import Pin
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Relation, Warehouse

FILES: Final = "delta.deletedFileRetentionDuration"
LOG: Final = "delta.logRetentionDuration"
_DEFAULTS: Final = {FILES: timedelta(days=7), LOG: timedelta(days=30)}
_INTERVAL: Final = re.compile(r"(\d+)\s+(second|minute|hour|day|week|month)s?", re.IGNORECASE)
# Some time passes until a statement runs.
_MARGIN: Final = timedelta(hours=1)
_MONTH: Final = timedelta(days=30)


def retention_of(relation: Relation | None, key: str = FILES) -> timedelta:
    """Return how long a table keeps what was replaced: its files, or (`key`) its log.

    >>> from spark_dynamic.names import TableName
    >>> kept = "[delta.deletedFileRetentionDuration=interval 30 days]"
    >>> retention_of(Relation(TableName("s", "t"), (), "delta", "", kept)).days
    30
    """
    pairs = relation.properties.strip("[]").replace(", ", ",").split(",") if relation else []
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name.strip().lower() == key.lower():
            found = _INTERVAL.findall(value)
            parts = (_part(int(number), unit.lower()) for number, unit in found)
            return sum(parts, timedelta()) if found else _DEFAULTS[key]
    return _DEFAULTS[key]


def _part(number: int, unit: str) -> timedelta:
    return number * _MONTH if unit == "month" else timedelta(**{f"{unit}s": number})


def readable_since(relation: Relation | None, now: datetime) -> datetime:
    """Return the moment from which on a table's versions can be read."""
    return now - retention_of(relation)


def is_readable(pin: Pin, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Tell whether Delta still lets a version be read; the newest one it always does."""
    if cycle.catalog.history(warehouse, pin.table)[0].version == pin.version:
        return True
    relation = cycle.catalog.relation(warehouse, pin.table)
    margin = min(_MARGIN, retention_of(relation) / 10)
    return pin.committed_at > readable_since(relation, cycle.data_timestamp) + margin
