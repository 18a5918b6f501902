"""The refreshes of some time, read back from the state table."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from spark_dynamic.clock import from_micros, micros
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName
from spark_dynamic.schedule.known import REFRESHES, Refresh


def refreshes_since(table: TableName, since: datetime) -> str:
    """Return the query for what happened after a moment, and for what each table had by then.

    Without the latter, the lag of a table that was not refreshed for long would be unknown.
    Moments come as numbers.
    """
    limit = micros(since)
    actions = ", ".join(literal(action) for action in REFRESHES)
    return (
        "SELECT relation, refresh_action AS action, state, unix_micros(started_at) AS started, "
        "unix_micros(ended_at) AS ended, unix_micros(data_timestamp) AS moment "
        f"FROM {table.sql} WHERE unix_micros(ended_at) >= {limit}\n"
        "UNION ALL\n"
        "SELECT relation, max_by(refresh_action, data_timestamp), 'SUCCEEDED', "
        "max_by(unix_micros(started_at), data_timestamp), "
        "max_by(unix_micros(ended_at), data_timestamp), max(unix_micros(data_timestamp)) "
        f"FROM {table.sql} WHERE unix_micros(ended_at) < {limit} AND state = 'SUCCEEDED' "
        f"AND data_timestamp IS NOT NULL AND refresh_action IN ({actions}) GROUP BY relation"
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
