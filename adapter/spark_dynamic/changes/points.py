"""Points in time, and the position that a query has there."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from spark_dynamic.changes.asked import AT_LEAST, STRICT, ChangeRead, Mode, Position
from spark_dynamic.changes.kept import available, is_kept
from spark_dynamic.changes.point import (
    BEFORE_THE_FIRST_CHANGE,
    DataTimestamp,
    OtherPosition,
    Point,
    read_point,
    shown_point,
)
from spark_dynamic.changes.question import sources_of
from spark_dynamic.changes.states import pin_of
from spark_dynamic.clock import ZONE_SETTING, stamp, zone_of
from spark_dynamic.config_values import Expected
from spark_dynamic.duration import parse_duration
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.cut import Cut, Upstream, Waiting
from spark_dynamic.frontier.history import records
from spark_dynamic.frontier.record import Pin, Record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.stored import find_stored
from spark_dynamic.warehouse import Commit, Warehouse


class Places(Protocol):
    """Finds what points name."""

    def position(self, point: OtherPosition) -> Position:
        """Return the position of a stream, or of one of its consumers."""

    def dynamic_table(self, name: str) -> TableName:
        """Return the view of a dynamic table."""


def position_at(
    read: ChangeRead,
    moment: datetime,
    cycle: Cycle,
    warehouse: Warehouse,
    record: Record | None = None,
) -> dict[TableName, Pin]:
    """Return where each table of a query stood at a moment.

    Dynamic tables are taken at the newest moment up to then at which all of them are valid, and
    base tables beside them at that same moment. A `record` says where the cut of its own moment
    has read tables: a model of that run may have left a version that is younger.
    """
    analysis = sources_of(read, cycle, warehouse)
    moment = min(moment, cycle.data_timestamp)
    cut: Cut | Waiting = Waiting(())
    if moment == cycle.data_timestamp:
        # The newest refreshes will do, mostly, and are at hand.
        cut = _cut(moment, analysis, analysis.upstreams, cycle, warehouse, record)
    if isinstance(cut, Waiting):
        upstreams = [_with_all_refreshes(one, cycle, warehouse) for one in analysis.upstreams]
        cut = _cut(moment, analysis, upstreams, cycle, warehouse, record)
    if isinstance(cut, Waiting):
        raise EngineError(
            "NO_COMMON_POINT",
            f"There is no moment up to {stamp(moment)} at which "
            f"{', '.join(map(str, cut.upstreams))} can be read together with what else the query "
            "reads. Refresh them first.",
        )
    found = {table: cut.pins[table] for table in analysis.bases}
    if record is not None and record.data_timestamp == cut.data_timestamp:
        found |= {pin.table: pin for pin in record.frontier if pin.table in found}
    for table, taken in cut.upstreams.items():
        found[table] = pin_of_commit(table, taken.commit, cycle, warehouse)
    return found


def _cut(
    moment: datetime,
    analysis: Analysis,
    upstreams: Iterable[Upstream],
    cycle: Cycle,
    warehouse: Warehouse,
    record: Record | None,
) -> Cut | Waiting:
    """Choose the newest cut up to a moment.

    What was refreshed with a clock that was ahead has a later date, but is there by now.
    """

    def is_by_then(record: Record) -> bool:
        at = record.data_timestamp
        is_now = moment == cycle.data_timestamp
        return at <= moment or (is_now and cycle.is_ahead(warehouse, at))

    by_then = [
        replace(one, records=tuple(r for r in one.trusted if is_by_then(r.record)))
        for one in upstreams
    ]
    if len(by_then) == 1 and not analysis.bases and by_then[0].records:
        # It needs to agree with nothing else.
        return Cut(moment, {}, {by_then[0].storage: by_then[0].records[0]})
    return cycle.cut(warehouse, analysis.bases, by_then, now=moment, own=record)


def _with_all_refreshes(upstream: Upstream, cycle: Cycle, warehouse: Warehouse) -> Upstream:
    """Return a dynamic table with all refreshes that its log has; an analysis has the newest."""
    commits = cycle.catalog.history(warehouse, upstream.storage, since=0)
    return replace(upstream, records=tuple(records(commits)))


@dataclass(frozen=True)
class Asking:
    """A point as the user wrote it, and under which name."""

    name: str
    value: Any
    bound: str = STRICT

    @property
    def point(self) -> Point:
        """What is meant."""
        try:
            return read_point(self.value)
        except Expected as expected:
            raise EngineError(
                "POINT_NOT_KNOWN", f"{self.name} is {self.value!r}. Expected {expected}."
            ) from None


def start_of(
    asking: Asking, read: ChangeRead, cycle: Cycle, warehouse: Warehouse, **more: Any
) -> Position | None:
    """Return the position of a point that begins an interval; None if nothing was before it."""
    if asking.point == BEFORE_THE_FIRST_CHANGE and read.mode is Mode.MIN_DELTA:
        # The net effect of everything is the contents; what else happened is in the log.
        return None
    return position_of(asking, read, cycle, warehouse, **more)


def position_of(
    asking: Asking,
    read: ChangeRead,
    cycle: Cycle,
    warehouse: Warehouse,
    *,
    places: Places | None = None,
    now: Position | None = None,
) -> Position:
    """Return the position that a point stands for; `now`, if it is settled already."""
    if asking.bound not in (STRICT, AT_LEAST):
        raise EngineError(
            "POINT_NOT_KNOWN", f"Invalid bound '{asking.bound}'. Expected 'strict' or 'at_least'."
        )
    match asking.point:
        case "now":
            return now or position_at(read, cycle.data_timestamp, cycle, warehouse)
        case int() as version:
            return _version(asking, version, read, cycle, warehouse)
        case str() as text if text != BEFORE_THE_FIRST_CHANGE:
            return at_moment(asking, _moment(text, read, cycle), read, cycle, warehouse)
        case str():
            found: Position = _beginning(read, cycle, warehouse)
        case OtherPosition() as other:
            assert places is not None
            found = places.position(other)
        case DataTimestamp() as refresh:
            assert places is not None
            view = places.dynamic_table(refresh.dynamic_table)
            found = _refreshed(view, read, cycle, warehouse)
    return _bounded(asking, found, read, cycle, warehouse)


def at_moment(
    asking: Asking, moment: datetime, read: ChangeRead, cycle: Cycle, warehouse: Warehouse
) -> Position:
    """Return the position at a moment, or (`at_least`) the earliest one if that is later."""
    earliest, table = _earliest(sources_of(read, cycle, warehouse), cycle, warehouse)
    if table is not None and moment < earliest:
        if asking.bound == STRICT:
            raise too_old(asking, f"{stamp(earliest)}, because of {table}")
        moment = earliest
    return position_at(read, moment, cycle, warehouse)


def _moment(text: str, read: ChangeRead, cycle: Cycle) -> datetime:
    try:
        return cycle.data_timestamp - parse_duration(text)
    except ValueError:
        found = datetime.fromisoformat(text)
    zone = zone_of(read.settings.get(ZONE_SETTING, "UTC"))
    return found if found.tzinfo else found.replace(tzinfo=zone)


def _beginning(read: ChangeRead, cycle: Cycle, warehouse: Warehouse) -> Position:
    """Return the first version of every table, whether it is there or not."""
    found: dict[TableName, Pin] = {}
    for table in sources_of(read, cycle, warehouse).tables():
        oldest = cycle.catalog.history(warehouse, table, since=0)[-1]
        pin = pin_of_commit(table, oldest, cycle, warehouse)
        found[table] = pin if oldest.version == 0 else replace(pin, version=0)
    return found


def _refreshed(view: TableName, read: ChangeRead, cycle: Cycle, warehouse: Warehouse) -> Position:
    """Return the cut of a dynamic table's newest refresh, as far as a query reads it."""
    stored = find_stored(view, cycle, warehouse)
    if stored is None or stored.tail.newest is None:
        raise EngineError(
            "POINT_NOT_KNOWN", f"The dynamic table {view} has no refresh yet, so it has no cut."
        )
    record = stored.tail.newest.record
    if cycle.is_ahead(warehouse, record.data_timestamp):
        raise EngineError(
            "POINT_NOT_KNOWN",
            f"The dynamic table {view} was last refreshed with a clock that was ahead, at "
            f"{stamp(record.data_timestamp)}, so its cut has no place in time. Refresh it first.",
        )
    return position_at(read, record.data_timestamp, cycle, warehouse, record)


