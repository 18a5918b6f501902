"""The cut: one version of every base table, so that all parts of a query see one instant.

A dynamic table that reads others takes each at a version that is valid at the same cut, and
its own base tables too. If an upstream was not refreshed in this cycle, an older cut at which
all upstreams are valid serves; if there is none newer than its own, the model waits.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import Pin, Record, Recorded
from spark_dynamic.names import TableName

PinAt = Callable[[TableName, datetime], Pin]
SameRows = Callable[[Pin, Pin], bool]


@dataclass(frozen=True)
class Upstream:
    """A dynamic table that is read: its view, its storage, its records, newest first."""

    view: TableName
    storage: TableName
    records: tuple[Recorded, ...]

    @property
    def trusted(self) -> tuple[Recorded, ...]:
        """The records without those of rows that were found to be wrong.

        Since when they have been wrong is not known, so all since the last rebuild are left out.
        """
        wrong = {found.record.incarnation for found in self.records if found.record.is_wrong}
        return tuple(found for found in self.records if found.record.incarnation not in wrong)


@dataclass(frozen=True)
class Cut:
    """Where every source is read."""

    data_timestamp: datetime
    pins: Mapping[TableName, Pin]
    upstreams: Mapping[TableName, Recorded]
    # By when base tables are read, if that is before the data timestamp.
    pinned_by: datetime | None = None
    # Tables that are read at a version which is not known.
    unknown_sources: Set[TableName] = frozenset()

    def versions(self) -> dict[TableName, int]:
        """Return the version of each table as it stands in the query: base and storage tables."""
        bases = {table: pin.version for table, pin in self.pins.items()}
        return bases | {table: taken.commit.version for table, taken in self.upstreams.items()}

    def uses_clock(self) -> bool:
        """Tell whether an upstream's contents depend on the time."""
        return any(taken.record.clock for taken in self.upstreams.values())

    def by_commit(self) -> bool:
        """Tell whether an upstream's contents depend on every commit of its sources."""
        return any(taken.record.by_commit for taken in self.upstreams.values())

    def unknown_by(self, attempt: str) -> dict[str, str]:
        """Return the tables that this cut does not tell the version of, and who read them."""
        own = {str(table): attempt for table in self.unknown_sources}
        above = [taken.record.unknown_sources for taken in self.upstreams.values()]
        return {table: by for unknown in (*above, own) for table, by in unknown.items()}

    def clock_until(self) -> datetime | None:
        """Return until when the upstreams stay right as time goes by; None if only at the cut."""
        clocked = [taken.record for taken in self.upstreams.values() if taken.record.clock]
        known = [record.clock_until for record in clocked if record.clock_until]
        return min(known, default=None) if len(known) == len(clocked) else None


@dataclass(frozen=True)
class Waiting:
    """No cut is valid for all upstreams yet; these have to refresh first."""

    upstreams: tuple[TableName, ...]


def choose_cut(
    now: datetime,
    after: datetime | None,
    bases: Iterable[TableName],
    upstreams: Iterable[Upstream],
    pin_at: PinAt,
    same_rows: SameRows,
    own: Record | None = None,
    decided: datetime | None = None,
) -> Cut | Waiting:
    """Choose the newest cut that all upstreams are valid at.

    `now` is the cycle's data timestamp; the cut has to be newer than `after`. The pins of the
    model's `own` record stand for its own moment. If the schedule `decided` for an older moment,
    rows are not compared to find out whether an upstream would also be valid now.
    """
    bases, upstreams = list(bases), list(upstreams)
    if decided is not None and decided < now and (after is None or decided > after):
        is_fresh = all(_is_valid_at(u, now, pin_at, is_same_commit) for u in upstreams)
        cut = None if is_fresh else _cut_at(decided, bases, upstreams, pin_at, same_rows, own)
        if cut is not None:
            return cut
    newest = {u.storage: u.trusted[0] for u in upstreams if u.trusted}
    mixing = _mixing(newest, bases)
    late = tuple(
        u.view
        for u in upstreams
        if u.storage in mixing or not _is_valid_at(u, now, pin_at, same_rows)
    )
    if not late:
        tables = {p.table for r in newest.values() for p in r.record.frontier} | set(bases)
        pins = {table: pin_at(table, now) for table in tables}
        return Cut(now, pins, newest)
    for moment in _older_moments(upstreams, now, after):
        cut = _cut_at(moment, bases, upstreams, pin_at, same_rows, own)
        if cut is not None:
            return cut
    return Waiting(late)


