"""Can a version still be read? One answer for points, positions, streams and refreshes.

A version is made of files, and those that a later commit replaces are kept for the table's
retention after that commit. So a version can be read for as long after it was replaced,
however old it is itself; the newest one always can. Delta's own check goes by the age of the
version instead, and is switched off on our connections.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from spark_dynamic.changes.retention import retention_of
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.history import Effect, effect
from spark_dynamic.frontier.record import Pin
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Commit, Warehouse

# VACUUM goes by when a file was replaced, which is a little before the commit that did it; and
# some time passes until a statement runs.
_MARGIN: Final = timedelta(hours=1)
HISTORY_LOST: Final = "HISTORY_LOST"


def lost_at(pin: Pin, cycle: Cycle, warehouse: Warehouse) -> datetime | None:
    """Return when the rows of a version, and what changed since, begin to be lost.

    None if nothing has changed since.
    """
    relation = cycle.catalog.relation(warehouse, pin.table)
    following = _following(pin, cycle, warehouse)
    if relation is None or following is None:
        return None
    return following.timestamp + retention_of(relation)


def is_kept(pin: Pin, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Tell whether the rows of a version can be read, and all changes after it."""
    moment = lost_at(pin, cycle, warehouse)
    return moment is None or moment > cycle.data_timestamp


def is_safe(table: TableName, version: int, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Tell whether a version can be read with time to spare: for those who have another way."""
    commit = cycle.commit_at(warehouse, table, version)
    if commit is None:
        return False
    moment = lost_at(Pin(table, "", version, commit.timestamp), cycle, warehouse)
    margin = min(_MARGIN, retention_of(cycle.catalog.relation(warehouse, table)) / 10)
    return moment is None or moment - margin > cycle.data_timestamp


def check_kept_rows(pin: Pin, cycle: Cycle, warehouse: Warehouse) -> None:
    """Refuse a version whose rows may be gone."""
    if not is_kept(pin, cycle, warehouse):
        raise lost(pin)


def lost(pin: Pin) -> EngineError:
    """Return the error of a version that is gone."""
    return EngineError(
        HISTORY_LOST,
        f"Version {pin.version} of {pin.table} can no longer be read. Ask for a later point, or "
        "keep more history: raise its delta.deletedFileRetentionDuration and "
        "delta.logRetentionDuration.",
    )


def lasting(pin: Pin, cycle: Cycle, warehouse: Warehouse, until: int | None = None) -> Pin:
    """Return the newest version (up to another one) that is the same, row by row.

    OPTIMIZE lets the files of a version go, but not its rows.
    """
    newest = cycle.catalog.history(warehouse, pin.table)[0].version
    following = _following(pin, cycle, warehouse)
    version = newest if following is None else following.version - 1
    version = version if until is None else min(version, until)
    if version <= pin.version:
        return pin
    commit = cycle.commit_at(warehouse, pin.table, version)
    # A log that was cleaned does not tell.
    return replace(pin, version=version, committed_at=commit.timestamp) if commit else pin


def _following(pin: Pin, cycle: Cycle, warehouse: Warehouse) -> Commit | None:
    """Return the first commit after a version that did anything to rows or columns."""
    history = cycle.catalog.history(warehouse, pin.table, since=pin.version)
    later = (c for c in reversed(history) if c.version > pin.version)
    return next((c for c in later if effect(c) is not Effect.NOTHING), None)


def available(table: TableName, cycle: Cycle, warehouse: Warehouse) -> tuple[datetime, Commit]:
    """Return the earliest moment at which a table can be read, and its version then."""
    kept_for = retention_of(cycle.catalog.relation(warehouse, table))
    oldest, *earlier = cycle.catalog.history(warehouse, table, since=0)
    for commit in earlier:
        # What was replaced too long ago is gone, and so is all that was before.
        is_gone = oldest.timestamp + kept_for <= cycle.data_timestamp
        if is_gone and effect(oldest) is not Effect.NOTHING:
            break
        oldest = commit
    return oldest.timestamp, oldest
