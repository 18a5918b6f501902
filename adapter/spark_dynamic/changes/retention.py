"""How long a table keeps what was replaced."""

import re
from datetime import timedelta
from typing import Final

from spark_dynamic.warehouse import Relation

FILES: Final = "delta.deletedFileRetentionDuration"
LOG: Final = "delta.logRetentionDuration"
_DEFAULTS: Final = {FILES: timedelta(days=7), LOG: timedelta(days=30)}
_INTERVAL: Final = re.compile(r"(\d+)\s+(second|minute|hour|day|week|month)s?", re.IGNORECASE)
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
