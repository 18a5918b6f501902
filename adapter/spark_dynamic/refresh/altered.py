"""Whether the storage of a table still has the columns and constraints that it was given.

History tells most of it: only where a commit after the newest record may have touched columns is
the catalog asked what they are now.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from spark_dynamic.apply.constraints import Constraint
from spark_dynamic.apply.groups import VISIBLE
from spark_dynamic.apply.identity import HASH
from spark_dynamic.apply.rows import REFRESH, ROW
from spark_dynamic.frontier.history import Effect, effect
from spark_dynamic.frontier.record import Record, Recorded
from spark_dynamic.warehouse import Commit, Relation

# Nothing of the engine does these to a storage.
_FOREIGN = {"ADD COLUMNS", "DROP COLUMNS", "RENAME COLUMN", "REPLACE COLUMNS"}
_COLLATION = re.compile(r" collate \w+")
# Delta's names of the types that Spark's SQL calls otherwise.
_TYPES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def foreign_columns(newest: Recorded, commits: Iterable[Commit]) -> str:
    """Return which commit gave a storage other columns for certain; "" if none did."""
    for commit in _since(newest, commits):
        if commit.operation in _FOREIGN:
            return f"{commit.operation} at version {commit.version}"
    return ""


def may_have_other_columns(newest: Recorded, commits: Iterable[Commit]) -> bool:
    """Tell whether the catalog has to be asked for the columns of a storage."""
    known = {column.stored_as: column.type for column in newest.record.columns}
    return any(
        effect(commit) is not Effect.NOTHING and not _is_comment(commit, known)
        for commit in _since(newest, commits)
    )


def other_columns(record: Record, storage: Relation) -> str:
    """Return the columns of a storage that are not what a record says; "" if all are."""
    shown = {column.stored_as.lower(): _stored(column.type) for column in record.columns}
    wanted = shown.keys() | {name.lower() for name in _hidden(record.state)}
    found = {column.name.lower(): _stored(column.type) for column in storage.columns}
    retyped = {name for name in shown.keys() & found.keys() if shown[name] != found[name]}
    return ", ".join(sorted(retyped | (wanted ^ found.keys())))


def _stored(type: str) -> str:
    """Return a type without its collation, which Delta does not store."""
    return _COLLATION.sub("", type)


def has_foreign_constraint(
    newest: Recorded, commits: Iterable[Commit], constraints: Iterable[Constraint]
) -> bool:
    """Tell whether a storage was given a constraint that the contract does not have."""
    there: set[str] = set()
    for commit in sorted(_since(newest, commits), key=lambda commit: commit.version):
        name = (commit.parameters.get("name") or "").lower()
        if commit.operation == "ADD CONSTRAINT":
            there.add(name)
        elif commit.operation == "DROP CONSTRAINT":
            there.discard(name)
    return not there <= {constraint.name.lower() for constraint in constraints}


def _since(newest: Recorded, commits: Iterable[Commit]) -> Iterator[Commit]:
    """Yield the commits of others that a record did not take into account."""
    based_on, own = newest.record.based_on, newest.commit.version
    after = own if based_on is None else based_on
    return (commit for commit in commits if commit.version > after and commit.version != own)


def _is_comment(commit: Commit, known: dict[str, str]) -> bool:
    """Tell whether a column kept its name and type, as when it gets a comment."""
    if commit.operation != "CHANGE COLUMN":
        return False
    try:
        column = json.loads(commit.parameters["column"] or "")
        return bool(known[column["name"]] == _TYPES.get(column["type"], column["type"]))
    except (KeyError, TypeError, ValueError):
        return False


def _hidden(state: dict[str, Any]) -> list[str]:
    """Return the names of the columns that a storage has beside those of the query."""
    if state.get("kind") == "rows":
        return [*HASH, REFRESH, ROW]
    if state.get("kind") != "groups":
        return []
    visible = [VISIBLE] if state["filtered"] else []
    return [*state["keys"], *(name for name, *_ in state["columns"]), *visible]
