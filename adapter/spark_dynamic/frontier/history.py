"""Reading a Delta history: which commits changed rows, which carry records."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from spark_dynamic.frontier.record import Recorded, is_empty_run, read_record
from spark_dynamic.warehouse import Commit

_NO_ROWS = {
    "OPTIMIZE", "REORG", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES", "ADD CONSTRAINT", "DROP CONSTRAINT", "CLUSTER BY",
    "ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL", "COMPUTE STATS", "UPGRADE PROTOCOL",
    "DOMAIN METADATA CLEANUP", "DROP FEATURE",
}  # fmt: skip
# Rows stay as they are, columns may not: a comment, a new column, a wider type. Dropping and
# renaming are not here, since the values under a name may be others afterwards.
_COLUMNS = {"ADD COLUMNS", "CHANGE COLUMN", "CHANGE COLUMNS", "UPDATE COLUMN METADATA"}

_DYNAMIC = "isDynamicPartitionOverwrite"
# What the parameters of an overwrite of everything may say. With any other one it may be an
# overwrite of a part, of a kind that is not known here.
_OF_ALL = {
    "mode", "partitionBy", "clusterBy", "canOverwriteSchema", "canMergeSchema", "description",
    "properties", "isManaged", "isV1SaveAsTableOverwrite",
}  # fmt: skip
# What they say of a part: the rows of a predicate, or those that the new ones stand for.
_OF_A_PART = ("predicate", "replaceUsingCols", "replaceOnCond", _DYNAMIC)
_FILLS = {
    "CREATE TABLE AS SELECT",
    "REPLACE TABLE AS SELECT",
    "CREATE OR REPLACE TABLE AS SELECT",
}
_EMPTIES = {"CREATE TABLE", "REPLACE TABLE", "CREATE OR REPLACE TABLE", "TRUNCATE"}
# Older writers, and others than Delta's own, do not say that they overwrote some partitions only.
_WRITER = re.compile(r"\bDelta-Lake/(\d+)\.(\d+)")
_TELLS_PARTS = (4, 4)


class Effect(Enum):
    """What a commit did to the rows, as far as history tells."""

    NOTHING = "nothing"
    COLUMNS = "columns"
    ADDED = "added"
    REMOVED = "removed"
    REWRITTEN = "rewritten"


def effect(commit: Commit) -> Effect:
    """Classify one commit. What is not known for certain counts as rewritten.

    >>> from datetime import datetime
    >>> effect(Commit(1, datetime.now(), "OPTIMIZE")).value
    'nothing'
    >>> effect(Commit(1, datetime.now(), "DELETE", {}, {"numDeletedRows": "2"})).value
    'removed'
    """
    if commit.operation in _NO_ROWS:
        return Effect.NOTHING
    if commit.operation in _COLUMNS:
        return Effect.COLUMNS
    match commit.operation:
        case "WRITE" if commit.parameters.get("mode") == "Append":
            return _counted(commit, Effect.ADDED, "numOutputRows")
        case "STREAMING UPDATE" if commit.metrics.get("numRemovedFiles") == "0":
            return _counted(commit, Effect.ADDED, "numOutputRows")
        case "DELETE":
            return _counted(commit, Effect.REMOVED, "numDeletedRows")
        case "UPDATE":
            return _counted(commit, Effect.REWRITTEN, "numUpdatedRows")
        case "MERGE":
            return _merge_effect(commit)
    return Effect.REWRITTEN


def _counted(commit: Commit, otherwise: Effect, metric: str) -> Effect:
    count = commit.metrics.get(metric)
    if count is None:
        # A metric is missing where Delta took a short cut: a whole table deleted by its files.
        return otherwise if otherwise is Effect.REMOVED else Effect.REWRITTEN
    return Effect.NOTHING if count == "0" else otherwise


def _merge_effect(commit: Commit) -> Effect:
    inserted, updated, deleted = (
        commit.metrics.get(f"numTargetRows{what}") for what in ("Inserted", "Updated", "Deleted")
    )
    if inserted is None or updated is None or deleted is None:
        return Effect.REWRITTEN
    if updated == "0" and deleted == "0":
        return Effect.NOTHING if inserted == "0" else Effect.ADDED
    return Effect.REMOVED if inserted == "0" and updated == "0" else Effect.REWRITTEN


# What the change feed shows row by row; everything else may have replaced the whole table.
_ROW_BY_ROW = {"DELETE", "UPDATE", "MERGE"}


def replaces_part(commit: Commit) -> bool:
    """Tell whether a commit is known to have overwritten a part of the table.

    The change feed has all rows of that part: as deleted, and as inserted.
    """
    if not _is_overwrite(commit):
        return False
    parts = {key: commit.parameters.get(key) for key in _OF_A_PART}
    return parts.pop(_DYNAMIC) == "true" or any(value is not None for value in parts.values())


def replaces_all(commit: Commit) -> bool:
    """Tell whether a commit may have taken all rows away and put rows back."""
    is_other = commit.operation not in _ROW_BY_ROW and not replaces_part(commit)
    return effect(commit) is Effect.REWRITTEN and is_other


def rows_left(commit: Commit) -> int | None:
    """Return how many rows a table has after a commit, if the commit alone tells."""
    if commit.operation in _EMPTIES:
        return 0
    given = {key for key, value in commit.parameters.items() if value is not None}
    if not _is_overwrite(commit) or not _tells_parts(commit) or not given <= _OF_ALL:
        return None
    return _number(commit, "numOutputRows")


def _is_overwrite(commit: Commit) -> bool:
    overwrites = commit.operation == "WRITE" and commit.parameters.get("mode") == "Overwrite"
    return overwrites or commit.operation in _FILLS


def _tells_parts(commit: Commit) -> bool:
    """Tell whether an overwrite of a part would say so."""
    writer = _WRITER.search(commit.writer)
    is_known = writer is not None and (int(writer[1]), int(writer[2])) >= _TELLS_PARTS
    return is_known or commit.operation == "CREATE TABLE AS SELECT"


class Counts(NamedTuple):
    """How many rows a commit changed."""

    added: int = 0
    updated: int = 0
    removed: int = 0


def counts(commit: Commit) -> Counts | None:
    """Return how many rows a commit changed; None if history does not tell for certain."""
    kind = effect(commit)
    if kind in (Effect.NOTHING, Effect.COLUMNS):
        return Counts()
    found: tuple[int | None, ...]
    match commit.operation:
        case "WRITE" | "STREAMING UPDATE" if kind is Effect.ADDED:
            found = (_number(commit, "numOutputRows"), 0, 0)
        case "WRITE" if replaces_part(commit):
            # The output includes kept rows that were copied from rewritten files.
            written, copied = (_number(commit, f"num{what}Rows") for what in ("Output", "Copied"))
            added = None if written is None or copied is None else written - copied
            found = (added, 0, _number(commit, "numDeletedRows"))
        case "DELETE":
            found = (0, 0, _number(commit, "numDeletedRows"))
        case "UPDATE":
            found = (0, _number(commit, "numUpdatedRows"), 0)
        case "MERGE":
            found = tuple(
                _number(commit, f"numTargetRows{what}")
                for what in ("Inserted", "Updated", "Deleted")
            )
        case _:
            return None
    known = [number for number in found if number is not None]
    return Counts(*known) if len(known) == len(found) else None


def _number(commit: Commit, metric: str) -> int | None:
    number = commit.metrics.get(metric)
    return None if number is None else int(number)


def between(commits: Iterable[Commit], after: int, until: int) -> list[Commit] | None:
    """Return the commits after one version up to another; None if one of them is gone."""
    found = [commit for commit in commits if after < commit.version <= until]
    return found if len(found) == until - after else None


def records(commits: Iterable[Commit]) -> list[Recorded]:
    """Return the records of a history, newest first.

    Auto-compaction repeats the metadata of the commit before it, so of several commits with
    one attempt's id the oldest is the record.
    """
    found: dict[str, Recorded] = {}
    for commit in sorted(commits, key=lambda c: c.version):
        record = read_record(commit)
        if record is not None and record.attempt not in found:
            found[record.attempt] = Recorded(record, commit)
    return sorted(found.values(), key=lambda r: r.commit.version, reverse=True)


@dataclass(frozen=True)
class Tail:
    """The newest record of a log, and what is wrong with it, if anything."""

    newest: Recorded | None
    older: tuple[Recorded, ...]
    problem: str = ""
    detail: str = ""


def read_tail(commits: list[Commit]) -> Tail:
    """Judge a storage table's history: may the next refresh build on its newest record?"""
    found = records(commits)
    if not found:
        marked = any(is_empty_run(commit) for commit in commits)
        return Tail(None, (), "AFTER_EMPTY_RUN" if marked else "RECORD_LOST")
    newest, *older = found
    for commit in commits:
        if commit.version > newest.commit.version and changes_rows(commit):
            if is_empty_run(commit):
                return Tail(newest, tuple(older), "AFTER_EMPTY_RUN")
            detail = f"{commit.operation} at version {commit.version}"
            return Tail(newest, tuple(older), "FOREIGN_COMMIT", detail)
    if _skips(newest, older[0] if older else None, commits):
        detail = f"the refresh at version {newest.commit.version} was not based on the one before"
        return Tail(newest, tuple(older), "FOREIGN_COMMIT", detail)
    return Tail(newest, tuple(older))