def is_same_commit(one: Pin, other: Pin) -> bool:
    """Tell whether two pins are one version of one log."""
    return (one.log, one.version) == (other.log, other.version)


def _mixing(taken: Mapping[TableName, Recorded], bases: Iterable[TableName]) -> set[TableName]:
    """Return the upstreams that cannot be read beside the others, or beside base tables.

    They have read a table at a version that is not known, and something else reads it, too.
    Several that have it from one and the same reading agree.
    """
    base_names = {str(table) for table in bases}
    found: set[TableName] = set()
    for storage, recorded in taken.items():
        for table, attempt in recorded.record.unknown_sources.items():
            others = (r.record for s, r in taken.items() if s != storage)
            is_shared = any(
                other.unknown_sources.get(table, attempt) != attempt
                or any(str(pin.table) == table for pin in other.frontier)
                for other in others
            )
            if is_shared or table in base_names:
                found.add(storage)
    return found


def _is_valid_at(upstream: Upstream, moment: datetime, pin_at: PinAt, same_rows: SameRows) -> bool:
    """Tell whether an upstream's newest version is what its query gives at a moment's cut."""
    if not upstream.trusted:
        return False
    record = upstream.trusted[0].record
    if not record.holds_at(moment):
        return False
    same = is_same_commit if record.by_commit else same_rows
    return all(same(pin, pin_at(pin.table, moment)) for pin in record.frontier)


def _older_moments(
    upstreams: list[Upstream], now: datetime, after: datetime | None
) -> list[datetime]:
    """Return when the upstreams were refreshed, newest first.

    Of a moment after this cycle began, at which another one has refreshed an upstream meanwhile,
    this cycle cannot say what the base tables held.
    """
    moments = {r.record.data_timestamp for u in upstreams for r in u.trusted}
    return sorted((m for m in moments if m <= now and (after is None or m > after)), reverse=True)


def _cut_at(
    moment: datetime,
    bases: list[TableName],
    upstreams: list[Upstream],
    pin_at: PinAt,
    same_rows: SameRows,
    own: Record | None,
) -> Cut | None:
    taken: dict[TableName, Recorded] = {}
    own = own if own is not None and own.data_timestamp == moment else None
    if own is not None and not all(same_rows(pin, pin) for pin in own.frontier):
        # A table was replaced since: which of its versions belongs to this moment?
        return None
    for upstream in upstreams:
        found = next((r for r in upstream.trusted if r.record.data_timestamp <= moment), None)
        if found is None or not found.record.holds_at(moment):
            return None
        taken[upstream.storage] = found
    if _mixing(taken, bases):
        return None
    # The pins that were made for this very moment are the cut; the first one wins.
    made: dict[TableName, Pin] = {}
    pinned_by = moment
    for record in (own, *(recorded.record for recorded in taken.values())):
        if record is not None and record.data_timestamp == moment:
            made = {pin.table: pin for pin in record.frontier} | made
            pinned_by = min(pinned_by, record.pinned_by or moment)
    tables = {pin.table for r in taken.values() for pin in r.record.frontier} | set(bases)
    try:
        pins = {table: made.get(table) or pin_at(table, pinned_by) for table in tables}
    except EngineError:
        # A table is younger than this moment.
        return None
    for recorded in taken.values():
        same = is_same_commit if recorded.record.by_commit else same_rows
        if not all(same(pin, pins[pin.table]) for pin in recorded.record.frontier):
            return None
    return Cut(moment, pins, taken, pinned_by if pinned_by < moment else None)
