"""What a stream means: hashed when it is built, and looked at again when it is consumed.

The properties of its view hold what it meant when it was built last. Views that it reads, and
the session's settings, may have changed since without anybody building the stream again.
"""

from collections.abc import Mapping
from dataclasses import replace

from spark_dynamic.changes.question import ask
from spark_dynamic.changes.read import ChangeRead
from spark_dynamic.changes.stream import Stream, definition_hash
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.settings import as_named_by, differences
from spark_dynamic.sql.references import Unreadable
from spark_dynamic.sql.resolve import resolve
from spark_dynamic.warehouse import Relation, Warehouse


def hashes_of(
    read: ChangeRead, known: Stream | None, cycle: Cycle, warehouse: Warehouse
) -> tuple[str, str]:
    """Return the fingerprint of a stream and the hash of its texts."""
    texts = _texts(read, cycle, warehouse)
    text_hash = definition_hash(read, texts)
    if known is not None and known.text_hash in (text_hash, _as_before(read, known, texts)):
        # Also if this engine would write another fingerprint.
        return known.fingerprint, text_hash
    return _meaning(read, cycle, warehouse) or text_hash, text_hash


def _as_before(read: ChangeRead, known: Stream, texts: list[str]) -> str:
    """Return the hash that an engine would give which names the settings that a stream names."""
    if known.names_all_settings:
        return ""
    named = as_named_by(known.read.settings, read.settings)
    return definition_hash(replace(read, settings=named), texts)


def as_it_is_now(
    stream: Stream, settings: Mapping[str, str] | None, cycle: Cycle, warehouse: Warehouse
) -> Stream:
    """Return a stream with what its query means by now, in a session with some settings."""
    chosen = stream.read.settings if settings is None else dict(settings)
    read = replace(stream.read, settings=chosen)
    fingerprint, text_hash = hashes_of(read, stream, cycle, warehouse)
    return replace(stream, read=read, fingerprint=fingerprint, text_hash=text_hash)


def stream_changed(built: Stream, now: Stream, consumer: TableName) -> EngineError:
    """Return the error of a consumer whose rows are of another definition."""
    return EngineError(
        "STREAM_CHANGED",
        f"The definition of {now.name} is not the one that {consumer} has consumed so far"
        f"{_why(built, now)}. Build the consumer again with --full-refresh, or let it go on from "
        "a position of your choice with changes_stream_reset or changes_stream_move.",
    )


def _why(built: Stream, now: Stream) -> str:
    """Return what is not as it was when the stream was built, if anything."""
    changed = differences(built.read.settings, now.read.settings)
    if changed:
        return f": {changed}"
    return "" if built.fingerprint == now.fingerprint else ": a view that it reads was changed"


def _meaning(read: ChangeRead, cycle: Cycle, warehouse: Warehouse) -> str:
    """Return a hash of what a query means, or nothing if only its text is known."""
    question = ask(read, cycle, warehouse)
    return definition_hash(read, [question.fingerprint]) if question.fingerprint else ""


def _texts(read: ChangeRead, cycle: Cycle, warehouse: Warehouse) -> list[str]:
    """Return the texts of a query and of all views that it reads."""

    def lookup(name: TableName) -> Relation | None:
        return cycle.catalog.relation(warehouse, name)

    try:
        return resolve(read.sql, read.schema, lookup, read.settings).texts()
    except Unreadable as error:
        raise EngineError(
            "STREAM_QUERY",
            f"What the query of a stream reads could not be found with certainty: {error}.",
        ) from error
