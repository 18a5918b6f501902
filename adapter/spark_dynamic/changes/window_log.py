"""What a window of changes holds: a redo log, from a moment on.

At a cut a window holds the changes of all commits that are younger than its interval, in the
order of commit timestamp, table and version. That depends on the histories of the sources, on the
cut and on nothing else, so nobody can see from its rows whether a window was carried on or built
anew. For that, positions inside of it go by the times of commits alone; a dynamic table that is
read counts by the commits of its storage, not by its data timestamps.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from spark_dynamic.apply.slide import younger
from spark_dynamic.changes.asked import STRICT, Position
from spark_dynamic.changes.columns import ALWAYS, IN_ORDER
from spark_dynamic.changes.kept import available
from spark_dynamic.changes.points import Asking, pin_of_commit, too_old
from spark_dynamic.changes.question import ask
from spark_dynamic.changes.redo_log import redo_log
from spark_dynamic.changes.states import span
from spark_dynamic.changes.steps import Step, steps_of
from spark_dynamic.changes.used_columns import COLUMNS_CHANGED
from spark_dynamic.changes.window import Window
from spark_dynamic.changes.window_ends import (
    about,
    check_stored_columns,
    columns_since,
    end_at,
    end_of,
)
from spark_dynamic.clock import stamp
from spark_dynamic.duration import format_duration
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.cut import Cut, is_same_commit
from spark_dynamic.frontier.record import Pin, Record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse


@dataclass(frozen=True)
class Log:
    """Changes, and when the first of the commits was that may have made one."""

    select: str
    first: datetime | None
    # Changes after this moment are there.
    since: datetime


class WindowLog:
    """The changes of one window up to a cut."""

    def __init__(
        self, window: Window, analysis: Analysis, cut: Cut, cycle: Cycle, warehouse: Warehouse
    ) -> None:
        self._window = window
        self._analysis = analysis
        self._cycle = cycle
        self._warehouse = warehouse
        self._end = end_at(cut, analysis, cycle, warehouse)
        # Changes of this moment, and earlier ones, are not in the window.
        self.oldest = cut.data_timestamp - window.interval

    def whole(self) -> Log:
        """Return all changes of the window. Raises EngineError if history does not reach."""
        begin = self._begin(self.oldest)
        try:
            return replace(self._log(self._at(begin)), since=begin)
        except EngineError as error:
            if error.code != COLUMNS_CHANGED or self._window.bound == STRICT:
                raise
        # Columns are as they are now since then.
        question = ask(self._window.read, self._cycle, self._warehouse)
        changed = columns_since(question, self._end, self._cycle, self._warehouse)
        begin = max(begin, changed or begin)
        return replace(self._log(self._at(begin)), since=begin)

    def since(self, record: Record) -> Log:
        """Return the changes that came after those of a record.

        Raises EngineError if they do not simply follow them.
        """
        seen_then = end_of(record, self._analysis, self._cycle, self._warehouse)
        if all(is_same_commit(pin, self._end[table]) for table, pin in seen_then.items()):
            return Log("", None, record.data_timestamp)
        by_now: Position = {}
        if record.data_timestamp < self.oldest:
            # What is too old by now need not be read, and may be gone.
            by_now = self._at(self.oldest)
        start = {
            table: max(pin, by_now.get(table, pin), key=lambda pin: pin.version)
            for table, pin in seen_then.items()
        }
        return self._log(start, record, seen_then)

    def _log(
        self, start: Position, record: Record | None = None, seen_then: Position | None = None
    ) -> Log:
        question = ask(self._window.read, self._cycle, self._warehouse)
        if record is not None:
            added = len(ALWAYS) + len(IN_ORDER)
            check_stored_columns(record, question.layout.columns, added)
        found = span(question, start, self._end, self._cycle, self._warehouse)
        steps = steps_of(found, self._cycle, self._warehouse)
        fresh = [step for step in steps if step.timestamp > self.oldest]
        if seen_then is not None:
            _check_order(fresh, seen_then)
        select = redo_log(question, found, self._cycle, self._warehouse)
        if len(fresh) < len(steps):
            select = younger(select, self.oldest)
        first = min((step.timestamp for step in fresh), default=None)
        return Log(select, first, self.oldest)

    def _begin(self, moment: datetime) -> datetime:
        """Return the moment, or the earliest one that history reaches if that will do."""
        found = [
            (available(table, self._cycle, self._warehouse)[0], table)
            for table in sorted(self._end, key=str)
        ]
        earliest, table = max(found, key=lambda pair: pair[0])
        if moment >= earliest:
            return moment
        if self._window.bound == STRICT:
            asked = Asking("since", format_duration(self._window.interval))
            raise too_old(asked, f"{stamp(earliest)}, because of {table}")
        return earliest

    def _at(self, moment: datetime) -> Position:
        """Return where tables stood before their first commit after a moment, if that is kept."""
        found: dict[TableName, Pin] = {}
        for table, end in self._end.items():
            history = self._cycle.catalog.history(self._warehouse, table, since=0)
            later = [commit.version for commit in history if commit.timestamp > moment]
            version = min([end.version, *(version - 1 for version in later)])
            commit = next((c for c in history if c.version == version), None)
            if commit is not None:
                found[table] = pin_of_commit(table, commit, self._cycle, self._warehouse)
        return found


def _check_order(steps: Iterable[Step], seen_then: Position) -> None:
    """Refuse commits that belong before others whose effects are already known.

    What a commit did to a join depends on the commits before it.
    """
    if len(seen_then) < 2:
        return
    last = max((pin.committed_at, str(pin.table), pin.version) for pin in seen_then.values())
    for step in steps:
        if (step.timestamp, str(step.table), step.version) <= last:
            raise about("CHANGES_OUT_OF_ORDER", step.table)
