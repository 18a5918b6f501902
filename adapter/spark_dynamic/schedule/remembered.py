"""What one cycle leaves to the next about a table: small, and safe to merge.

Runs may overlap. Each of them notes its own refreshes on top of what it knew when it began, so
the same table may be remembered in two ways: what was noted last wins. Only suspending is a
matter of its own: a run that began before somebody suspended a table must not undo it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, Final

from spark_dynamic.clock import EPOCH, MICROSECOND, SKEW, from_micros, micros
from spark_dynamic.frontier.settled import Settled, read_settled, write_settled
from spark_dynamic.schedule.known import Known, Refresh, noted
from spark_dynamic.schedule.suspension import resumed, suspended

SUSPENDED: Final = "SUSPENDED"
RESUMED: Final = "RESUMED"
NOT_DUE: Final = "NOT_DUE"


@dataclass(frozen=True)
class Marks:
    """Short hashes of a model: which definition and configuration a refresh was made with."""

    # What dbt's manifest says, for all models at once: texts and macros as they were written.
    definition: str = ""
    # The text as it was compiled; known only when it is the model's turn.
    text: str = ""
    config: str = ""


@dataclass(frozen=True)
class Event:
    """What happened to a table: a row of the state table, and the marks of the model."""

    table: str
    refresh: Refresh
    marks: Marks | None = None
    # What the table was found right for, if the refresh changed nothing.
    settled: Settled | None = None


@dataclass(frozen=True)
class Remembered:
    """One table, as the state table's summary holds it."""

    known: Known = Known()
    # Of the last refresh.
    marks: Marks = Marks()
    # Of the last try, if it failed.
    tried: Marks = Marks()
    noted_at: datetime | None = None
    # When a person last suspended or resumed the table.
    switched_at: datetime | None = None
    settled: Settled | None = None

    def now(self, marks: Marks) -> Known:
        """Return what is known of the table, now that its model has these marks."""
        known = replace(
            self.known,
            is_edited=_differs(self.marks.definition, marks.definition),
            is_reconfigured=_differs(self.marks.config, marks.config),
        )
        tried = self.tried
        if _differs(tried.definition, marks.definition) or _differs(tried.config, marks.config):
            # Whoever edits a model that fails has done something about it.
            known = replace(known, errors_in_a_row=0)
        return known

    def believed(self, now: datetime) -> "Remembered":
        """Return what of this a clock that shows `now` has reached."""
        known = self.known.by(now + SKEW)
        return replace(
            self,
            known=known,
            noted_at=min(self.noted_at, now) if self.noted_at else None,
            switched_at=min(self.switched_at, now) if self.switched_at else None,
            # Until when it stays right was told by the same clock.
            settled=self.settled if known.timestamps == self.known.timestamps else None,
        )


def remember(tables: Mapping[str, Remembered], events: Iterable[Event]) -> dict[str, Remembered]:
    """Return what is remembered after some events, in the order in which they ended."""
    found = dict(tables)
    for event in sorted(events, key=lambda event: event.refresh.ended_at):
        before = found.get(event.table, Remembered())
        after = _noted(before, event)
        if after != before:
            found[event.table] = after
    return found


def _noted(before: Remembered, event: Event) -> Remembered:
    refresh, marks = event.refresh, event.marks or Marks()
    moment = refresh.ended_at
    if refresh.succeeded and refresh.action == SUSPENDED:
        known = suspended(before.known)
        return replace(before, known=known, noted_at=moment, switched_at=moment)
    if refresh.succeeded and refresh.action == RESUMED:
        known = resumed(before.known)
        return replace(before, known=known, noted_at=moment, switched_at=moment)
    if refresh.succeeded and refresh.action == NOT_DUE:
        # A table that is to be built by schedule: its first grid point comes after this.
        return replace(before, known=replace(before.known, seen_at=moment), noted_at=moment)
    if not refresh.succeeded:
        known = noted(before.now(marks) if event.marks else before.known, refresh)
        known = replace(known, is_edited=False, is_reconfigured=False)
        return replace(before, known=known, tried=marks, noted_at=moment, settled=None)
    known = noted(before.known, refresh)
    if not refresh.is_refresh:
        return replace(before, known=known, noted_at=moment) if known != before.known else before
    after = replace(before, known=known, marks=marks, tried=Marks(), noted_at=moment)
    return replace(after, settled=event.settled)