def _skips(newest: Recorded, previous: Recorded | None, commits: list[Commit]) -> bool:
    """Tell whether rows changed between a record's base and its own commit."""
    # A rebuild replaces everything, whatever was there.
    if previous is None and newest.record.action in ("FULL", "REINITIALIZE"):
        return False
    if previous is not None and newest.record.incarnation != previous.record.incarnation:
        return False
    based_on = newest.record.based_on
    if based_on is None or (previous and based_on < previous.commit.version):
        return True
    after = previous.commit.version if previous else based_on
    return any(
        changes_rows(commit)
        for commit in commits
        if after < commit.version < newest.commit.version
    )


def rows_changed(commits: Iterable[Commit]) -> int | None:
    """Return how many rows were added, updated and removed, if history alone tells."""
    found = [counts(commit) for commit in commits]
    known = [count for count in found if count is not None]
    return sum(sum(count) for count in known) if len(known) == len(found) else None


def net_rows(commits: Iterable[Commit]) -> int | None:
    """Return by how many rows a table has grown, if history alone tells."""
    found = [counts(commit) for commit in commits]
    known = [count for count in found if count is not None]
    grown = sum(count.added - count.removed for count in known)
    return grown if len(known) == len(found) else None


def changes_rows(commit: Commit) -> bool:
    """Tell whether a commit may have changed rows."""
    return effect(commit) not in (Effect.NOTHING, Effect.COLUMNS)
