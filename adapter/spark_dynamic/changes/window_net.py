"""What a window of net changes, or of first-time inserts, holds: what a change query would show.

At a cut it holds what `changes(…, since=the cut's moment minus the interval)` shows there. That is
computed as a whole when the window is built. Net changes are the rows at the end minus those at
the beginning, so later on only what happened at both ends since then is read. That takes rows that
are the same whenever they are computed; sums of floating-point numbers are not, nor may be those
of a query without a plan. First-time inserts are the same as net changes as long as rows are only
inserted; else a row can be new again as soon as its first insert is too old. Where changes do not
add up, all of them are computed anew, and compared with those that are stored.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from spark_dynamic.apply.net_slide import NetSlide
from spark_dynamic.apply.storage import view_query
from spark_dynamic.changes.append_only import check_monotonic
from spark_dynamic.changes.asked import STRICT, Mode, Position
from spark_dynamic.changes.columns import ALWAYS
from spark_dynamic.changes.interval import Kind
from spark_dynamic.changes.kept import HISTORY_LOST
from spark_dynamic.changes.points import Asking, at_moment
from spark_dynamic.changes.question import Question, ask
from spark_dynamic.changes.read import changes_of
from spark_dynamic.changes.states import Span, span
from spark_dynamic.changes.used_columns import COLUMNS_CHANGED
from spark_dynamic.changes.window import Window
from spark_dynamic.changes.window_ends import (
    check_stored_columns,
    columns_since,
    end_at,
    end_of,
)
from spark_dynamic.duration import format_duration
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.cut import Cut, is_same_commit
from spark_dynamic.frontier.history import changes_rows, records
from spark_dynamic.frontier.record import Record, read_pin, write_pin
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.stored import Stored
from spark_dynamic.warehouse import Commit, Warehouse


class WindowNet:
    """The net changes, or the first-time inserts, of one window up to a cut."""

    def __init__(
        self, window: Window, analysis: Analysis, cut: Cut, cycle: Cycle, warehouse: Warehouse
    ) -> None:
        self._window = window
        self._analysis = analysis
        self._cut = cut
        self._cycle = cycle
        self._warehouse = warehouse
        self._end = end_at(cut, analysis, cycle, warehouse)
        # Where this moment left the tables, the window begins.
        self.oldest = cut.data_timestamp - window.interval

    def whole(self) -> tuple[str, NetSlide]:
        """Return all that the window holds, and how it stands then."""
        question, start = self._question(), self._start()
        standing = self._standing(start, self._events(start))
        return self._changes(question, self._span(question, start)), standing

    def whole_of(self, record: Record) -> str:
        """Return all that the window of a record should hold, if history still tells."""
        question = self._question()
        return self._changes(question, self._span(question, _start_of(record)))

    def slide(self, record: Record, stored: Stored) -> NetSlide:
        """Return how the window moves from where a record has left it.

        Raises EngineError if what happened since cannot be told.
        """
        before = end_of(record, self._analysis, self._cycle, self._warehouse)
        begun = _start_of(record)
        is_quiet = _same(before, self._end) and not self._analysis.upstreams
        if is_quiet and record.holds_at(self._cut.data_timestamp):
            return replace(self._standing(begun, ()), holds_until=record.clock_until)
        # What has come since the record may be too old already.
        start = self._start()
        standing = self._standing(start, self._events(start))
        if _same(before, self._end) and _same(begun, start):
            return standing
        question = self._question()
        check_stored_columns(record, question.layout.columns, len(ALWAYS))
        standing = replace(standing, layout=question.layout)
        came = self._span(question, before)
        went = self._gone(question, begun, start)
        if went is not None and not came.intervals and not went.intervals:
            return standing
        if went is None or not self._adds_up(question, begun):
            now = self._changes(question, self._span(question, start))
            then = view_query(record.columns, stored.storage, version=stored.version)
            return replace(standing, added=(now,), removed=(then,))
        return replace(
            standing,
            added=(self._changes(question, came),) if came.intervals else (),
            removed=(self._changes(question, went),) if went.intervals else (),
        )

    def _gone(self, question: Question, begun: Position, start: Position) -> Span | None:
        """Return what has left the window at its beginning; None if that cannot be told."""
        if _is_before(start, begun):
            return None
        try:
            return self._span(question, begun, start)
        except EngineError as error:
            if error.code != HISTORY_LOST:
                raise
            return None

    def _adds_up(self, question: Question, begun: Position) -> bool:
        """Tell whether changes one after the other show what they show together."""
        if not question.is_exact:
            # A row that is computed twice may not be the same row.
            return False
        if question.read.mode is Mode.MIN_DELTA:
            return True
        found = self._span(question, begun).intervals.values()
        return all(interval.kind is Kind.INSERTS for interval in found)

    def _question(self) -> Question:
        question = ask(self._window.read, self._cycle, self._warehouse)
        if question.read.mode is Mode.APPEND_ONLY:
            check_monotonic(question)
        return question

    def _changes(self, question: Question, between: Span) -> str:
        return changes_of(question, between, self._cycle, self._warehouse)

    def _span(self, question: Question, start: Position, end: Position | None = None) -> Span:
        return span(question, start, end or self._end, self._cycle, self._warehouse)

    def _start(self) -> Position:
        """Return where the window begins, by what histories say."""
        window = self._window
        asking = Asking("since", format_duration(window.interval), window.bound)
        start = self._at(asking, self.oldest)
        if window.bound == STRICT:
            return start
        question = self._question()
        try:
            self._span(question, start)
        except EngineError as error:
            if error.code != COLUMNS_CHANGED:
                raise
            # Columns are as they are now since then.
            changed = columns_since(question, self._end, self._cycle, self._warehouse)
            return self._at(asking, max(self.oldest, changed or self.oldest))
        return start

    def _at(self, asking: Asking, moment: datetime) -> Position:
        found = at_moment(asking, moment, self._window.read, self._cycle, self._warehouse)
        # A clock that was put back leaves a cut behind its own moment.
        return {
            table: min(pin, self._end[table], key=lambda pin: pin.version)
            for table, pin in found.items()
        }

    def _standing(self, start: Position, events: Iterable[datetime]) -> NetSlide:
        later = [moment for moment in events if moment > self.oldest]
        until = min(later) + self._window.interval if later else None
        return NetSlide(
            facts={"start": [write_pin(pin) for pin in start.values()]},
            only_inserts=self._window.read.mode is not Mode.MIN_DELTA,
            holds_until=until,
        )

    def _events(self, start: Position) -> Iterator[datetime]:
        """Yield the moments after the beginning at which it may move to another version."""
        for table in self._cut.pins:
            history = self._history(table, start)
            yield from (commit.timestamp for commit in history if changes_rows(commit))
        for upstream in self._analysis.upstreams:
            history = self._history(upstream.storage, start)
            yield from (found.record.data_timestamp for found in records(history))

    def _history(self, table: TableName, start: Position) -> Sequence[Commit]:
        """Return the commits after the beginning; what is behind other tables has none."""
        since = start[table].version if table in start else 0
        return self._cycle.catalog.history(self._warehouse, table, since=since)


def _start_of(record: Record) -> Position:
    pins: Iterable[dict[str, object]] = record.window.get("start", ())
    return {pin.table: pin for pin in map(read_pin, pins)}


def _same(one: Position, other: Position) -> bool:
    return one.keys() == other.keys() and all(is_same_commit(one[t], other[t]) for t in one)


def _is_before(one: Position, other: Position) -> bool:
    """Tell whether a position is behind another one in any table, or is one of other tables."""
    return one.keys() != other.keys() or any(one[t].version < other[t].version for t in one)
