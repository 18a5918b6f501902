"""What is known of one dynamic table when a cycle opens: little, and made of its refreshes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from spark_dynamic.clock import EPOCH
from spark_dynamic.schedule.waits import Waits, longest_wait, noted_wait

# One slow refresh is remembered for so many others.
_KEPT: Final = 5
# So many refreshes of a kind are compared: one may have met a cold JVM, older ones other changes.
COMPARED: Final = 2
WAITING: Final = "WAITING"
_WRITES: Final = ("FULL", "REINITIALIZE", "INCREMENTAL")
# What brings a table to a data timestamp, with or without new rows.
REFRESHES: Final = (*_WRITES, "NO_DATA", "COVERED")


@dataclass(frozen=True)
class Refresh:
    """A row of the state table, as far as the schedule needs it.

    A failed try has no action, unless its refresh was done and what comes after it failed.
    """

    action: str
    started_at: datetime
    ended_at: datetime
    data_timestamp: datetime | None = None
    succeeded: bool = True
    # How long after its cycle's clock it began; None if its data timestamp is an older one.
    waited: timedelta | None = None
    # Whether its sources had only been added to.
    inserts_only: bool = False

    @property
    def is_refresh(self) -> bool:
        """Tell whether the table was brought to a data timestamp."""
        return self.succeeded and self.action in REFRESHES

    @property
    def writes(self) -> bool:
        """Tell whether rows were computed and written."""
        return self.succeeded and self.action in _WRITES


@dataclass(frozen=True)
class Known:
    """One table: where it is, how long its refreshes take, what went wrong."""

    # The newest data timestamps, newest first; none: the table has to be built.
    timestamps: tuple[datetime, ...] = ()
    # How long the last refreshes took that wrote something, newest first.
    durations: tuple[timedelta, ...] = ()
    # How long the last refreshes waited in their runs.
    waits: Waits = ()
    # How long the last refreshes of each kind took, newest first: they are compared. Where
    # sources were only added to, an incremental one has much less to do.
    fulls: tuple[timedelta, ...] = ()
    incrementals: tuple[timedelta, ...] = ()
    inserts: tuple[timedelta, ...] = ()
    # How long the build took with which these begin.
    build: timedelta = timedelta()
    # So many full refreshes came after the last incremental one.
    fulls_in_a_row: int = 0
    # The only duration is that of the first build.
    is_just_built: bool = False
    errors_in_a_row: int = 0
    # The last refresh that wrote was done, but its post-hooks were not.
    owes_hooks: bool = False
    is_suspended: bool = False
    # When a table that is to be built by schedule was first met by a run.
    seen_at: datetime | None = None
    # When a refresh last found no cut that all sources have; nothing older than this serves then.
    waited_at: datetime | None = None
    # Two facts that no refresh tells: the definition or the storage's config is another now.
    is_edited: bool = False
    is_reconfigured: bool = False

    @property
    def data_timestamp(self) -> datetime | None:
        """The moment at which the table's contents are right."""
        return self.timestamps[0] if self.timestamps else None

    @property
    def expected_duration(self) -> timedelta:
        """How long the next refresh may take: the longest of the last ones that wrote."""
        return max(self.durations, default=timedelta())

    @property
    def quickest_full(self) -> timedelta | None:
        """How long a full refresh takes; None if nobody can tell."""
        # A build does not only compute the table, but makes it: as much again.
        built = [self.build / 2] if self.build and len(self.fulls) < COMPARED else []
        return min([*self.fulls, *built], default=None)

    def quickest_incremental(self, inserts_only: bool) -> timedelta | None:
        """How long an incremental refresh takes; None if there were too few yet."""
        found = self.inserts if inserts_only else self.incrementals
        return min(found) if len(found) >= COMPARED else None

    @property
    def expected_wait(self) -> timedelta:
        """How long the next refresh may wait in its run: as long as the last ones did."""
        return longest_wait(self.waits)

    def by(self, limit: datetime) -> "Known":
        """Return what is known without moments after a limit, which no clock has reached yet.

        Older data timestamps stay: what a table holds is as new as these, or newer. A table that
        has no others is due.
        """
        timestamps = tuple(moment for moment in self.timestamps if moment <= limit)
        waited_at, seen_at = self.waited_at, self.seen_at
        if waited_at and waited_at > limit:
            waited_at = None
        if (seen_at and seen_at > limit) or (self.timestamps and not timestamps):
            # The first grid point after that has come, so that a new table is built now.
            seen_at = EPOCH
        return replace(self, timestamps=timestamps, waited_at=waited_at, seen_at=seen_at)


