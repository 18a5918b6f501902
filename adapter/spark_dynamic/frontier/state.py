"""The state table: one row for each refresh or failed try. An index; commits are the truth."""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from spark_dynamic.clock import SKEW, from_micros, micros, read_stamp, stamp
from spark_dynamic.frontier.own_tables import create_own_table
from spark_dynamic.frontier.record import Pin, Recorded
from spark_dynamic.frontier.settled import Settled
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName
from spark_dynamic.schedule.known import Refresh
from spark_dynamic.schedule.lateness import SAMPLES
from spark_dynamic.schedule.remembered import (
    Event,
    Marks,
    Remembered,
    merge_remembered,
    read_remembered,
    remember,
    write_remembered,
)
from spark_dynamic.warehouse import Commit

STATE_TABLE = "dynamic_table_refreshes"
_SUMMARY = "spark_dynamic_state"
_FORGOTTEN_AFTER = timedelta(days=400)
# So many pins are kept that times do not tell. Without one a reader waits, at worst.
_LATER_PINS = 500

# Versions by moment, and then by the table and its log.
LaterPins = dict[datetime, dict[tuple[str, str], int]]

STATE_COLUMNS = {
    "relation": "STRING",
    "model_id": "STRING",
    "incarnation": "STRING",
    "refresh_number": "BIGINT",
    "cycle_id": "STRING",
    "invocation_id": "STRING",
    "data_timestamp": "TIMESTAMP",
    "refresh_action": "STRING",
    "refresh_mode": "STRING",
    "refresh_trigger": "STRING",
    "state": "STRING",
    "reason_code": "STRING",
    "reason": "STRING",
    "frontier": "ARRAY<STRUCT<source: STRING, log_id: STRING, version: BIGINT>>",
    "version": "BIGINT",
    "fingerprint": "STRING",
    "guard_verdict": "STRING",
    "settings": "MAP<STRING, STRING>",
    "rows_inserted": "BIGINT",
    "rows_deleted": "BIGINT",
    "rows_changed_per_source": "MAP<STRING, BIGINT>",
    "statements": "INT",
    "jobs": "INT",
    "started_at": "TIMESTAMP",
    "ended_at": "TIMESTAMP",
    "error": "STRING",
    "engine_version": "STRING",
    # Newer columns stand at the end, where they are added to tables that exist.
    "shape": "STRING",
}


@dataclass(frozen=True)
class StateRow:
    """What happened to one table."""

    relation: str
    model_id: str
    refresh_action: str
    refresh_mode: str
    refresh_trigger: str
    state: str
    reason_code: str
    reason: str
    cycle_id: str
    invocation_id: str
    started_at: datetime
    ended_at: datetime
    engine_version: str
    incarnation: str | None = None
    refresh_number: int | None = None
    data_timestamp: datetime | None = None
    frontier: tuple[Pin, ...] = ()
    version: int | None = None
    fingerprint: str | None = None
    guard_verdict: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    rows_inserted: int | None = None
    rows_deleted: int | None = None
    rows_changed_per_source: dict[str, int] = field(default_factory=dict)
    statements: int | None = None
    jobs: int | None = None
    error: str | None = None
    shape: str | None = None
    # No columns, but for the summary: which model was refreshed, what its table is right for, how
    # long it waited in its cycle, and whether its sources had only been added to.
    marks: Marks | None = None
    settled: Settled | None = None
    waited: timedelta | None = None
    inserts_only: bool = False

    @property
    def event(self) -> Event:
        """The row as the schedule sees it."""
        refresh = Refresh(
            action=self.refresh_action,
            started_at=self.started_at,
            ended_at=self.ended_at,
            data_timestamp=self.data_timestamp,
            succeeded=self.state == "SUCCEEDED",
            waited=self.waited,
            inserts_only=self.inserts_only,
        )
        return Event(self.relation, refresh, self.marks, self.settled)


