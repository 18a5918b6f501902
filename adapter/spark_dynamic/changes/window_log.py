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
from spark_dynamic.changes.kept import available, lost
from spark_dynamic.changes.points import Asking, pin_of_commit, too_old
from spark_dynamic.changes.question import ask
from spark_dynamic.changes.redo_log import redo_log
from spark_dynamic.changes.retention import readable_since
from spark_dynamic.changes.states import span
from spark_dynamic.changes.steps import Step, steps_of
from spark_dynamic.changes.used_columns import COLUMNS_CHANGED, misfits
from spark_dynamic.changes.window import Window
from spark_dynamic.clock import stamp
from spark_dynamic.duration import format_duration
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.compare import may_touch_columns
from spark_dynamic.frontier.cut import Cut, is_same_commit
from spark_dynamic.frontier.history import between
from spark_dynamic.frontier.record import Pin, Record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.sources import seen
from spark_dynamic.support import reason
from spark_dynamic.warehouse import Column, Warehouse


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
        self._end = self._position(cut)
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
        begin = max(begin, self._columns_changed())
        return replace(self._log(self._at(begin)), since=begin)

    def since(self, record: Record) -> Log:
        """Return the changes that came after those of a record.

        Raises EngineError if they do not simply follow them.
        """
        seen_then = self._recorded(record)
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
            _check_columns(record, question.layout.columns)
        found = span(question, start, self._end, self._cycle, self._warehouse)
        steps = steps_of(found, self._cycle, self._warehouse)
        fresh = [step for step in steps if step.timestamp > self.oldest]
        if seen_then is not None:
            _check_order(fresh, seen_then)
        self._check_kept(fresh, start)
        select = redo_log(question, found, self._cycle, self._warehouse)
        if len(fresh) < len(steps):
            select = younger(select, self.oldest)
        first = min((step.timestamp for step in fresh), default=None)
        return Log(select, first, self.oldest)

    def _check_kept(self, steps: Iterable[Step], start: Position) -> None:
        """Refuse commits whose files may be gone: Spark would find out in the middle."""
        for step in steps:
            relation = self._cycle.catalog.relation(self._warehouse, step.table)
            if step.timestamp <= readable_since(relation, self._cycle.data_timestamp):
                raise lost(start[step.table])

    # Positions

    def _position(self, cut: Cut) -> Position:
        """Return where a cut reads every table of the window."""
        found = {table: cut.pins[table] for table in self._analysis.bases}
        for upstream in self._analysis.upstreams:
            table = upstream.storage
            commit = cut.upstreams[table].commit
            found[table] = pin_of_commit(table, commit, self._cycle, self._warehouse)
        return found

    def _recorded(self, record: Record) -> Position:
        """Return where a record has read every table of the window."""
        found: dict[TableName, Pin] = {}
        for table in self._analysis.bases:
            pin = record.pin_of(table)
            if pin is None:
                raise _error("SOURCE_REPLACED", table)
            found[table] = pin
        for upstream in self._analysis.upstreams:
            then = seen(record, upstream, self._cycle, self._warehouse)
            if then is None or then.table != upstream.storage:
                # How it came from there to here is not known commit by commit.
                raise _error("UPSTREAM_REBUILT", upstream.view)
            commit = then.recorded.commit
            found[then.table] = pin_of_commit(then.table, commit, self._cycle, self._warehouse)
        return found

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

    def _columns_changed(self) -> datetime:
        """Return since when all tables of the window have had the columns that it uses."""
        question = ask(self._window.read, self._cycle, self._warehouse)
        moments = [self.oldest]
        for table, end in self._end.items():
            history = self._cycle.catalog.history(self._warehouse, table, since=0)
            for commit in between(history, history[-1].version, end.version) or []:
                if not may_touch_columns([commit]):
                    continue
                before = replace(end, version=commit.version - 1)
                if question.plan is None or misfits(question, before, self._warehouse):
                    moments.append(commit.timestamp)
                    break
        return max(moments)


def _check_columns(record: Record, columns: tuple[Column, ...]) -> None:
    """Refuse columns that are not those of the stored changes."""
    stored = tuple(Column(c.name, c.type) for c in record.columns[: len(columns)])
    if stored != columns or len(record.columns) != len(columns) + len(ALWAYS) + len(IN_ORDER):
        names = {column.name for column in stored} ^ {column.name for column in columns}
        why = reason("COLUMNS_CHANGED", ", ".join(sorted(names)) or "types or order")
        raise EngineError(why.code, why.sentence)


def _check_order(steps: Iterable[Step], seen_then: Position) -> None:
    """Refuse commits that belong before others whose effects are already known.

    What a commit did to a join depends on the commits before it.
    """
    if len(seen_then) < 2:
        return
    last = max((pin.committed_at, str(pin.table), pin.version) for pin in seen_then.values())
    for step in steps:
        if (step.timestamp, str(step.table), step.version) <= last:
            raise _error("CHANGES_OUT_OF_ORDER", step.table)


def _error(code: str, table: TableName) -> EngineError:
    return EngineError(code, reason(code, str(table)).sentence)
