"""What a table was found right for. As long as all of it stays as it is, so does the table.

These are facts about commits, each known by its log, version and time, so they stay true however
old they are: a table whose storage ends with that commit equals its query over sources that end
with those. Whether they still do is asked for all tables of a cycle together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from spark_dynamic.clock import from_micros, micros
from spark_dynamic.frontier.record import Pin
from spark_dynamic.names import TableName


class LogEnd(NamedTuple):
    """The newest commit of a Delta table."""

    table: TableName
    version: int
    committed_at: datetime
    # The log's place, for base tables.
    log: str = ""


@dataclass(frozen=True)
class Settled:
    """A dynamic table, everything that it is made of, and what was asked for."""

    # Short hashes: of the request, and of what the catalog says of all relations named here.
    request: str
    catalog: str
    # The views that its query passes through, and when they were made.
    views: Mapping[TableName, str]
    # Its own view, and those of the dynamic tables that it reads.
    own: tuple[TableName, ...]
    # The storages: its own first, then those of the dynamic tables that it reads.
    storages: tuple[LogEnd, ...]
    # The base tables, also those behind other dynamic tables.
    bases: tuple[LogEnd, ...]
    # From then on the record has to be written again, before it ages out.
    until: datetime
    # Of the record, and the version that it was written with.
    incarnation: str
    fingerprint: str
    version: int

    @property
    def logs(self) -> tuple[LogEnd, ...]:
        """All Delta tables."""
        return self.storages + self.bases

    @property
    def frontier(self) -> tuple[Pin, ...]:
        """The base tables as a record names them."""
        return tuple(Pin(end.table, end.log, end.version, end.committed_at) for end in self.bases)

    @property
    def sources(self) -> tuple[TableName, ...]:
        """The relations that are no part of any dynamic table."""
        return (*self.views, *(end.table for end in self.bases))

    @property
    def relations(self) -> tuple[TableName, ...]:
        """All relations."""
        return (*self.own, *(end.table for end in self.storages), *self.sources)


def write_settled(settled: Settled) -> dict[str, Any]:
    """Return the facts as JSON can hold them."""
    return {
        "request": settled.request,
        "catalog": settled.catalog,
        "views": {str(view): made for view, made in settled.views.items()},
        "own": [str(view) for view in settled.own],
        "storages": [_write_log(log) for log in settled.storages],
        "bases": [_write_log(log) for log in settled.bases],
        "until": micros(settled.until),
        "incarnation": settled.incarnation,
        "fingerprint": settled.fingerprint,
        "version": settled.version,
    }


def read_settled(body: Mapping[str, Any]) -> Settled:
    """Read what `write_settled` wrote."""
    return Settled(
        request=body["request"],
        catalog=body["catalog"],
        views={TableName.parse(view): made for view, made in body["views"].items()},
        own=tuple(TableName.parse(view) for view in body["own"]),
        storages=tuple(_read_log(*log) for log in body["storages"]),
        bases=tuple(_read_log(*log) for log in body["bases"]),
        until=from_micros(body["until"]),
        incarnation=body["incarnation"],
        fingerprint=body["fingerprint"],
        version=body["version"],
    )


def _write_log(log: LogEnd) -> list[Any]:
    place = [log.log] if log.log else []
    return [str(log.table), log.version, micros(log.committed_at), *place]


def _read_log(table: str, version: int, committed_at: int, log: str = "") -> LogEnd:
    return LogEnd(TableName.parse(table), version, from_micros(committed_at), log)
