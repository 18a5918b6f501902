"""Where the rows of each source are read: at two positions, and what lies between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spark_dynamic.changes.asked import Position
from spark_dynamic.changes.interval import Interval, Kind, only_removes
from spark_dynamic.changes.kept import check_kept_rows, lasting, lost
from spark_dynamic.changes.question import Question
from spark_dynamic.changes.used_columns import check_columns
from spark_dynamic.delta.facts import Changes, Facts
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.history import between as commits_between
from spark_dynamic.frontier.history import records, rows_changed
from spark_dynamic.frontier.record import Pin
from spark_dynamic.names import TableName, quote
from spark_dynamic.plan.nodes import Plan, State, fields_of
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.sources import Seen, interval_between, is_comparable
from spark_dynamic.sql.write import WEIGHT, Relation
from spark_dynamic.support import reason
from spark_dynamic.warehouse import Column, Warehouse

# So many changed rows are a few dozen megabytes at most, unless they are very wide.
_SMALL = 50_000


@dataclass(frozen=True)
class States:
    """The sources of a plan before and after some changes."""

    plan: Plan
    # Where each source is read after the changes.
    after: Mapping[TableName, str]
    intervals: Mapping[TableName, Interval]
    # What stands for the changes of a source, if not its interval.
    deltas: Mapping[TableName, str] = field(default_factory=dict)
    # Whether all of those have the weight 1.
    deltas_only_add: bool = False
    # Whether changes are read as net wherever they can be: copies are then one row.
    is_net: bool = False

    def facts(self) -> Facts:
        """Return what is known about the changes."""
        return {
            table: Changes(self.deltas_only_add)
            if table in self.deltas
            else Changes(
                interval.kind is Kind.INSERTS,
                delete_only=interval.only_removes,
                net_by=interval.net_by(self.columns(table)),
            )
            for table, interval in self.intervals.items()
        }

    def relation(self, table: TableName, state: State) -> Relation:
        """Return what a scan of a source reads."""
        after = self.after[table]
        if state is State.NEW:
            return Relation(after)
        interval = self.intervals[table]
        if state is State.OLD and table not in self.deltas:
            return Relation(interval.before)
        columns = self.columns(table)
        delta = f"(\n{self.deltas.get(table) or interval.rows(columns, self.is_net)}\n)"
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

    def then(self, table: TableName) -> Pin:
        """Return where a source stood at the start, maybe in an older generation."""
        return pin_of(table, self.start)


def span(
    question: Question, start: Position, end: Position, cycle: Cycle, warehouse: Warehouse
) -> Span:
    """Find what lies between two positions. Raises EngineError if it cannot be known."""
    found: dict[TableName, Interval] = {}
    tables = sorted(question.analysis.tables(), key=str)
    olds, news = ({table: pin_of(table, at) for table in tables} for at in (start, end))
    for pins in (olds, news):
        for pin in pins.values():
            _check_log(pin, cycle, warehouse)
        check_columns(question, pins, cycle, warehouse)
    for table in tables:
        old, new = olds[table], news[table]
        if old.table == new.table:
            new = lasting(new, cycle, warehouse)
            old = lasting(old, cycle, warehouse, until=new.version)
            olds[table], news[table] = old, new
        interval = _interval(question, old, new, cycle, warehouse)
        if interval is not None:
            found[table] = interval
            check_kept_rows(old, cycle, warehouse)
        # Without a change either version can be read.
        check_kept_rows(new, cycle, warehouse)
    return Span(olds, news, found)


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
        history = cycle.catalog.history(warehouse, new.table, since=old.version)
        commits = commits_between(history, old.version, new.version) or []
        rows = rows_changed(commits)
        return found and replace(
            found,
            location=new.log,
            is_small=rows is not None and rows <= _SMALL,
            only_removes=found.kind is Kind.CHANGES and only_removes(commits),
        )
    _check_generations(question, old, new, cycle, warehouse)
    return Interval(new.table, old.version, new.version, Kind.REWRITE, old.table)


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
        raise EngineError.of(reason("UPSTREAM_REBUILT", str(new.table)))


def _check_log(pin: Pin, cycle: Cycle, warehouse: Warehouse) -> None:
    """Refuse a pin whose commit is gone, or is another one by now."""
    commit = cycle.commit_at(warehouse, pin.table, pin.version)
    if commit is not None and commit.timestamp == pin.committed_at:
        return
    newest = cycle.catalog.history(warehouse, pin.table)[0].version
    if commit is None and pin.version <= newest:
        raise lost(pin)
    raise EngineError.of(reason("SOURCE_REPLACED", str(pin.table)))


def between(question: Question, span: Span) -> States:
    """Return the states of all sources at both ends of a span."""
    assert question.plan is not None
    after = {table: version_sql(pin_of(table, span.end)) for table in question.analysis.tables()}
    return States(question.plan, after, span.intervals)


def version_sql(pin: Pin) -> str:
    """Return a table at a version, as it stands in a query."""
    return f"{pin.table.sql} VERSION AS OF {pin.version}"