@dataclass(frozen=True)
class KnownState:
    """What the state table says when a cycle opens."""

    newest_timestamp: datetime | None = None
    pins: dict[tuple[str, str], int] = field(default_factory=dict)
    refresh_numbers: dict[str, int] = field(default_factory=dict)
    exists: bool = False
    tables: dict[str, Remembered] = field(default_factory=dict)
    # How long after a grid point the last runs came that found tables due, by data timestamp.
    lateness: dict[datetime, timedelta] = field(default_factory=dict)
    # The newest commit of the state table that this comes from.
    version: int = -1
    # The pins at versions that were committed after the moment of their cut, by that moment:
    # a node of the same invocation wrote the table, or a clock was ahead.
    later: LaterPins = field(default_factory=dict)
    # The date of the newest commit of the state table, by the storage's clock.
    written_at: datetime | None = field(default=None, compare=False)

    def pinned_before(self, moment: datetime, key: tuple[str, str]) -> int:
        """Return the highest version that was read for an earlier moment; -1 if times tell it."""
        found = (pins[key] for at, pins in self.later.items() if at < moment and key in pins)
        return max(found, default=-1)

    def believed(self, now: datetime) -> "KnownState":
        """Return what is known without moments that a clock which shows `now` has not reached.

        They come from a run whose clock was ahead; versions and numbers are right all the same.
        """
        limit = now + SKEW
        tables = {name: found.believed(now) for name, found in self.tables.items()}
        newest = self.newest_timestamp
        if newest and newest > limit:
            left = (moment for found in tables.values() for moment in found.known.timestamps)
            newest = max(left, default=None)
        return replace(
            self,
            newest_timestamp=newest,
            tables=tables,
            lateness={at: late for at, late in self.lateness.items() if at <= limit},
            later={at: pins for at, pins in self.later.items() if at <= limit},
        )


def create_state_table(table: TableName) -> str:
    """Return the statement that makes the state table."""
    return create_own_table(table, STATE_COLUMNS)


def append_rows(table: TableName, rows: list[StateRow]) -> str:
    """Return the one statement that appends rows.

    They are one text: Spark takes seconds to read hundreds of rows of literals.
    """
    names = ", ".join(STATE_COLUMNS)
    kinds = ", ".join(f"{name}: {kind}" for name, kind in STATE_COLUMNS.items())
    text = json.dumps(
        [{name: _value(getattr(row, name)) for name in STATE_COLUMNS} for row in rows]
    )
    return (
        f"INSERT INTO {table.sql} ({names})\n"
        f"SELECT inline(from_json({literal(text)},\n"
        f"  'ARRAY<STRUCT<{kinds}>>', map('mode', 'FAILFAST')))"
    )