def noted(known: Known, refresh: Refresh) -> Known:
    """Return what is known after one more row of the state table.

    Only a refresh ends a row of errors; NOT_DUE and SUSPENDED say nothing new.
    """
    if not refresh.succeeded:
        is_try = refresh.action != "SUSPENDED"
        owes_hooks = known.owes_hooks or refresh.action in REFRESHES
        errors = known.errors_in_a_row + is_try
        return replace(known, errors_in_a_row=errors, owes_hooks=owes_hooks)
    if refresh.action == WAITING:
        return replace(known, waited_at=refresh.started_at)
    if not refresh.is_refresh:
        return known
    if refresh.data_timestamp is None:
        # --empty or --sample: what is stored now is no result of the query.
        known = replace(known, timestamps=(), durations=(), waits=())
        return replace(known, errors_in_a_row=0, owes_hooks=False)
    known = _compared(known, refresh)
    return replace(
        known,
        timestamps=_timestamps(known, refresh.data_timestamp),
        durations=_durations(known, refresh),
        waits=_waits(known, refresh),
        is_just_built=not known.timestamps or (known.is_just_built and not refresh.writes),
        errors_in_a_row=0,
        owes_hooks=False,
        waited_at=None,
    )


def known_from(refreshes: Iterable[Refresh]) -> Known:
    """Return what a table's rows in the state table say, oldest first."""
    known = Known()
    for refresh in refreshes:
        known = noted(known, refresh)
    return known


def _timestamps(known: Known, newest: datetime) -> tuple[datetime, ...]:
    # COVERED repeats a timestamp, and a run that was slower than another brings an older one.
    return tuple(sorted({newest, *known.timestamps}, reverse=True)[:_KEPT])


def _compared(known: Known, refresh: Refresh) -> Known:
    took = refresh.ended_at - refresh.started_at
    if not refresh.writes or not took:
        return known
    if refresh.action == "INCREMENTAL" and refresh.inserts_only:
        return replace(known, inserts=(took, *known.inserts)[:COMPARED], fulls_in_a_row=0)
    if refresh.action == "INCREMENTAL":
        kept = (took, *known.incrementals)[:COMPARED]
        return replace(known, incrementals=kept, fulls_in_a_row=0)
    if not known.timestamps or refresh.action == "REINITIALIZE":
        # The query may be another one.
        known = replace(known, fulls=(), incrementals=(), inserts=())
        return replace(known, build=took, fulls_in_a_row=1)
    kept = (took, *known.fulls)[:COMPARED]
    return replace(known, fulls=kept, fulls_in_a_row=known.fulls_in_a_row + 1)


def _durations(known: Known, refresh: Refresh) -> tuple[timedelta, ...]:
    took = refresh.ended_at - refresh.started_at
    if not refresh.writes or not took:
        # Nothing was computed, or only its commit is known: neither tells how long it takes.
        return known.durations
    # The first build reads everything; it counts only as long as nothing else is known.
    before = () if known.is_just_built else known.durations
    return (took, *before)[:_KEPT]


def _waits(known: Known, refresh: Refresh) -> Waits:
    before, moment = known.data_timestamp, refresh.data_timestamp
    # With the first build of a table, others are built: that tells nothing of later runs.
    if refresh.waited is None or before is None or moment is None:
        return known.waits
    return noted_wait(known.waits, before, moment, refresh.waited)