def _bounded(
    asking: Asking, position: Position, read: ChangeRead, cycle: Cycle, warehouse: Warehouse
) -> Position:
    """Return the part of a position that a query needs, or (`at_least`) the earliest one."""
    analysis = sources_of(read, cycle, warehouse)
    pins = {table: pin_of(table, position) for table in analysis.tables()}
    gone = [str(pin.table) for pin in pins.values() if not _is_there(pin, cycle, warehouse)]
    if not gone:
        return {pin.table: pin for pin in pins.values()}
    earliest, _ = _earliest(analysis, cycle, warehouse)
    if asking.bound == STRICT:
        raise too_old(asking, f"{stamp(earliest)}, because of {', '.join(sorted(gone))}")
    return position_at(read, earliest, cycle, warehouse)


def _is_there(pin: Pin, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Tell whether a version can be read; a table that was made anew is another matter."""
    if cycle.catalog.relation(warehouse, pin.table) is None:
        return False
    newest = cycle.catalog.history(warehouse, pin.table)[0].version
    if cycle.commit_at(warehouse, pin.table, pin.version) is None:
        return pin.version > newest
    return is_kept(pin, cycle, warehouse)


def _version(
    asking: Asking, version: int, read: ChangeRead, cycle: Cycle, warehouse: Warehouse
) -> Position:
    tables = sorted(sources_of(read, cycle, warehouse).tables(), key=str)
    if len(tables) != 1:
        raise EngineError(
            "POINT_NOT_KNOWN",
            f"{asking.name} is the version {version}, but the query reads "
            f"{', '.join(map(str, tables)) or 'no table'}. Give a timestamp instead.",
        )
    [table] = tables
    newest = cycle.catalog.history(warehouse, table)[0]
    if version > newest.version:
        raise EngineError(
            "POINT_NOT_KNOWN",
            f"{asking.name} is the version {version}, but the newest version of {table} is "
            f"{newest.version}.",
        )
    commit = cycle.commit_at(warehouse, table, version)
    if commit is not None:
        pin = pin_of_commit(table, commit, cycle, warehouse)
        if is_kept(pin, cycle, warehouse):
            return {table: pin}
    moment, oldest = available(table, cycle, warehouse)
    if asking.bound == STRICT:
        raise too_old(asking, f"version {oldest.version} of {table} ({stamp(moment)})")
    return {table: pin_of_commit(table, oldest, cycle, warehouse)}


def too_old(asking: Asking, earliest: str) -> EngineError:
    """Return the error of a point that history does not reach."""
    return EngineError(
        "POINT_TOO_OLD",
        f"{asking.name} is {shown_point(asking.value)}, which is too long ago: the earliest "
        f"available point is {earliest}. bound='at_least' begins there; "
        "delta.deletedFileRetentionDuration and delta.logRetentionDuration say how much history a "
        "table keeps.",
    )


def _earliest(
    analysis: Analysis, cycle: Cycle, warehouse: Warehouse
) -> tuple[datetime, TableName | None]:
    """Return the earliest moment at which all tables can be read, and which of them sets it."""
    found = [
        (available(table, cycle, warehouse)[0], table)
        for table in sorted(analysis.tables(), key=str)
    ]
    for upstream in analysis.upstreams:
        # A refresh is named by its data timestamp, which is earlier than its commit.
        kept = available(upstream.storage, cycle, warehouse)[1].version
        refreshes = _with_all_refreshes(upstream, cycle, warehouse).records
        stamps = [r.record.data_timestamp for r in refreshes if r.commit.version >= kept]
        found = [(m, t) for m, t in found if t != upstream.storage]
        if stamps:
            found.append((min(stamps), upstream.storage))
    return max(found, default=(cycle.data_timestamp, None), key=lambda pair: pair[0])


def pin_of_commit(table: TableName, commit: Commit, cycle: Cycle, warehouse: Warehouse) -> Pin:
    """Return a table at the version that a commit made."""
    relation = cycle.catalog.relation(warehouse, table)
    assert relation is not None
    return Pin(table, relation.location, commit.version, commit.timestamp)