def _value(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    match value:
        case datetime():
            return stamp(value)
        case Pin():
            return {"source": str(value.table), "log_id": value.log, "version": value.version}
        case tuple():
            return [_value(item) for item in value]
    return value


def state_metadata(
    known: KnownState, rows: list[StateRow], lateness: Mapping[datetime, timedelta] | None = None
) -> str:
    """Return the summary that an append carries, so that a cycle opens by reading one commit."""
    merged = merge(known, summarise(rows))
    newest = merged.newest_timestamp
    samples = _newest_samples({**known.lateness, **(lateness or {})})
    tables = remember(known.tables, (row.event for row in rows))
    if newest:
        tables = {name: found for name, found in tables.items() if not _is_old(found, newest)}
    body = {
        "read": known.version,
        "pins": [[source, log, version] for (source, log), version in merged.pins.items()],
        "refresh_numbers": merged.refresh_numbers,
        "lateness": [[stamp(at), late.total_seconds()] for at, late in samples.items()],
        "tables": write_remembered(tables),
        "later": [[micros(moment), *rest] for moment, *rest in _listed(merged.later)],
    }
    text = json.dumps(body, separators=(",", ":"))
    # Much of it repeats itself, and every run reads the summaries of ten commits.
    packed = base64.b64encode(zlib.compress(text.encode())).decode()
    return json.dumps({_SUMMARY: stamp(newest) if newest else "", "packed": packed})


def _is_old(found: Remembered, now: datetime) -> bool:
    """Tell whether a table has not been heard of for so long that it is gone, most likely.

    If it is not, it is due in the next run, like a new one.
    """
    since = found.noted_at or now
    return not found.known.is_suspended and now - since > _FORGOTTEN_AFTER


def summarise(rows: list[StateRow]) -> KnownState:
    """Return what rows say by themselves; what they say of a table depends on those before."""
    stamps = [row.data_timestamp for row in rows if row.data_timestamp]
    pins: dict[tuple[str, str], int] = {}
    numbers: dict[str, int] = {}
    later: list[tuple[datetime, str, str, int]] = []
    for row in rows:
        for pin in row.frontier:
            key = (str(pin.table), pin.log)
            pins[key] = max(pin.version, pins.get(key, 0))
            if row.data_timestamp and pin.committed_at > row.data_timestamp:
                later.append((row.data_timestamp, *key, pin.version))
        if row.refresh_number is not None:
            numbers[row.relation] = max(row.refresh_number, numbers.get(row.relation, 0))
    return KnownState(max(stamps, default=None), pins, numbers, later=_by_moment(later))


def _by_moment(pins: Iterable[tuple[datetime, str, str, int]]) -> LaterPins:
    """Return the newest pins; where there are two for one moment, the first wins."""
    found: LaterPins = {}
    for moment, source, log, version in sorted(pins)[::-1][:_LATER_PINS]:
        found.setdefault(moment, {})[source, log] = version
    return found


def _listed(later: LaterPins) -> Iterator[tuple[datetime, str, str, int]]:
    for moment, pins in later.items():
        for (source, log), version in pins.items():
            yield moment, source, log, version


def merge(one: KnownState, other: KnownState) -> KnownState:
    """Return the newer of everything."""
    stamps = [s for s in (one.newest_timestamp, other.newest_timestamp) if s]
    pins = {
        key: max(one.pins.get(key, 0), other.pins.get(key, 0))
        for key in one.pins.keys() | other.pins.keys()
    }
    numbers = {
        key: max(one.refresh_numbers.get(key, 0), other.refresh_numbers.get(key, 0))
        for key in one.refresh_numbers.keys() | other.refresh_numbers.keys()
    }
    return KnownState(
        max(stamps, default=None),
        pins,
        numbers,
        one.exists or other.exists,
        merge_remembered(one.tables, other.tables),
        _newest_samples({**one.lateness, **other.lateness}),
        max(one.version, other.version),
        _by_moment((*_listed(one.later), *_listed(other.later))),
    )


def _newest_samples(samples: dict[datetime, timedelta]) -> dict[datetime, timedelta]:
    return dict(sorted(samples.items())[-SAMPLES:])


def read_state(commits: list[Commit]) -> KnownState:
    """Read the summaries in the newest commits of the state table, newest first.

    The newest tells up to which commit it knows everything. What came after that is merged with
    it, because runs at the same time do not see each other's.
    """
    known, reaches_to = KnownState(exists=True), None
    for commit in commits:
        if reaches_to is not None and commit.version <= reaches_to:
            break
        body = _body(commit.user_metadata or "")
        if body and reaches_to is None:
            reaches_to = body.get("read", -1)
        known = merge(known, replace(_read_summary(body), version=commit.version))
    return replace(known, written_at=commits[0].timestamp if commits else None)


def _body(metadata: str) -> dict[str, Any]:
    """Return the JSON of a summary; {} if there is none."""
    if _SUMMARY not in metadata:
        return {}
    try:
        body = json.loads(metadata)
        if "packed" in body:
            packed = zlib.decompress(base64.b64decode(body["packed"]))
            body = {_SUMMARY: body[_SUMMARY], **json.loads(packed)}
        return body if isinstance(body, dict) else {}
    except (ValueError, TypeError, zlib.error):
        return {}


def _read_summary(body: dict[str, Any]) -> KnownState:
    if not body:
        return KnownState()
    try:
        newest = read_stamp(body[_SUMMARY]) if body[_SUMMARY] else None
        pins = {(source, log): version for source, log, version in body["pins"]}
        # The first versions wrote no more than this, and unpacked.
        late = {read_stamp(at): timedelta(seconds=s) for at, s in body.get("lateness", ())}
        tables = read_remembered(body.get("tables", {}))
        later = ((from_micros(at), *rest) for at, *rest in body.get("later", ()))
        numbers = dict(body["refresh_numbers"])
        return KnownState(
            newest, pins, numbers, tables=tables, lateness=late, later=_by_moment(later)
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        # Somebody else's metadata, which only mentions ours.
        return KnownState()


def row_of(recorded: Recorded, relation: TableName) -> StateRow:
    """Rebuild the row of a refresh from its commit, for a state table that lost it."""
    record = recorded.record
    inserted = recorded.commit.metrics.get("numOutputRows")
    return StateRow(
        relation=str(relation),
        model_id=record.model,
        refresh_action=record.action,
        refresh_mode=record.mode,
        refresh_trigger=record.trigger,
        state="SUCCEEDED",
        reason_code=record.reason_code,
        reason=record.reason,
        cycle_id=record.cycle,
        invocation_id="",
        started_at=recorded.commit.timestamp,
        ended_at=recorded.commit.timestamp,
        engine_version=record.engine,
        incarnation=record.incarnation,
        refresh_number=record.refresh_number,
        data_timestamp=record.data_timestamp,
        frontier=record.frontier,
        version=recorded.commit.version,
        fingerprint=record.fingerprint or None,
        guard_verdict=record.verdict.code or "PASSED",
        settings=record.settings,
        rows_inserted=int(inserted) if inserted else None,
    )
