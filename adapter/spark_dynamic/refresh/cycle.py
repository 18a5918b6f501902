"""The cycle: what all refreshes of one dbt invocation share."""

import threading
import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from spark_dynamic.catalog import Catalog
from spark_dynamic.clock import SKEW, stamp
from spark_dynamic.duration import format_duration
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.compare import (
    history_says,
    row_count,
    same_columns,
    same_rows,
    touches_columns,
)
from spark_dynamic.frontier.cut import Cut, Upstream, Waiting, choose_cut
from spark_dynamic.frontier.history import between, net_rows, replaces_all
from spark_dynamic.frontier.record import Pin, Record, Verdict
from spark_dynamic.frontier.state import KnownState, StateRow
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Commit, Warehouse

_NEVER_BACK = timedelta(milliseconds=1)


class Cycle:
    """One clock, one set of pins, one cache of what was asked."""

    def __init__(self, invocation: str, now: datetime, known: KnownState) -> None:
        self.id = str(uuid.uuid4())
        self.invocation = invocation
        self.known = known.believed(now)
        self.catalog = Catalog()
        newest = self.known.newest_timestamp
        later = newest + _NEVER_BACK if newest else now
        self.data_timestamp = max(now, later)
        # Of a moment that is still to come, nobody knows what will be committed by then.
        self._opened_at = now
        self.events: list[StateRow] = []
        # What Spark said of the texts of change queries, by their hash.
        self.verdicts: dict[str, Verdict] = {}
        self._pins: dict[tuple[TableName, datetime], Pin] = {}
        self._same: dict[tuple[TableName, int, int], bool] = {}
        self._rows: dict[tuple[TableName, int], int] = {}
        self._written: dict[TableName, datetime] = {}
        self._warnings = _about_data_timestamps(known, self.known, now)
        self._told_of: set[TableName] = set()
        self._locks: dict[TableName, threading.RLock] = {}
        self._guard = threading.Lock()

    def note_written(self, table: TableName, at: datetime) -> None:
        """Remember that a node of this invocation wrote a table: its result is to be read."""
        with self._lock(table):
            self._written[table] = at
            # Whoever looked before keeps its pin in its record; readers compare rows, so they
            # see that it is older. The table may also be a new one, with versions from 0.
            self._pins.pop((table, self.data_timestamp), None)
            # Other threads ask about other tables meanwhile.
            for pair in [key for key in list(self._same) if key[0] == table]:
                del self._same[pair]
            for one in [key for key in list(self._rows) if key[0] == table]:
                del self._rows[one]
        self.catalog.forget(table)

    def note_read(self, pin: Pin) -> None:
        """Pin a table where a text has read it that cannot be pinned, if that is further on.

        A table that was planned before keeps its pin in its record.
        """
        with self._lock(pin.table):
            made = self._pins.get((pin.table, self.data_timestamp))
            if made is None or made.log != pin.log or made.version < pin.version:
                self._pins[pin.table, self.data_timestamp] = pin

    def has_written(self, table: TableName) -> bool:
        """Tell whether a node of this invocation wrote a table, or made a view."""
        return table in self._written

    def cut(
        self,
        warehouse: Warehouse,
        bases: Iterable[TableName],
        upstreams: Iterable[Upstream],
        *,
        now: datetime | None = None,
        after: datetime | None = None,
        own: Record | None = None,
        decided: datetime | None = None,
    ) -> Cut | Waiting:
        """Choose a cut by the pins of this cycle; see `choose_cut`."""
        found = choose_cut(
            now=now or self.data_timestamp,
            after=after,
            bases=bases,
            upstreams=upstreams,
            pin_at=lambda table, moment: self.pin(warehouse, table, moment),
            same_rows=lambda old, new: self.same_rows(warehouse, old, new),
            own=own,
            decided=decided,
        )
        is_ahead = self._opened_at < self.data_timestamp
        if is_ahead and isinstance(found, Cut) and found.data_timestamp == self.data_timestamp:
            return replace(found, pinned_by=self._opened_at)
        return found

    def pin(self, warehouse: Warehouse, table: TableName, moment: datetime) -> Pin:
        """Return a table's version at a moment. The first answer stands for the whole cycle."""
        with self._lock(table):
            key = (table, moment)
            if key not in self._pins:
                self._pins[key] = self._find_pin(warehouse, table, moment)
            return self._pins[key]

    def _find_pin(self, warehouse: Warehouse, table: TableName, moment: datetime) -> Pin:
        relation = self.catalog.relation(warehouse, table)
        if relation is None:
            raise EngineError("SOURCE_MISSING", f"The table {table} does not exist.")
        key = (str(table), relation.location)
        self._tell_of_the_future(warehouse, table)
        if moment < self.data_timestamp:
            made = self.known.later.get(moment, {}).get(key)
            before = None if made is None else self.commit_at(warehouse, table, made)
            at_least = self._undated(warehouse, table, self.known.pinned_before(moment, key))
            commit = before or self._newest_by(warehouse, table, moment, at_least)
        elif table in self._written:
            # The storage's clock may run ahead of ours; what the node left is the newest.
            commit = self.catalog.history(warehouse, table)[0]
        else:
            at_least = self.known.pins.get(key, -1)
            # What has been read was committed by now, whatever its date.
            reached = self.reached(warehouse)
            commit = self._newest_by(warehouse, table, self._opened_at, at_least, reached)
        return Pin(table, relation.location, commit.version, commit.timestamp)

    def _newest_by(
        self,
        warehouse: Warehouse,
        table: TableName,
        limit: datetime,
        at_least: int = -1,
        reached: datetime | None = None,
    ) -> Commit:
        """Return the newest commit by a limit, the version `at_least`, or one of the future.

        The last is one that is dated after what any clock has `reached`.
        """
        commits = self.catalog.history(warehouse, table)
        while commits:
            for commit in commits:
                if commit.timestamp <= limit or commit.version == at_least:
                    return commit
                if reached is not None and commit.timestamp > reached:
                    return commit
            if commits[-1].version == 0:
                break
            further = max(0, commits[0].version - 10 * len(commits))
            longer = self.catalog.history(warehouse, table, since=further)
            if len(longer) == len(commits):
                break
            commits = longer
        raise EngineError("SOURCE_MISSING", f"{table} has no version as old as {limit}.")

    def _undated(self, warehouse: Warehouse, table: TableName, version: int) -> int:
        """Return a version if its date says nothing, being ahead of now; else -1."""
        commit = self.commit_at(warehouse, table, version) if version >= 0 else None
        return version if commit and self.is_ahead(warehouse, commit.timestamp) else -1

    def reached(self, warehouse: Warehouse) -> datetime:
        """Return the latest moment that a clock which is not wrong may show by now."""
        return max(warehouse.now(), self._opened_at) + SKEW

    def is_ahead(self, warehouse: Warehouse, moment: datetime) -> bool:
        """Tell whether a moment is still to come, so that the clock it is from was wrong."""
        return moment > self.reached(warehouse)

    def undisputed_now(self, committed_at: datetime | None = None) -> datetime | None:
        """Return a moment that this machine's clock and the storage's have both reached.

        What is too old is removed for good, so it is not measured by a clock that may be ahead of
        the one that dated it. The newest commits show how far that one has come: that of the state
        table, and another one if it is given. None if there is none.
        """
        commits = [moment for moment in (self.known.written_at, committed_at) if moment]
        return min(self.data_timestamp, max(commits)) if commits else None

    def _tell_of_the_future(self, warehouse: Warehouse, table: TableName) -> None:
        """Warn, once for each table, that its newest commits are dated ahead of now."""
        newest = self.catalog.history(warehouse, table)[:1]
        if table in self._told_of or not newest:
            return
        [commit], now = newest, warehouse.now()
        if not self.is_ahead(warehouse, commit.timestamp):
            return
        ahead = format_duration(commit.timestamp - now)
        with self._guard:
            self._told_of.add(table)
            self._warnings.append(
                f"{table} has commits from the future: version {commit.version} is dated "
                f"{stamp(commit.timestamp)}, {ahead} ahead of this machine's clock. Refreshes at "
                "the time of the run read its newest version; older cuts, and points in time that "
                "are given by date, cannot tell when it was committed and read what was there "
                "before. Set the clock of the machine that writes it, or of this one."
            )

    def take_warnings(self) -> list[str]:
        """Return what the user has to hear of the clocks, each once."""
        with self._guard:
            found, self._warnings = self._warnings, []
        return found

    def same_rows(self, warehouse: Warehouse, old: Pin, new: Pin) -> bool:
        """Tell whether a source holds the same rows at two pins of one log."""
        if old.log != new.log or not all(self.is_same_log(warehouse, pin) for pin in (old, new)):
            return False
        first, second = sorted((old.version, new.version))
        if first == second:
            return True
        with self._lock(old.table):
            key = (old.table, first, second)
            if key not in self._same:
                self._same[key] = self._compare(warehouse, *key)
            return self._same[key]

    def _compare(self, warehouse: Warehouse, table: TableName, old: int, new: int) -> bool:
        history = self.catalog.history(warehouse, table, since=old)
        commits = between(history, old, new)
        if commits is None:
            return False
        changed = history_says(commits)
        if changed is False and touches_columns(commits):
            return same_columns(warehouse, table, old, new)
        if changed is not None:
            return not changed
        counts = row_count(history, old), row_count(history, new)
        if None not in counts and counts[0] != counts[1]:
            return False
        if any(replaces_all(commit) for commit in commits):
            return same_rows(warehouse, table, old, new)
        if net_rows(commits) not in (None, 0):
            return False
        relation = self.catalog.relation(warehouse, table)
        return same_rows(warehouse, table, old, new, relation is not None and relation.has_feed)

    def rows(
        self, warehouse: Warehouse, table: TableName, version: int, record: Record | None = None
    ) -> int:
        """Return how many rows a version has: from history, else from Delta's statistics.

        History goes back to a version that a record knows the number of, if one is given.
        """
        with self._lock(table):
            key = (table, version)
            if key not in self._rows:
                history = self.catalog.history(warehouse, table)
                before = record.rows.get(str(table)) if record else None
                known = row_count(history, version, before)
                if known is None:
                    select = f"SELECT count(*) AS n FROM {table.sql} VERSION AS OF {version}"
                    known = int(warehouse.rows(select)[0]["n"])
                self._rows[key] = known
            return self._rows[key]

    def rows_if_known(self, table: TableName, version: int) -> int | None:
        """Return how many rows a version has, if somebody has asked."""
        with self._lock(table):
            return self._rows.get((table, version))

    def is_same_log(self, warehouse: Warehouse, pin: Pin) -> bool:
        """Tell whether the commit that a pin names is still the one at its version."""
        commit = self.commit_at(warehouse, pin.table, pin.version)
        return commit is not None and commit.timestamp == pin.committed_at

    def commit_at(self, warehouse: Warehouse, table: TableName, version: int) -> Commit | None:
        """Return one commit of a table, if its history still has it."""
        commits = self.catalog.history(warehouse, table, since=version)
        return next((commit for commit in commits if commit.version == version), None)

    def _lock(self, table: TableName) -> threading.RLock:
        with self._guard:
            return self._locks.setdefault(table, threading.RLock())


def _about_data_timestamps(known: KnownState, believed: KnownState, now: datetime) -> list[str]:
    """Return what the user has to hear if data timestamps are not believed."""
    newest = known.newest_timestamp
    if newest is None or newest == believed.newest_timestamp:
        return []
    return [
        f"The newest data timestamp is {stamp(newest)}, {format_duration(newest - now)} ahead of "
        "this machine's clock, so the clock of another run or of this one is wrong. Data "
        "timestamps from the future do not count: tables that have no other are due, and are "
        "dated by this clock."
    ]
