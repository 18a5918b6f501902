"""The refreshes of a period, read back from the state table."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from spark_dynamic.clock import from_micros, micros
from spark_dynamic.names import TableName
from spark_dynamic.schedule.known import Refresh


def refreshes_since(table: TableName, since: datetime) -> str:
    """Return the query for all rows that ended after a moment; moments come as numbers."""
    return (
        "SELECT relation, refresh_action AS action, state, unix_micros(started_at) AS started, "
        "unix_micros(ended_at) AS ended, unix_micros(data_timestamp) AS moment "
        f"FROM {table.sql} WHERE unix_micros(ended_at) >= {micros(since)}"
    )


def read_refreshes(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Refresh]]:
    """Return the refreshes of each table, as the query gave them."""
    found: dict[str, list[Refresh]] = {}
    for row in rows:
        moment = row["moment"]
        refresh = Refresh(
            action=row["action"] or "",
            started_at=from_micros(int(row["started"])),
            ended_at=from_micros(int(row["ended"])),
            data_timestamp=None if moment is None else from_micros(int(moment)),
            succeeded=row["state"] == "SUCCEEDED",
        )
        found.setdefault(row["relation"], []).append(refresh)
    return found