def merge_remembered(
    one: Mapping[str, Remembered], other: Mapping[str, Remembered]
) -> dict[str, Remembered]:
    """Return what two summaries remember together."""
    return {
        table: _merge(one[table], other[table])
        if table in one and table in other
        else one.get(table) or other[table]
        for table in one.keys() | other.keys()
    }


def _merge(one: Remembered, other: Remembered) -> Remembered:
    newest = max(one, other, key=lambda r: r.noted_at or EPOCH)
    switched = max(one, other, key=lambda r: r.switched_at or EPOCH)
    known = replace(newest.known, is_suspended=switched.known.is_suspended)
    return replace(newest, known=known, switched_at=switched.switched_at)


def write_remembered(tables: Mapping[str, Remembered]) -> dict[str, Any]:
    """Return what is remembered as JSON can hold it; what is empty is left out."""
    return {table: _write(found) for table, found in sorted(tables.items())}


def _write(found: Remembered) -> dict[str, Any]:
    known = found.known
    body = {
        "timestamps": [micros(moment) for moment in known.timestamps],
        "durations": [duration // MICROSECOND for duration in known.durations],
        "waits": [list(kept) for kept in known.waits],
        "fulls": [duration // MICROSECOND for duration in known.fulls],
        "incrementals": [duration // MICROSECOND for duration in known.incrementals],
        "inserts": [duration // MICROSECOND for duration in known.inserts],
        "build": known.build // MICROSECOND,
        "fulls_in_a_row": known.fulls_in_a_row,
        "just_built": known.is_just_built,
        "errors": known.errors_in_a_row,
        "owes_hooks": known.owes_hooks,
        "suspended": known.is_suspended,
        "seen_at": _micros(known.seen_at),
        "waited_at": _micros(known.waited_at),
        "marks": _texts(found.marks),
        "tried": _texts(found.tried),
        "noted_at": _micros(found.noted_at),
        "switched_at": _micros(found.switched_at),
        "settled": write_settled(found.settled) if found.settled else None,
    }
    return {key: value for key, value in body.items() if value}


def read_remembered(body: Mapping[str, Any]) -> dict[str, Remembered]:
    """Read what `write_remembered` wrote."""
    return {table: _read(entry) for table, entry in body.items()}


def _read(body: Mapping[str, Any]) -> Remembered:
    known = Known(
        timestamps=tuple(from_micros(n) for n in body.get("timestamps", ())),
        durations=_spans(body, "durations"),
        waits=tuple(tuple(kept) for kept in body.get("waits", ())),
        fulls=_spans(body, "fulls"),
        incrementals=_spans(body, "incrementals"),
        inserts=_spans(body, "inserts"),
        build=body.get("build", 0) * MICROSECOND,
        fulls_in_a_row=body.get("fulls_in_a_row", 0),
        is_just_built=body.get("just_built", False),
        errors_in_a_row=body.get("errors", 0),
        owes_hooks=body.get("owes_hooks", False),
        is_suspended=body.get("suspended", False),
        seen_at=_moment(body.get("seen_at")),
        waited_at=_moment(body.get("waited_at")),
    )
    return Remembered(
        known=known,
        marks=Marks(*body.get("marks", ())),
        tried=Marks(*body.get("tried", ())),
        noted_at=_moment(body.get("noted_at")),
        switched_at=_moment(body.get("switched_at")),
        settled=read_settled(body["settled"]) if "settled" in body else None,
    )


def _differs(then: str, now: str) -> bool:
    """Tell whether a mark has changed; one that is not known says nothing."""
    return bool(then and now and then != now)


def _texts(marks: Marks) -> list[str]:
    texts = [str(getattr(marks, field.name)) for field in fields(marks)]
    return texts if any(texts) else []


def _spans(body: Mapping[str, Any], key: str) -> tuple[timedelta, ...]:
    return tuple(n * MICROSECOND for n in body.get(key, ()))


def _micros(moment: datetime | None) -> int:
    return micros(moment) if moment else 0


def _moment(number: int | None) -> datetime | None:
    return from_micros(number) if number else None
