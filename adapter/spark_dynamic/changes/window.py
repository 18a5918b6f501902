"""Windows: the changes of a query in the last hours or days, kept for the model that reads them.

A window is a hidden dynamic table of its own. To the model that asks for it, it is an upstream
like any other.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from spark_dynamic.changes.asked import AT_LEAST, STRICT, ChangeRead
from spark_dynamic.duration import EXPECTED_DURATION, format_duration, parse_duration
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName

# Some metastores keep 128 characters of a name, and the storage's is a few longer.
_LONGEST_STEM: Final = 90
_MARK: Final = "__changes_"


@dataclass(frozen=True)
class Window:
    """What a model asks for: a query, how long its changes are kept, how strictly."""

    read: ChangeRead
    interval: timedelta
    bound: str = STRICT

    def name_for(self, model: TableName) -> TableName:
        """Return the name of the window's view; another definition has another one."""
        read = self.read
        keys = sorted((str(table), columns) for table, columns in read.row_keys.items())
        facts = [
            str(model), read.sql, read.schema, read.mode.value, read.unique_key, keys,
            self.interval.total_seconds(), self.bound,
        ]  # fmt: skip
        mark = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:8]
        return model.sibling(f"{_stem(model)}{mark}")


def windows_named(model: TableName, tables: Iterable[str]) -> list[TableName]:
    """Return the windows of a model, by the names of their views and storages in a schema.

    >>> found = windows_named(TableName("s", "m"), ["m__dyn", "m__changes_0a1b2c3d__dyn_2"])
    >>> [str(name) for name in found]
    ['s.m__changes_0a1b2c3d']
    """
    pattern = re.compile(rf"({re.escape(_stem(model))}[0-9a-f]{{8}})(__dyn(_\d+)?)?")
    found = {match[1] for name in tables if (match := pattern.fullmatch(name))}
    return [model.sibling(name) for name in sorted(found)]


def _stem(model: TableName) -> str:
    return f"{model.name[:_LONGEST_STEM]}{_MARK}"


def window_of(
    read: ChangeRead,
    since: Any,
    longest: timedelta,
    *,
    until: Any = None,
    bound: str = STRICT,
    initial_rows: bool = False,
) -> Window:
    """Return the window that a change query in a dynamic table stands for, or say why not."""
    beyond = {
        "upserts()": read.upserts,
        "until": until is not None,
        "initial_rows": initial_rows,
    }
    if any(beyond.values()):
        first = next(name for name, is_asked in beyond.items() if is_asked)
        raise EngineError(
            "CHANGES_NOT_MAINTAINED",
            f"{first} cannot be kept up to date in a dynamic_table, which can keep the changes of "
            "the last hours or days: changes(…, since='2 hours'). Use a view, a table or an "
            "incremental model for anything else.",
        )
    if bound not in (STRICT, AT_LEAST):
        raise EngineError(
            "POINT_NOT_KNOWN", f"Invalid bound '{bound}'. Expected 'strict' or 'at_least'."
        )
    try:
        interval = parse_duration(since)
    except ValueError as error:
        raise EngineError(
            "CHANGES_POINT_FIXED",
            f"since is {since!r}. In a dynamic_table it has to be {EXPECTED_DURATION}, which "
            "moves with the clock: from a fixed point on, the history of the sources would have "
            "to be kept for ever. Use a view, a table or an incremental model for a fixed point.",
        ) from error
    if interval > longest:
        raise EngineError(
            "CHANGES_WINDOW_TOO_LONG",
            f"since is {since!r}, and max_changes_window allows {format_duration(longest)}. Ask "
            "for a shorter time, or raise max_changes_window; the sources have to keep that much "
            "history, too.",
        )
    return Window(read, interval, bound)
