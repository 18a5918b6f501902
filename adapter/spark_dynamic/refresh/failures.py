"""What fails while a refresh is planned, though neither the user nor the warehouse is at fault.

A query can always run in full as it is written, so a fault in the engine never has to stop a
refresh: not one in a rule, nor a text that is nested too deeply, nor a lack of memory.
"""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import PurePath
from typing import Any, TypeVar

from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.support import reason
from spark_dynamic.warehouse import Commit, Warehouse

Value = TypeVar("Value")
_PACKAGE = "spark_dynamic"
# It rides in a commit, and stands in a line of a report.
_LONGEST = 200


class Watched:
    """A warehouse that knows which error was its own, whatever its connection raises."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._raised: BaseException | None = None

    def has_raised(self, error: Exception) -> bool:
        """Tell whether an error came from the warehouse."""
        return error is self._raised

    def execute(self, sql: str) -> None:
        """Run a statement."""
        self._watch(lambda: self._warehouse.execute(sql))

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Run a statement and return its rows."""
        return self._watch(lambda: self._warehouse.rows(sql))

    def history(self, table: TableName, limit: int) -> list[Commit]:
        """Return the newest commits of a table."""
        return self._watch(lambda: self._warehouse.history(table, limit))

    def now(self) -> datetime:
        """Return the time."""
        return self._warehouse.now()

    def _watch(self, ask: Callable[[], Value]) -> Value:
        try:
            return ask()
        except BaseException as error:
            self._raised = error
            raise


def watched(warehouse: Warehouse) -> Watched:
    """Return a warehouse that knows its own errors."""
    return warehouse if isinstance(warehouse, Watched) else Watched(warehouse)


def failure(error: Exception, warehouse: Watched) -> str:
    """Return what failed in the engine. Errors of the user and the warehouse are raised again."""
    if isinstance(error, EngineError | WarehouseError) or warehouse.has_raised(error):
        raise error
    return described(error)


@contextmanager
def faults_reported(warehouse: Warehouse) -> Iterator[Watched]:
    """Let a fault in the engine be an error that people can read, if nothing can replace it."""
    own = watched(warehouse)
    try:
        yield own
    except Exception as error:
        raise EngineError.of(reason("PLANNING_FAILED", failure(error, own))) from error


def described(error: Exception) -> str:
    """Return an error in a few words, with the innermost place of the engine that it came through.

    >>> described(KeyError("id"))
    "KeyError: 'id'"
    """
    said = str(error).strip().partition("\n")[0].rstrip(".")[:_LONGEST]
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = PurePath(frame.f_code.co_filename)
        if path.parent.parent.name == _PACKAGE:
            place = f", in {path.parent.name}/{path.name} line {line}"
    return f"{type(error).__name__}{f': {said}' if said else ''}{place}"
