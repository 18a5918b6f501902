"""redo_log: what each commit did to the rows of a query, in the order of the commits."""

from collections.abc import Sequence
from datetime import datetime

from spark_dynamic.changes.asked import Position
from spark_dynamic.changes.columns import DIFF, TABLE, TIMESTAMP, VERSION
from spark_dynamic.changes.contents import difference
from spark_dynamic.changes.interval import Kind
from spark_dynamic.changes.layout import NET
from spark_dynamic.changes.min_delta import delta_of, nothing
from spark_dynamic.changes.question import Question
from spark_dynamic.changes.row_ids import carrying
from spark_dynamic.changes.states import Span, States, between, pin_of
from spark_dynamic.changes.steps import Moved, Step, check_count, steps_of, walked
from spark_dynamic.clock import micros
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.compare import FEED_WEIGHT
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName, quote
from spark_dynamic.plan.nodes import Output, Project, column
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.sql.write import LONGEST, WEIGHT
from spark_dynamic.warehouse import Warehouse

# Inside: the version that a changed row came with.
COMMIT = "__dyn_version"
_CHANGED = f"IF({NET} > 0, 1, -1)"
# Commits whose timestamps fit into one statement.
_MOST_IN_A_FEED = 5_000


def redo_log(question: Question, span: Span, cycle: Cycle, warehouse: Warehouse) -> str:
    """Return the effects of all commits between two positions."""
    steps = steps_of(span, cycle, warehouse)
    once = _from_one_feed(question, span, steps)
    if once:
        return once
    check_count(steps, "redo_log")
    parts = [
        _effect(question, span, moved, cycle, warehouse)
        for moved in walked(question, span, steps, cycle, warehouse)
    ]
    sql = "\nUNION ALL\n".join(part for part in parts if part)
    if not sql:
        none = "CAST(NULL AS string)", "CAST(NULL AS bigint)", "CAST(NULL AS timestamp)"
        more = order_columns(*none, "1")
        return nothing(question, span, cycle, warehouse, more)
    if len(sql) > LONGEST:
        raise EngineError(
            "TOO_MANY_COMMITS",
            f"redo_log goes through this query commit by commit, and the {len(steps)} commits of "
            f"the interval make a statement of {len(sql):,} characters, which Spark would plan "
            "for minutes. Ask for a shorter interval, or for min_delta.",
        )
    return sql


def order_columns(table: str, version: str, timestamp: str, diff: str) -> list[str]:
    """Return the columns that put changes in order: by timestamp, table and version."""
    columns = {TABLE: table, VERSION: version, TIMESTAMP: timestamp, DIFF: diff}
    return [f"{sql} AS {name}" for name, sql in columns.items()]


def in_front(question: Question, position: Position) -> Sequence[str]:
    """Return those columns for rows that were there already: of the newest commit by then."""
    pins = [pin_of(table, position) for table in question.analysis.tables()]
    newest = max(pins, key=lambda pin: (pin.committed_at, str(pin.table), pin.version))
    return order_columns(*_commit(newest.table, newest.version, newest.committed_at), "1")


def _commit(table: TableName, version: int, moment: datetime) -> tuple[str, str, str]:
    return literal(str(table)), f"{version}L", _moment(moment)


def _moment(moment: datetime) -> str:
    return f"timestamp_micros({micros(moment)}L)"


def _effect(
    question: Question, span: Span, moved: Moved, cycle: Cycle, warehouse: Warehouse
) -> str:
    """Return what one commit did; "" if it cannot have done anything."""
    step, layout = moved.step, question.layout
    places = _commit(step.table, step.version, step.timestamp)
    if question.plan is not None:
        delta = delta_of(question.plan, moved.states(question))
        if delta is None:
            return ""
        if not delta.is_too_much and delta.only_adds:
            return layout.added(delta.sql, more=order_columns(*places, "1"))
        if not delta.is_too_much and delta.only_removes:
            return layout.removed(delta.sql, more=order_columns(*places, "-1"))
        if not delta.is_too_much:
            more = order_columns(*places, _CHANGED)
            return layout.net(delta.sql, more=more, is_net=delta.is_net)
    rows = difference(question, moved.before, moved.after, cycle, warehouse)
    return layout.net(rows, more=order_columns(*places, _CHANGED), shape="DIFFERENCE")


def _from_one_feed(question: Question, span: Span, steps: list[Step]) -> str:
    """Read the change feed of a query's only source once; "" where that is not enough."""
    tables = question.analysis.tables()
    kinds = {step.interval.kind for step in steps}
    if question.plan is None or len(tables) != 1 or not kinds or Kind.REWRITE in kinds:
        return ""
    [(table, interval)] = span.intervals.items()
    carried = carrying(question.plan, COMMIT, "bigint")
    if carried is None or interval.new - interval.old > _MOST_IN_A_FEED:
        return ""
    plan, id = carried
    outputs = [Output(name, column(name)) for name in question.plan.columns]
    whole = Project(plan, (*outputs, Output(COMMIT, column(id))))
    states = between(question, span)
    names = ", ".join(quote(known.name) for known in states.columns(table))
    only_adds = kinds == {Kind.INSERTS}
    weight = "1" if only_adds else FEED_WEIGHT
    shown = f"{names}, _commit_version AS {COMMIT}, {weight} AS {WEIGHT}"
    rows = f"SELECT {shown} FROM {interval.feed}"
    states = States(whole, states.after, span.intervals, deltas={table: rows})
    delta = delta_of(whole, states)
    if delta is None or delta.is_too_much:
        return ""
    stamps = {step.version: micros(step.timestamp) for step in steps}
    every = range(interval.old + 1, interval.new + 1)
    known = ", ".join(f"{stamps.get(version, 0)}L" for version in every)
    place = f"CAST({COMMIT} - {interval.old} AS int)"
    timestamp = f"timestamp_micros(element_at(array({known}), {place}))"
    places = literal(str(table)), COMMIT, timestamp
    if only_adds:
        return question.layout.added(delta.sql, (COMMIT,), order_columns(*places, "1"))
    if all(step.interval.only_removes for step in steps):
        return question.layout.removed(delta.sql, (COMMIT,), order_columns(*places, "-1"))
    return question.layout.net(delta.sql, (COMMIT,), order_columns(*places, _CHANGED))
