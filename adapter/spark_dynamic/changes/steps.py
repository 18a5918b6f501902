"""The commits of an interval one by one, in one order for all sources."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from spark_dynamic.changes.asked import Position
from spark_dynamic.changes.feed_reach import feed_begins
from spark_dynamic.changes.interval import (
    Interval,
    Kind,
    in_parts,
    kind_of,
    only_removes,
    turns_feed,
)
from spark_dynamic.changes.kept import check_kept_rows, lost
from spark_dynamic.changes.question import Question
from spark_dynamic.changes.states import Span, States, pin_of, version_sql
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.history import between, changes_rows
from spark_dynamic.frontier.record import Pin
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse

MOST = 200


@dataclass(frozen=True)
class Step:
    """One commit of one source."""

    interval: Interval
    timestamp: datetime

    @property
    def table(self) -> TableName:
        """The source."""
        return self.interval.table

    @property
    def version(self) -> int:
        """The version that the commit made."""
        return self.interval.new


def steps_of(span: Span, cycle: Cycle, warehouse: Warehouse) -> list[Step]:
    """Return the commits that changed rows, by commit timestamp, table name and version."""
    found: list[Step] = []
    for table, whole in span.intervals.items():
        if whole.old_table is not None:
            # What happened to the generations in between is not known; their difference is.
            found.append(Step(whole, pin_of(table, span.end).committed_at))
            continue
        history = cycle.catalog.history(warehouse, table, since=whole.old)
        commits = between(history, whole.old, whole.new)
        if commits is None:
            raise lost(span.then(table))
        relation = cycle.catalog.relation(warehouse, table)
        has_feed = relation is not None and relation.has_feed
        begin = max((c.version for c in commits if turns_feed(c)), default=whole.old)
        if has_feed:
            begin = max(begin, feed_begins(table, whole.old, cycle, warehouse))
        for commit in commits:
            if changes_rows(commit):
                is_shown = has_feed and commit.version > begin
                kind = kind_of([commit], is_shown)
                own = replace(
                    whole,
                    old=commit.version - 1,
                    new=commit.version,
                    kind=kind,
                    only_removes=kind is Kind.CHANGES and only_removes([commit]),
                    in_parts=in_parts([commit], is_shown),
                )
                found.append(Step(own, commit.timestamp))
    return sorted(found, key=lambda step: (step.timestamp, str(step.table), step.version))


def check_count(steps: list[Step], mode: str) -> None:
    """Refuse more commits than can be computed one by one."""
    if len(steps) > MOST:
        raise EngineError(
            "TOO_MANY_COMMITS",
            f"{mode} goes through this query commit by commit, and the interval has {len(steps)} "
            f"of them; at most {MOST} are possible. Ask for a shorter interval, or for min_delta.",
        )


@dataclass(frozen=True)
class Moved:
    """A step with the positions before and after it."""

    step: Step
    before: Position
    after: Position

    def states(self, question: Question) -> States:
        """Return the states of all sources around the step."""
        assert question.plan is not None
        table = self.step.table
        after = {t: version_sql(pin_of(t, self.after)) for t in question.analysis.tables()}
        return States(question.plan, after, {table: self.step.interval})


def walked(
    question: Question, span: Span, steps: list[Step], cycle: Cycle, warehouse: Warehouse
) -> Iterator[Moved]:
    """Go from the start to the end of a span, one step at a time."""
    position = {table: span.then(table) for table in question.analysis.tables()}
    if len(position) > 1:
        # While one source moves, the others are read where they stand.
        for pin in position.values():
            check_kept_rows(pin, cycle, warehouse)
    for step in steps:
        log = pin_of(step.table, span.end).log
        pin = Pin(step.table, log, step.version, step.timestamp)
        after = {**position, step.table: pin}
        yield Moved(step, position, after)
        position = after


def feed_runs(steps: list[Step]) -> list[Interval]:
    """Return the steps of one source with those made one that the change feed shows together."""
    runs: list[Interval] = []
    for step in sorted(steps, key=lambda step: step.version):
        last = runs[-1] if runs else None
        own = step.interval
        if last is not None and Kind.REWRITE not in (last.kind, own.kind):
            inserts = last.kind is own.kind is Kind.INSERTS
            kind = Kind.INSERTS if inserts else Kind.CHANGES
            removes = last.only_removes and own.only_removes
            runs[-1] = replace(own, old=last.old, kind=kind, only_removes=removes)
        else:
            runs.append(own)
    return runs
