"""Where the rows of each source are read: at two positions, and what lies between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from spark_dynamic.changes.asked import Position
from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.changes.question import Question
from spark_dynamic.changes.retention import readable_since
from spark_dynamic.delta.facts import Changes, Facts
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.compare import same_columns, touches_columns
from spark_dynamic.frontier.history import between as commits_between
from spark_dynamic.frontier.history import records, replaces_all, rows_changed
from spark_dynamic.frontier.record import Pin
from spark_dynamic.names import TableName, quote
from spark_dynamic.plan.nodes import Plan, State, fields_of
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.sources import Seen, interval_between, is_comparable
from spark_dynamic.sql.write import WEIGHT, Relation
from spark_dynamic.support import reason
from spark_dynamic.warehouse import Column, Commit, Warehouse

# Some time passes until a statement runs.
_MARGIN = timedelta(hours=1)
# So many changed rows are a few dozen megabytes at most, unless they are very wide.
_SMALL = 50_000


@dataclass(frozen=True)
class States:
    """The sources of a plan before and after some changes."""

    plan: Plan
    # Where each source is read after the changes.
    after: Mapping[TableName, str]
    intervals: Mapping[TableName, Interval]
    # Sources whose state before the changes can no longer be read by time travel.
    beyond_travel: frozenset[TableName] = frozenset()
    # What stands for the changes of a source, if not its interval.
    deltas: Mapping[TableName, str] = field(default_factory=dict)
    # Whether all of those have the weight 1.
    deltas_only_add: bool = False

    def facts(self) -> Facts:
        """Return what is known about the changes."""
        return {
            table: Changes(
                self.deltas_only_add if table in self.deltas else interval.kind is Kind.INSERTS
            )
            for table, interval in self.intervals.items()
        }

    def relation(self, table: TableName, state: State) -> Relation:
        """Return what a scan of a source reads."""
        after = self.after[table]
        if state is State.NEW:
            return Relation(after)
        interval = self.intervals[table]
        if state is State.OLD and table not in (*self.beyond_travel, *self.deltas):
            return Relation(interval.before)
        columns = self.columns(table)
        delta = f"(\n{self.deltas.get(table) or interval.rows(columns)}\n)"
        if state is State.DELTA:
            return Relation(delta, True)
        names = ", ".join(quote(column.name) for column in columns)
        return Relation(
            f"(SELECT {names}, 1 AS {WEIGHT} FROM {after} "
            f"UNION ALL SELECT {names}, -{WEIGHT} AS {WEIGHT} FROM {delta})",
            True,
        )

    def columns(self, table: TableName) -> list[Column]:
        """Return the columns of a source that the plan uses."""
        used = fields_of(self.plan, table)
        return [Column(one.name, one.type) for one in used.values()]


@dataclass(frozen=True)
class Span:
    """Two positions of a question, and the intervals between them."""

    start: Position
    end: Position
    intervals: Mapping[TableName, Interval]
    beyond_travel: frozenset[TableName]

    def then(self, table: TableName) -> Pin:
        """Return where a source stood at the start, maybe in an older generation."""
        return pin_of(table, self.start)


def span(
    question: Question, start: Position, end: Position, cycle: Cycle, warehouse: Warehouse
) -> Span:
    """Find what lies between two positions. Raises EngineError if it cannot be known."""
    found: dict[TableName, Interval] = {}
    beyond: set[TableName] = set()
    for table in sorted(question.analysis.tables(), key=str):
        old, new = pin_of(table, start), pin_of(table, end)
        for pin in (old, new):
            _check_log(pin, cycle, warehouse)
        interval = _interval(question, old, new, cycle, warehouse)
        if interval is None:
            # The same rows, so either version can be read.
            check_readable(new, cycle, warehouse)
            continue
        found[table] = interval
        check_readable(new, cycle, warehouse)
        if not _is_readable(old, cycle, warehouse):
            beyond.add(table)
            if interval.kind is Kind.REWRITE:
                check_readable(old, cycle, warehouse)
    return Span(start, end, found, frozenset(beyond))


def pin_of(table: TableName, position: Position) -> Pin:
    """Return a source's pin; that of an older generation if a dynamic table was built anew."""
    if table in position:
        return position[table]
    stem = table.name.rpartition("__dyn")[0]
    same = [p for t, p in position.items() if stem and t.name.rpartition("__dyn")[0] == stem]
    if len(same) == 1 and same[0].table.sibling(table.name) == table:
        return same[0]
    raise EngineError(
        "POSITION_INCOMPLETE",
        f"The position has no version of {table}: the query read other tables when it was taken.",
    )


