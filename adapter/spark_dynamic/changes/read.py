"""What changed in a table, a view or a query between two positions, as a SELECT."""

from spark_dynamic.changes.append_only import append_only, check_monotonic
from spark_dynamic.changes.asked import ChangeRead, Mode, Position
from spark_dynamic.changes.contents import contents
from spark_dynamic.changes.min_delta import min_delta
from spark_dynamic.changes.points import position_at
from spark_dynamic.changes.question import Question, ask
from spark_dynamic.changes.redo_log import in_front, redo_log
from spark_dynamic.changes.states import Span, span
from spark_dynamic.changes.upserts import upserts
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.failures import faults_reported
from spark_dynamic.warehouse import Warehouse

__all__ = ["ChangeRead", "Mode", "Position", "change_select", "changes_of", "position_now"]

_OF_MODE = {
    Mode.MIN_DELTA: min_delta,
    Mode.APPEND_ONLY: append_only,
    Mode.REDO_LOG: redo_log,
}


def position_now(read: ChangeRead, cycle: Cycle, warehouse: Warehouse) -> Position:
    """Return where the cycle's cut reads every table of a query."""
    return position_at(read, cycle.data_timestamp, cycle, warehouse)


def change_select(
    read: ChangeRead,
    start: Position | None,
    end: Position,
    cycle: Cycle,
    warehouse: Warehouse,
    initial_rows: bool = False,
) -> str:
    """Return a SELECT of the query's columns and the change columns.

    Without a start it shows the contents at the end as inserts; with `initial_rows` those at
    the start come in front.
    """
    with faults_reported(warehouse) as own:
        return _select(read, start, end, cycle, own, initial_rows)


def _select(
    read: ChangeRead,
    start: Position | None,
    end: Position,
    cycle: Cycle,
    warehouse: Warehouse,
    initial_rows: bool,
) -> str:
    question = ask(read, cycle, warehouse)
    if read.mode is Mode.APPEND_ONLY:
        check_monotonic(question)
    if start is None:
        return _as_inserts(question, end, cycle, warehouse)
    changes = changes_of(question, span(question, start, end, cycle, warehouse), cycle, warehouse)
    if not initial_rows:
        return changes
    return f"{_as_inserts(question, start, cycle, warehouse)}\nUNION ALL\n{changes}"


def changes_of(question: Question, between: Span, cycle: Cycle, warehouse: Warehouse) -> str:
    """Return the changes between two positions, in the mode that is asked for."""
    changes = _OF_MODE[question.read.mode](question, between, cycle, warehouse)
    return upserts(question, between, changes) if question.read.upserts else changes


def _as_inserts(question: Question, position: Position, cycle: Cycle, warehouse: Warehouse) -> str:
    rows = contents(question, position, cycle, warehouse)
    more = in_front(question, position) if question.read.mode is Mode.REDO_LOG else ()
    return question.layout.added(rows, more=more, shape="INITIAL_ROWS")
