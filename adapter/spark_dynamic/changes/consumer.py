"""A consumer's table: which record counts, and what the next one is called."""

import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from spark_dynamic.catalog import describe_relation
from spark_dynamic.changes.consumption import Consumption, consumptions, is_consumption
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.history import replaces_part
from spark_dynamic.frontier.record import is_empty_run
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Commit, Relation, Warehouse

# On the table of a consumer; without its record it is lost, never new.
CONSUMER_PROPERTY: Final = "spark_dynamic.consumer"
_FIRST_LOOK: Final = 30
# The table is what it was before its first consumption: restored, or built anew without one.
_NOTHING: Final = "nothing"
_REPLACING: Final = ("CREATE TABLE", "CREATE OR REPLACE TABLE", "REPLACE TABLE")

# Returns the newest consumption of a table that the table of consumptions knows.
Kept = Callable[[TableName], Consumption | None]


@dataclass(frozen=True)
class ConsumerRequest:
    """A model that consumes, in one invocation."""

    model: str
    table: TableName
    engine_version: str
    # Each run replaces all rows, so that the table holds just the last batch.
    holds_last_batch: bool = False
    full_refresh: bool = False
    # The table has a place of its own, where its log stays when the table is dropped.
    has_location: bool = False
    # Those of the session that change results; None if they are as the stream knows them.
    settings: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Consumer:
    """What is there of a consumer when a consumption begins."""

    request: ConsumerRequest
    relation: Relation | None
    # The record that counts; None if all streams are new to the consumer.
    record: Consumption | None
    transaction: tuple[str, int]
    based_on: int
    # The newest record of the log, if perhaps not the one that counts.
    newest: Consumption | None = None

    @property
    def is_marked(self) -> bool:
        """Tell whether the table says that it is a consumer."""
        return self.relation is not None and self.relation.has_property(CONSUMER_PROPERTY, "true")


def read_consumer(request: ConsumerRequest, warehouse: Warehouse, kept: Kept) -> Consumer:
    """Look at a consumer's table and its log."""
    relation = describe_relation(warehouse, request.table)
    if relation is None or not relation.is_delta:
        is_built_anew = relation is None or relation.view is not None or request.holds_last_batch
        if not is_built_anew and not request.full_refresh:
            raise EngineError(
                "STREAM_CONSUMER",
                f"{request.table} is no Delta table, so it cannot hold the position in a stream. "
                "Build it again with --full-refresh and file_format='delta'.",
            )
        return Consumer(request, None, None, (_first_application(request), 1), -1)
    commits = _whole_log(warehouse, request.table)
    return _judge(request, relation, commits, kept)


def _judge(
    request: ConsumerRequest, relation: Relation, commits: list[Commit], kept: Kept
) -> Consumer:
    found = consumptions(commits)
    newest = found[0].consumption if found else None
    effective = _effective(commits, request.holds_last_batch)
    is_marked = relation.has_property(CONSUMER_PROPERTY, "true")
    is_lost = effective is None and (is_marked or newest is not None)
    if is_lost and newest is None:
        effective = newest = kept(request.table)
    starts_anew = request.full_refresh or effective == _NOTHING
    if is_lost and effective is None and not starts_anew:
        raise EngineError(
            "STREAM_POSITION_LOST",
            f"{request.table} consumes streams, but which rows it has consumed is neither in its "
            "log any more nor in the table of consumptions. Build it again with --full-refresh, "
            "or choose a position with changes_stream_move or changes_stream_reset.",
        )
    if not request.holds_last_batch:
        starts_anew |= _was_emptied(commits, found[0].commit if found else None)
    record = effective if isinstance(effective, Consumption) and not starts_anew else None
    return Consumer(
        request,
        relation,
        record,
        (_application(request, relation, newest), newest.number + 1 if newest else 1),
        commits[0].version,
        found[0].consumption if found else None,
    )


def _application(request: ConsumerRequest, relation: Relation, newest: Consumption | None) -> str:
    """Return the id under which the next number may land only once.

    Two runs that start from the same contents have the same id and number, so one is skipped.
    """
    if newest is not None:
        return newest.incarnation
    if request.full_refresh and relation.has_property(CONSUMER_PROPERTY, "true"):
        # Its record is lost, so that the numbers which its log has seen are not known.
        return str(uuid.uuid4())
    return _hash(f"{relation.name} {relation.location}")


def _first_application(request: ConsumerRequest) -> str:
    return str(uuid.uuid4()) if request.has_location else _hash(str(request.table))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _whole_log(warehouse: Warehouse, table: TableName) -> list[Commit]:
    """Return the log down to the newest record, or all of it; further if it was restored."""
    limit = _FIRST_LOOK
    while True:
        commits = warehouse.history(table, limit)
        is_whole = len(commits) < limit or commits[-1].version == 0
        settled = consumptions(commits) and not any(c.operation == "RESTORE" for c in commits)
        if is_whole or settled:
            return commits
        limit *= 10


def _effective(commits: list[Commit], holds_last_batch: bool) -> Consumption | str | None:
    """Return the record that the rows of a table go by; None if it is gone.

    It is the newest one, unless the table was restored: then it is that of the version whose
    rows came back, or _NOTHING if that was before the first consumption. A table that was built
    anew without consuming has none of the consumed rows, so that is _NOTHING, too; but one that
    holds the last batch loses the others anyway.
    """
    known = {one.commit.version: one.consumption for one in consumptions(commits)}
    limit: int | None = None
    for commit in commits:
        if limit is not None and commit.version > limit:
            continue
        if commit.version in known:
            return known[commit.version]
        if commit.operation == "RESTORE":
            limit = _restored_version(commit)
            if limit is None:
                return None
        if known and not holds_last_batch and _is_built_anew(commit):
            return _NOTHING
    return _NOTHING if known and commits[-1].version == 0 else None


def _restored_version(commit: Commit) -> int | None:
    """Return the version that a RESTORE went back to; None if it named a moment instead.

    The moment's time zone is not written down, so the version cannot be found for certain.
    """
    version = commit.parameters.get("version") or ""
    return int(version) if version.isdecimal() else None


def _is_built_anew(commit: Commit) -> bool:
    """Tell whether a commit made a table without consuming.

    A consumption that another version has written down is one, even if it cannot be read.
    """
    if not commit.operation.startswith(_REPLACING) or replaces_part(commit):
        return False
    return not is_consumption(commit.user_metadata)


def _was_emptied(commits: list[Commit], record: Commit | None) -> bool:
    """Tell whether a run with --empty or --sample replaced the table after its last record."""
    return any(
        is_empty_run(commit) and commit.operation.startswith(_REPLACING)
        for commit in commits
        if record is None or commit.version > record.version
    )