def _interval(
    question: Question, old: Pin, new: Pin, cycle: Cycle, warehouse: Warehouse
) -> Interval | None:
    if old.table == new.table:
        if new.version < old.version:
            raise EngineError(
                "POINTS_REVERSED",
                f"The end is before the start: {new.table} would go from version {old.version} "
                f"back to {new.version}. Swap them.",
            )
        found = interval_between(new.table, old.version, new.version, cycle, warehouse)
        commits = _check_columns(old, new, cycle, warehouse)
        rows = rows_changed(commits)
        is_small = rows is not None and rows <= _SMALL
        return found and replace(found, location=new.log, is_small=is_small)
    _check_generations(question, old, new, cycle, warehouse)
    return Interval(new.table, old.version, new.version, Kind.REWRITE, old.table)


def _check_columns(old: Pin, new: Pin, cycle: Cycle, warehouse: Warehouse) -> list[Commit]:
    """Return the commits of an interval, unless the table got other columns in it.

    Its ends could not be compared then.
    """
    history = cycle.catalog.history(warehouse, new.table, since=old.version)
    commits = commits_between(history, old.version, new.version) or []
    if not touches_columns(commits) and not any(replaces_all(commit) for commit in commits):
        return commits
    if not same_columns(warehouse, new.table, old.version, new.version):
        raise EngineError(
            "COLUMNS_CHANGED",
            f"{new.table} has other columns at version {new.version} than at {old.version}, or "
            "one of them can no longer be read, so what changed between them cannot be told. Ask "
            "for an interval before or after the columns changed.",
        )
    return commits


def _check_generations(
    question: Question, old: Pin, new: Pin, cycle: Cycle, warehouse: Warehouse
) -> None:
    """Refuse two generations of a dynamic table whose columns do not mean the same."""
    used = fields_of(question.plan, new.table).keys() if question.plan else set()
    taken = [
        next((r for r in found if r.commit.version == pin.version), None)
        for pin in (old, new)
        for found in [records(cycle.catalog.history(warehouse, pin.table, since=0))]
    ]
    before, after = taken
    comparable = before and after and is_comparable(Seen(old.table, before), after, set(used))
    if question.plan is None or not comparable:
        raise EngineError("UPSTREAM_REBUILT", reason("UPSTREAM_REBUILT", str(new.table)).sentence)


def _check_log(pin: Pin, cycle: Cycle, warehouse: Warehouse) -> None:
    """Refuse a pin whose commit is gone, or is another one by now."""
    commit = cycle.commit_at(warehouse, pin.table, pin.version)
    if commit is not None and commit.timestamp == pin.committed_at:
        return
    newest = cycle.catalog.history(warehouse, pin.table)[0].version
    if commit is None and pin.version <= newest:
        raise lost(pin)
    raise EngineError("SOURCE_REPLACED", reason("SOURCE_REPLACED", str(pin.table)).sentence)


def _is_readable(pin: Pin, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Tell whether Delta still lets a version be read; the newest one it always does."""
    if cycle.catalog.history(warehouse, pin.table)[0].version == pin.version:
        return True
    relation = cycle.catalog.relation(warehouse, pin.table)
    return pin.committed_at > readable_since(relation, cycle.data_timestamp) + _MARGIN


def check_readable(pin: Pin, cycle: Cycle, warehouse: Warehouse) -> None:
    """Refuse a version that Delta no longer lets be read."""
    if not _is_readable(pin, cycle, warehouse):
        raise lost(pin)


def lost(pin: Pin) -> EngineError:
    """Return the error of a version that is gone."""
    return EngineError(
        "HISTORY_LOST",
        f"Version {pin.version} of {pin.table} can no longer be read. Ask for a later point, or "
        "keep more history: raise its delta.deletedFileRetentionDuration and "
        "delta.logRetentionDuration.",
    )


def between(question: Question, span: Span) -> States:
    """Return the states of all sources at both ends of a span."""
    assert question.plan is not None
    after = {table: version_sql(pin_of(table, span.end)) for table in question.analysis.tables()}
    return States(question.plan, after, span.intervals, span.beyond_travel)


def version_sql(pin: Pin) -> str:
    """Return a table at a version, as it stands in a query."""
    return f"{pin.table.sql} VERSION AS OF {pin.version}"
