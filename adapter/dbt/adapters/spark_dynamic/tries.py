"""Refreshes on their way through dbt: begun, perhaps refreshed, and not at their end yet."""

import threading
from dataclasses import dataclass, replace
from datetime import datetime

from dbt_common.exceptions import EventCompilationError

from spark_dynamic.names import TableName
from spark_dynamic.refresh.request import Request


@dataclass(frozen=True)
class Try:
    """One model in this run."""

    request: Request
    started_at: datetime
    is_refreshed: bool = False
    # The action of a refresh whose post-hooks come now; "" if none do.
    action: str = ""


class Tries:
    """All that are on their way, in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tries: dict[TableName, Try] = {}

    def begin(self, request: Request, started_at: datetime) -> None:
        """Note that it is a model's turn."""
        with self._lock:
            self._tries[request.view] = Try(request, started_at)

    def refreshed(self, table: TableName, action: str = "") -> None:
        """Note that a table was refreshed, and which action its post-hooks follow, if they do."""
        with self._lock:
            if table in self._tries:
                self._tries[table] = replace(self._tries[table], is_refreshed=True, action=action)

    def end(self, table: TableName, error: BaseException | None = None) -> Try | None:
        """Note that it is over; return the try if it failed before its refresh or after it."""
        with self._lock:
            found = self._tries.pop(table, None)
        # A warning that --warn-error makes an error is none of the table: all of it was done.
        is_well = error is None or isinstance(error, EventCompilationError)
        return None if found and found.is_refreshed and is_well else found
