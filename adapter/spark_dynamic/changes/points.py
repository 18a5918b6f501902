"""Points in time, and the position that a query has there."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from spark_dynamic.changes.asked import AT_LEAST, STRICT, ChangeRead, Position
from spark_dynamic.changes.question import sources_of
from spark_dynamic.changes.retention import readable_since
from spark_dynamic.clock import stamp
from spark_dynamic.duration import parse_duration
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.cut import Cut, Waiting
from spark_dynamic.frontier.record import Pin
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Commit, Warehouse

_EXPECTED = (
    "Expected a version (a number), a timestamp such as '2026-01-31 12:00:00', an interval back "
    "from now such as '2 hours', or a position"
)


def position_at(
    read: ChangeRead, moment: datetime, cycle: Cycle, warehouse: Warehouse
) -> dict[TableName, Pin]:
    """Return where each table of a query stood at a moment.

    Dynamic tables are taken at the newest moment up to then at which all of them are valid, and
    base tables beside them at that same moment.
    """
    analysis = sources_of(read, cycle, warehouse)
    moment = min(moment, cycle.data_timestamp)
    upstreams = [
        replace(
            upstream,
            records=tuple(r for r in upstream.records if r.record.data_timestamp <= moment),
        )
        for upstream in analysis.upstreams
    ]
    if len(upstreams) == 1 and not analysis.bases and upstreams[0].records:
        # It needs to agree with nothing else.
        cut: Cut | Waiting = Cut(moment, {}, {upstreams[0].storage: upstreams[0].records[0]})
    else:
        cut = cycle.cut(warehouse, analysis.bases, upstreams, now=moment)
    if isinstance(cut, Waiting):
        raise EngineError(
            "NO_COMMON_POINT",
            f"There is no moment up to {stamp(moment)} at which "
            f"{', '.join(map(str, cut.upstreams))} can be read together with what else the query "
            "reads. Refresh them first.",
        )
    found = {table: cut.pins[table] for table in analysis.bases}
    for table, taken in cut.upstreams.items():
        found[table] = pin_of_commit(table, taken.commit, cycle, warehouse)
    return found


@dataclass(frozen=True)
class Asking:
    """A point as the user wrote it, and under which name."""

    name: str
    value: Any
    bound: str = STRICT


def position_of(asking: Asking, read: ChangeRead, cycle: Cycle, warehouse: Warehouse) -> Position:
    """Return the position that a point stands for."""
    value = asking.value
    if asking.bound not in (STRICT, AT_LEAST):
        raise EngineError(
            "POINT_NOT_KNOWN", f"Invalid bound '{asking.bound}'. Expected 'strict' or 'at_least'."
        )
    if isinstance(value, Mapping) and value and all(isinstance(p, Pin) for p in value.values()):
        return value
    analysis = sources_of(read, cycle, warehouse)
    if isinstance(value, int) and not isinstance(value, bool):
        return _version(asking, analysis, cycle, warehouse)
    moment = _moment(asking, read, cycle)
    earliest, table = _earliest(analysis, cycle, warehouse)
    if table is not None and moment < earliest:
        if asking.bound == STRICT:
            raise too_old(asking, f"{stamp(earliest)}, because of {table}")
        moment = earliest
    return position_at(read, moment, cycle, warehouse)


def _moment(asking: Asking, read: ChangeRead, cycle: Cycle) -> datetime:
    value = asking.value
    zone = ZoneInfo(read.settings.get("spark.sql.session.timeZone", "UTC"))
    try:
        return cycle.data_timestamp - parse_duration(value)
    except ValueError:
        pass
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError as error:
        raise EngineError(
            "POINT_NOT_KNOWN", f"{asking.name} is {value!r}. {_EXPECTED}."
        ) from error
    return found if found.tzinfo else found.replace(tzinfo=zone)


def _version(
    asking: Asking, analysis: Analysis, cycle: Cycle, warehouse: Warehouse
) -> dict[TableName, Pin]:
    tables = sorted(analysis.tables(), key=str)
    if len(tables) != 1:
        raise EngineError(
            "POINT_NOT_KNOWN",
            f"{asking.name} is the version {asking.value}, but the query reads "
            f"{', '.join(map(str, tables)) or 'no table'}. Give a timestamp instead.",
        )
    [table] = tables
    newest = cycle.catalog.history(warehouse, table)[0]
    if asking.value > newest.version or asking.value < 0:
        raise EngineError(
            "POINT_NOT_KNOWN",
            f"{asking.name} is the version {asking.value}, but the newest version of {table} is "
            f"{newest.version}.",
        )
    moment, oldest = available(table, cycle, warehouse)
    wanted = asking.value
    if wanted < oldest.version:
        if asking.bound == STRICT:
            when = f"version {oldest.version} of {table} ({stamp(moment)})"
            raise too_old(asking, when)
        wanted = oldest.version
    commit = cycle.commit_at(warehouse, table, wanted)
    assert commit is not None
    return {table: pin_of_commit(table, commit, cycle, warehouse)}


def too_old(asking: Asking, earliest: str) -> EngineError:
    """Return the error of a point that history does not reach."""
    return EngineError(
        "POINT_TOO_OLD",
        f"{asking.name} is {asking.value!r}, which is too long ago: the earliest available point "
        f"is {earliest}. bound='at_least' begins there; delta.deletedFileRetentionDuration and "
        "delta.logRetentionDuration say how much history a table keeps.",
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
        stamps = [r.record.data_timestamp for r in upstream.records if r.commit.version >= kept]
        found = [(m, t) for m, t in found if t != upstream.storage]
        if stamps:
            found.append((min(stamps), upstream.storage))
    return max(found, default=(cycle.data_timestamp, None), key=lambda pair: pair[0])


def available(table: TableName, cycle: Cycle, warehouse: Warehouse) -> tuple[datetime, Commit]:
    """Return the earliest moment at which a table can be read, and its version then."""
    relation = cycle.catalog.relation(warehouse, table)
    since = readable_since(relation, cycle.data_timestamp)
    history = cycle.catalog.history(warehouse, table, since=0)
    for commit in history:
        if commit.timestamp <= since:
            return since, commit
    return history[-1].timestamp, history[-1]


def pin_of_commit(table: TableName, commit: Commit, cycle: Cycle, warehouse: Warehouse) -> Pin:
    """Return a table at the version that a commit made."""
    relation = cycle.catalog.relation(warehouse, table)
    assert relation is not None
    return Pin(table, relation.location, commit.version, commit.timestamp)
