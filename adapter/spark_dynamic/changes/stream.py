"""A stream: a query with a mode and a start, kept in the properties of its view.

The view shows what changed from the start to the last run. The properties are what consumers
go by: they hold the definition with which the stream was built last.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from spark_dynamic.apply.storage import properties_sql
from spark_dynamic.changes.position import read_position, write_position
from spark_dynamic.changes.read import ChangeRead, Mode, Position
from spark_dynamic.changes.used_columns import COLUMNS_CHANGED
from spark_dynamic.clock import read_stamp, stamp
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.settings import beyond_defaults
from spark_dynamic.warehouse import Warehouse

STREAM_PROPERTY: Final = "spark_dynamic.stream"
_PARTS: Final = f"{STREAM_PROPERTY}.parts"
_FORMAT: Final = 1
# Metastores may limit how long the value of a property is.
_LONGEST: Final = 3000


@dataclass(frozen=True)
class Stream:
    """The definition of a stream, and where it starts."""

    model: str
    view: TableName
    read: ChangeRead
    # Of what it shows, as its consumers know it.
    fingerprint: str
    # None: before the first change.
    start: Position | None
    started_at: datetime
    # What a first reader gets: the contents (now, or at a start that was chosen), or only changes.
    initial_rows: bool
    has_chosen_start: bool
    at: str
    max_retention_extension: timedelta | None = None
    # Of the texts that the fingerprint came from.
    text_hash: str = ""
    # Whether the settings are all that may change rows; older engines named a few of them.
    names_all_settings: bool = True

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model.rpartition(".")[2]

    @property
    def first(self) -> tuple[Position | None, bool]:
        """Where a first interval starts, and whether the contents there are in front."""
        if not self.has_chosen_start and self.initial_rows:
            return None, False
        return self.start, self.initial_rows and self.start is not None


def in_streams(error: EngineError) -> EngineError:
    """Return the error of an interval as the consumers of a stream need it: with what to do."""
    if error.code != COLUMNS_CHANGED:
        return error
    return EngineError(
        "STREAM_COLUMNS_CHANGED",
        f"{error.sentence} A consumer is built again with --full-refresh, or goes on behind the "
        "change with changes_stream_move or changes_stream_reset; changes in between are then "
        "lost to it.",
    )


def definition_hash(read: ChangeRead, texts: Iterable[str]) -> str:
    """Return a hash of what decides which rows a stream has; not of where it starts.

    `texts` are the query's and those of all views that it reads, or what stands for them.
    """
    # Defaults were not always named.
    settings = sorted(beyond_defaults(read.settings).items())
    facts: list[object] = [list(texts), read.schema, settings]
    keys = sorted((str(table), key) for table, key in read.row_keys.items())
    facts += [read.mode.value, read.unique_key, keys]
    # As they were before there was a choice.
    facts += ["upserts"] if read.upserts else []
    taken = sorted((str(table), key) for table, key in read.upstream_keys.items())
    facts += [["upstream_keys", taken]] if taken else []
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def write_stream(stream: Stream) -> dict[str, str]:
    """Return a stream as properties of its view.

    In digits only: Spark hides the value of a property in which it sees a word like `token`.
    """
    body = {
        STREAM_PROPERTY: _FORMAT,
        "model": stream.model,
        "sql": stream.read.sql,
        "schema": stream.read.schema,
        "settings": stream.read.settings,
        "mode": stream.read.mode.value,
        "unique_key": stream.read.unique_key,
        "row_keys": _written(stream.read.row_keys),
        "upstream_keys": _written(stream.read.upstream_keys),
        "upserts": stream.read.upserts,
        "fingerprint": stream.fingerprint,
        "text_hash": stream.text_hash,
        "names_all_settings": stream.names_all_settings,
        "start": None if stream.start is None else write_position(stream.start),
        "started_at": stamp(stream.started_at),
        "initial_rows": stream.initial_rows,
        "has_chosen_start": stream.has_chosen_start,
        "at": stream.at,
        "max_retention_extension": stream.max_retention_extension
        and stream.max_retention_extension.total_seconds(),
    }
    text = zlib.compress(json.dumps(body).encode()).hex()
    parts = [text[i : i + _LONGEST] for i in range(0, len(text), _LONGEST)]
    numbered = {f"{STREAM_PROPERTY}.{number}": part for number, part in enumerate(parts)}
    return {_PARTS: str(len(parts)), **numbered}


def _written(keys: Mapping[TableName, tuple[str, ...]]) -> list[list[object]]:
    return [[str(table.sql), key] for table, key in keys.items()]


def _keys(written: Iterable[Any]) -> dict[TableName, tuple[str, ...]]:
    return {TableName.parse(name): tuple(key) for name, key in written}


def read_stream(warehouse: Warehouse, view: TableName) -> Stream | None:
    """Return the stream behind a view; None if there is no such view, or it is none of ours."""
    try:
        rows = warehouse.rows(f"SHOW TBLPROPERTIES {view.sql}")
    except WarehouseError as error:
        if error.misses_table:
            return None
        raise
    properties = {row["key"]: row["value"] for row in rows}
    if _PARTS not in properties:
        return None
    try:
        return _read(properties, view)
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise EngineError(
            "STREAM_NOT_READABLE",
            f"The definition of the stream {view} in the properties of its view cannot be read. "
            "It was written by another version, or edited. Build the stream again.",
        ) from error


def _read(properties: Mapping[str, str], view: TableName) -> Stream:
    numbers = range(int(properties[_PARTS]))
    text = "".join(properties[f"{STREAM_PROPERTY}.{number}"] for number in numbers)
    body: dict[str, Any] = json.loads(zlib.decompress(bytes.fromhex(text)))
    if body[STREAM_PROPERTY] != _FORMAT:
        raise ValueError(body[STREAM_PROPERTY])
    extension = body["max_retention_extension"]
    return Stream(
        model=body["model"],
        view=view,
        read=ChangeRead(
            sql=body["sql"],
            schema=body["schema"],
            settings=body["settings"],
            mode=Mode(body["mode"]),
            unique_key=tuple(body["unique_key"]),
            row_keys=_keys(body["row_keys"]),
            upstream_keys=_keys(body.get("upstream_keys", ())),
            upserts=body.get("upserts", False),
        ),
        fingerprint=body["fingerprint"],
        # It was the text's before there were two.
        text_hash=body.get("text_hash", body["fingerprint"]),
        start=None if body["start"] is None else read_position(body["start"]),
        started_at=read_stamp(body["started_at"]),
        initial_rows=body["initial_rows"],
        has_chosen_start=body["has_chosen_start"],
        at=body["at"],
        max_retention_extension=timedelta(seconds=extension) if extension else None,
        names_all_settings=body.get("names_all_settings", False),
    )


def show_stream(stream: Stream, query: str, is_view: bool | None, is_same: bool) -> list[str]:
    """Return the statements that make the view show a query and hold the definition.

    `is_view` is None if nothing of that name exists; `is_same` tells whether the properties
    hold this definition already.
    """
    name, properties = stream.view.sql, properties_sql(write_stream(stream))
    create = f"CREATE VIEW {name} TBLPROPERTIES ({properties}) AS {query}"
    if is_view is None:
        return [create]
    if not is_view:
        return [f"DROP TABLE {name}", create]
    # The definition first: what the view shows follows from it, not the other way round.
    define = [] if is_same else [f"ALTER VIEW {name} SET TBLPROPERTIES ({properties})"]
    return [*define, f"ALTER VIEW {name} AS {query}"]
