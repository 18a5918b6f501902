"""The record of a refresh: it rides in the commit that holds the refreshed rows."""

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from spark_dynamic.clock import read_stamp, stamp
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Commit

_KEY = "spark_dynamic_record"
_FORMAT = 1
_EMPTY_RUN = "spark_dynamic_empty_run"
_CLOCKS = ("clock", "clock_until", "pinned_by")


@dataclass(frozen=True)
class Pin:
    """A source at a version. The log is known by its place and by the commit's own time."""

    table: TableName
    log: str
    version: int
    committed_at: datetime


@dataclass(frozen=True)
class Verdict:
    """What Spark said of the pinned text; it holds for one text under one set of settings."""

    key: str
    columns: str = ""
    code: str = ""
    detail: str = ""
    volatile: tuple[str, ...] = ()
    # Whether the text may also run with the time of the cut in the place of clock functions.
    at_clock: bool = False
    # What speaks against reading the text into a plan of ours, if anything.
    not_incremental: str = ""
    # Whether that is a fault in the engine.
    planning_failed: bool = False
    # The columns of type char, by table, and what speaks against comparing them as Spark does.
    chars: dict[str, dict[str, str]] = field(default_factory=dict)
    chars_differ: str = ""
    # The versions of the tables with texts that this was found out at.
    chars_at: dict[str, int] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Tell whether the pinned text may stand for the original."""
        return not self.code


@dataclass(frozen=True)
class StoredColumn:
    """A column of the result, and what it is called in storage."""

    name: str
    stored_as: str
    type: str


@dataclass(frozen=True)
class Record:
    """Everything that the next refresh has to know about this one."""

    model: str
    engine: str
    incarnation: str
    generation: int
    refresh_number: int
    attempt: str
    cycle: str
    data_timestamp: datetime
    based_on: int | None
    frontier: tuple[Pin, ...]
    # The attempt that wrote each upstream: versions restart when a table is made anew.
    upstreams: dict[str, str]
    settings: dict[str, str]
    text_hash: str
    verdict: Verdict
    columns: tuple[StoredColumn, ...]
    storage: dict[str, Any]
    action: str
    reason_code: str
    reason: str
    mode: str
    trigger: str
    # The moment that the rows depend on, beside their sources; None if on none.
    clock: datetime | None = None
    # Until when (exclusive) they stay as they are nevertheless; None if not at all.
    clock_until: datetime | None = None
    # By when base tables were read, if that is before the data timestamp: it never goes back, so
    # it runs ahead of a clock that was put back, or of one that is slower than another.
    pinned_by: datetime | None = None
    # Tables that were read at a version which is not known, and by which attempt.
    unknown_sources: dict[str, str] = field(default_factory=dict)
    # Whether they depend on every commit of the sources: a change that was taken back is one, too.
    by_commit: bool = False
    fingerprint: str = ""
    # The form of the storage: which hidden columns it has, and what they hold.
    state: dict[str, Any] = field(default_factory=dict)
    streams: dict[str, Any] = field(default_factory=dict)
    # Of a window of changes: where it begins, and by which keys its rows are named.
    window: dict[str, Any] = field(default_factory=dict)
    # The fingerprint whose incremental refresh was once found to be wrong.
    distrusted: str = ""
    # A delta was computed, and nothing was left of it.
    has_empty_delta: bool = False
    # How many rows tables had at a version, as far as that was known: from there on history tells.
    rows: dict[str, tuple[int, int]] = field(default_factory=dict)
    # Whether the settings are all that may change rows; older engines named a few of them.
    names_all_settings: bool = False

    def pin_of(self, table: TableName) -> Pin | None:
        """Return the version of a base table that this refresh saw."""
        return next((pin for pin in self.frontier if pin.table == table), None)

    @property
    def is_wrong(self) -> bool:
        """Tell whether the rows were found to be wrong, and have not been rebuilt since."""
        return bool(self.distrusted) and self.distrusted == self.fingerprint

    def holds_at(self, moment: datetime) -> bool:
        """Tell whether the rows are right at a moment, as far as the clock goes."""
        if self.clock is None or self.clock == moment:
            return True
        return self.clock_until is not None and self.clock < moment < self.clock_until


@dataclass(frozen=True)
class Recorded:
    """A record together with the commit that carries it."""

    record: Record
    commit: Commit


def write_record(record: Record) -> str:
    """Return the record as the commit's user metadata."""
    body = asdict(record)
    body["data_timestamp"] = stamp(record.data_timestamp)
    for name in _CLOCKS:
        body[name] = stamp(body[name]) if body[name] else None
    body["frontier"] = [write_pin(pin) for pin in record.frontier]
    return as_metadata({_KEY: _FORMAT, **body})


def empty_run_mark() -> str:
    """Return the user metadata of a run that leaves no state."""
    return as_metadata({_EMPTY_RUN: _FORMAT})


def as_metadata(body: dict[str, Any]) -> str:
    """Return a text that can ride in a commit."""
    # Spark would substitute `${…}` in a SET; the JSON escape of `$` reads the same.
    return json.dumps(body, separators=(",", ":")).replace("$", "\\u0024")


def is_empty_run(commit: Commit) -> bool:
    """Tell whether a commit came from `--empty` or `--sample`."""
    return bool(commit.user_metadata and _EMPTY_RUN in commit.user_metadata)


def read_record(commit: Commit) -> Record | None:
    """Return the record that a commit carries, if it is one of ours that we can read."""
    if not commit.user_metadata or _KEY not in commit.user_metadata:
        return None
    try:
        body = json.loads(commit.user_metadata)
        if body.pop(_KEY) != _FORMAT:
            return None
        body["data_timestamp"] = read_stamp(body["data_timestamp"])
        for name in _CLOCKS:
            body[name] = read_stamp(body[name]) if body.get(name) else None
        body["frontier"] = tuple(read_pin(pin) for pin in body["frontier"])
        verdict = body["verdict"]
        body["verdict"] = Verdict(**{**verdict, "volatile": tuple(verdict["volatile"])})
        body["columns"] = tuple(StoredColumn(**column) for column in body["columns"])
        body["rows"] = {table: (at, rows) for table, (at, rows) in body.get("rows", {}).items()}
        return Record(**body)
    except (ValueError, KeyError, TypeError):
        # Written by another version of the engine, or not by the engine at all.
        return None


def write_pin(pin: Pin) -> dict[str, Any]:
    """Return a pin as JSON holds it."""
    return {
        "source": [pin.table.catalog, pin.table.schema, pin.table.name],
        "log": pin.log,
        "version": pin.version,
        "committed_at": stamp(pin.committed_at),
    }


def read_pin(body: dict[str, Any]) -> Pin:
    """Read what `write_pin` wrote."""
    catalog, schema, name = body["source"]
    return Pin(
        table=TableName(schema, name, catalog),
        log=body["log"],
        version=body["version"],
        committed_at=read_stamp(body["committed_at"]),
    )
