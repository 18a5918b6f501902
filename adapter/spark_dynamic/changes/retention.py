"""How far back the rows of a table can be read."""

import re
from datetime import datetime, timedelta

from spark_dynamic.duration import parse_duration
from spark_dynamic.warehouse import Relation

# Delta's default for how long the files of old versions are kept.
_DEFAULT = timedelta(days=7)
_PROPERTY = re.compile(r"delta\.deletedFileRetentionDuration=(?:interval )?(\d+ [a-z]+)", re.I)


def retention(relation: Relation | None) -> timedelta:
    """Return how long Delta keeps the files of a table's old versions.

    >>> from spark_dynamic.names import TableName
    >>> kept = "[delta.deletedFileRetentionDuration=interval 30 days]"
    >>> retention(Relation(TableName("s", "t"), (), "delta", "", kept)).days
    30
    """
    found = _PROPERTY.search(relation.properties) if relation else None
    try:
        return parse_duration(found[1]) if found else _DEFAULT
    except ValueError:
        # A unit that only Delta knows: what it keeps at least by default.
        return _DEFAULT


def readable_since(relation: Relation | None, now: datetime) -> datetime:
    """Return the moment from which on a table's versions can be read."""
    return now - retention(relation)
