"""Building a stream: its start is found once, and its view shows what a first reader gets."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from spark_dynamic.catalog import describe_relation
from spark_dynamic.changes import read as changes
from spark_dynamic.changes.definition import hashes_of
from spark_dynamic.changes.point import NOW
from spark_dynamic.changes.points import Asking, Places, start_of
from spark_dynamic.changes.read import ChangeRead, Mode, Position
from spark_dynamic.changes.staleness import check_kept, extensions
from spark_dynamic.changes.stream import Stream, in_streams, read_stream, show_stream
from spark_dynamic.changes.stream_config import StreamConfig
from spark_dynamic.changes.upstream_keys import with_upstream_keys
from spark_dynamic.conflicts import despite_conflicts
from spark_dynamic.errors import EngineError
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse

# Returns where a query is read in this cycle; the same for all who ask.
EndOf = Callable[[ChangeRead], Position]
# A stream without its start; its consumers are further on and do not need it.
_START_LOST: Final = ("STREAM_STALE", "STREAM_COLUMNS_CHANGED")
_ANEW: Final = "Or run the stream itself with --full-refresh: it starts anew."


@dataclass(frozen=True)
class StreamRequest:
    """A stream's model, in one invocation."""

    model: str
    view: TableName
    read: ChangeRead
    config: StreamConfig
    full_refresh: bool = False


@dataclass(frozen=True)
class BuiltStream:
    """What was built, and how."""

    stream: Stream
    statements: tuple[str, ...]
    is_started: bool
    # Why the changes since the start cannot be shown, if so.
    warning: str = ""


def build_stream(
    request: StreamRequest,
    cycle: Cycle,
    warehouse: Warehouse,
    end_of: EndOf,
    places: Places,
) -> BuiltStream:
    """Make the view of a stream, or bring it up to this cycle."""
    # Part of the definition: with another key, a stream's consumers would see other rows updated.
    request = replace(request, read=with_upstream_keys(request.read, cycle, warehouse))
    # Another run may just have made the view: its start is then the start of the stream.
    return despite_conflicts(
        lambda: _build(request, cycle, warehouse, end_of, places),
        lambda: cycle.catalog.forget(request.view),
    )


def _build(
    request: StreamRequest,
    cycle: Cycle,
    warehouse: Warehouse,
    end_of: EndOf,
    places: Places,
) -> BuiltStream:
    existing = describe_relation(warehouse, request.view)
    is_view = None if existing is None else existing.view is not None
    known = read_stream(warehouse, request.view) if is_view else None
    hashes = hashes_of(request.read, known, cycle, warehouse)
    end = end_of(request.read)
    stream = _started(request, hashes, known, end, cycle, warehouse, places)
    query, warning = _shown(stream, end, cycle, warehouse)
    statements = show_stream(stream, query, is_view, stream == known)
    statements += extensions(end, stream.max_retention_extension, cycle, warehouse).values()
    for statement in statements:
        warehouse.execute(statement)
    cycle.catalog.forget(request.view)
    is_started = known is None or stream.started_at != known.started_at
    return BuiltStream(stream, tuple(statements), is_started, warning)


def _started(
    request: StreamRequest,
    hashes: tuple[str, str],
    known: Stream | None,
    end: Position,
    cycle: Cycle,
    warehouse: Warehouse,
    places: Places,
) -> Stream:
    """Return the stream with its start: the one that it had, unless it is another stream now."""
    config = request.config
    at = repr(config.at)
    fingerprint, text_hash = hashes
    goes_on = (
        known is not None
        and known.fingerprint == fingerprint
        and known.at == at
        and not request.full_refresh
    )
    if known is not None and goes_on:
        start, started_at = known.start, known.started_at
    else:
        asking = Asking("at", NOW if config.at is None else config.at)
        start = start_of(asking, request.read, cycle, warehouse, places=places, now=end)
        started_at = cycle.data_timestamp
    return Stream(
        model=request.model,
        view=request.view,
        read=request.read,
        fingerprint=fingerprint,
        text_hash=text_hash,
        start=start,
        started_at=started_at,
        initial_rows=config.initial_rows,
        has_chosen_start=config.at is not None,
        at=at,
        max_retention_extension=config.max_retention_extension,
    )


def _shown(stream: Stream, end: Position, cycle: Cycle, warehouse: Warehouse) -> tuple[str, str]:
    """Return the query of the view, and what is wrong with it."""
    start, initial_rows = stream.first
    if start is None and stream.start is not None and stream.read.mode is not Mode.MIN_DELTA:
        # Not the net effect: the contents at the start, and what happened to them.
        start, initial_rows = stream.start, True
    contents = changes.change_select(stream.read, None, end, cycle, warehouse)
    if start is None:
        return contents, ""
    try:
        check_kept(stream.name, start, cycle, warehouse, stream.first[0])
        return changes.change_select(stream.read, start, end, cycle, warehouse, initial_rows), ""
    except EngineError as found:
        error = in_streams(found)
        if error.code not in _START_LOST:
            raise
    if error.code != "STREAM_STALE" or start != stream.first[0]:
        error = EngineError(error.code, f"{error.sentence} {_ANEW}")
    refusal = f"raise_error({literal(str(error))}) IS NULL"
    return f"SELECT * FROM (\n{contents}\n) WHERE {refusal}", str(error)
