"""The engine's `Warehouse` over the connection of the current dbt thread."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.spark_dynamic.connections import SessionHandle
from dbt.adapters.spark_dynamic.thrift_maps import read_map
from spark_dynamic.clock import ZONE_SETTING, zone_of
from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Commit

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter


class DbtWarehouse:
    """Runs the engine's statements through dbt, so that they are logged like any other."""

    def __init__(self, adapter: "SparkDynamicAdapter") -> None:
        self._adapter = adapter

    def execute(self, sql: str) -> None:
        """Run a statement to its end."""
        with translated():
            self._adapter.execute(sql, auto_begin=False, fetch=False)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Run a statement and return its rows, values as they come (dbt would guess types)."""
        with translated():
            _, cursor = self._adapter.connections.add_query(sql, auto_begin=False)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def history(self, table: TableName, limit: int) -> list[Commit]:
        """Return the newest commits of a table, newest first."""
        sql = f"DESCRIBE HISTORY {table.sql} LIMIT {limit}"
        with translated():
            _, cursor = self._adapter.connections.add_query(sql, auto_begin=False)
            if isinstance(cursor, SessionHandle):
                rows = cursor.project(_HISTORY)
            else:
                rows = self._rows_by_name(cursor)
        return [_commit(row) for row in rows]

    def _rows_by_name(self, cursor: Any) -> list[dict[str, Any]]:
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        settings = self._adapter.config.credentials.server_side_parameters
        zone = zone_of(settings[ZONE_SETTING])
        for row in rows:
            moment = datetime.fromisoformat(str(row["timestamp"])).replace(tzinfo=zone)
            row["micros"] = round(moment.timestamp() * 1_000_000)
        return rows

    def jobs(self) -> int | None:
        """Return how many jobs the session has started; a server does not say."""
        handle = self._adapter.connections.get_thread_connection().handle
        return handle.jobs if isinstance(handle, SessionHandle) else None

    def remove_directory(self, path: str) -> bool:
        """Remove a directory; False where Spark runs elsewhere, and SQL is all that reaches it."""
        handle = self._adapter.connections.get_thread_connection().handle
        if not isinstance(handle, SessionHandle):
            return False
        with translated():
            handle.remove_directory(path)
        return True

    def now(self) -> datetime:
        """Return the time."""
        return datetime.now(UTC)


# The moment as a number: as a value it would pass through the machine's own time zone.
_HISTORY = [
    "version",
    "unix_micros(timestamp) AS micros",
    "operation",
    "operationParameters",
    "operationMetrics",
    "userMetadata",
    "engineInfo",
]


def _commit(row: dict[str, Any]) -> Commit:
    seconds, micros = divmod(row["micros"], 1_000_000)
    return Commit(
        version=row["version"],
        timestamp=datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros),
        operation=row["operation"],
        parameters=_mapping(row["operationParameters"]),
        metrics={k: v for k, v in _mapping(row["operationMetrics"]).items() if v is not None},
        user_metadata=row["userMetadata"],
        writer=row["engineInfo"] or "",
    )


def _mapping(value: Any) -> dict[str, str | None]:
    """Return a map column; over thrift it arrives as a text that is almost JSON.

    >>> _mapping('{"ifExists":"true","properties":"{"a":"b"}","description":null}')
    {'ifExists': 'true', 'properties': '{"a":"b"}', 'description': None}
    """
    return read_map(value) if isinstance(value, str) else dict(value or {})


class translated:
    """Turns dbt's errors into the engine's."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (DbtDatabaseError, DbtRuntimeError)):
            raise WarehouseError.of(str(error.msg)) from error
