"""Where windows of changes begin and end: by their cut, by a record, by the columns they use."""

from dataclasses import replace
from datetime import datetime

from spark_dynamic.changes.asked import Position
from spark_dynamic.changes.points import pin_of_commit
from spark_dynamic.changes.question import Question
from spark_dynamic.changes.used_columns import misfits
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.compare import may_touch_columns
from spark_dynamic.frontier.cut import Cut
from spark_dynamic.frontier.history import between
from spark_dynamic.frontier.record import Pin, Record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.sources import seen
from spark_dynamic.support import reason
from spark_dynamic.warehouse import Column, Warehouse


def end_at(cut: Cut, analysis: Analysis, cycle: Cycle, warehouse: Warehouse) -> Position:
    """Return where a cut reads every table of a window."""
    found = {table: cut.pins[table] for table in analysis.bases}
    for upstream in analysis.upstreams:
        table = upstream.storage
        found[table] = pin_of_commit(table, cut.upstreams[table].commit, cycle, warehouse)
    return found


def end_of(record: Record, analysis: Analysis, cycle: Cycle, warehouse: Warehouse) -> Position:
    """Return where a record has read every table of its window."""
    found: dict[TableName, Pin] = {}
    for table in analysis.bases:
        pin = record.pin_of(table)
        if pin is None:
            raise about("SOURCE_REPLACED", table)
        found[table] = pin
    for upstream in analysis.upstreams:
        then = seen(record, upstream, cycle, warehouse)
        if then is None or then.table != upstream.storage:
            # How it came from there to here is not known commit by commit.
            raise about("UPSTREAM_REBUILT", upstream.view)
        found[then.table] = pin_of_commit(then.table, then.recorded.commit, cycle, warehouse)
    return found


def columns_since(
    question: Question, end: Position, cycle: Cycle, warehouse: Warehouse
) -> datetime | None:
    """Return since when the tables of a window have had the columns that it uses.

    None if they have had them all the time.
    """
    moments = []
    for table, pin in end.items():
        history = cycle.catalog.history(warehouse, table, since=0)
        for commit in between(history, history[-1].version, pin.version) or []:
            if not may_touch_columns([commit]):
                continue
            before = replace(pin, version=commit.version - 1)
            if question.plan is None or misfits(question, before, warehouse):
                moments.append(commit.timestamp)
                break
    return max(moments, default=None)


def check_stored_columns(record: Record, columns: tuple[Column, ...], added: int) -> None:
    """Refuse columns that are not those of the stored changes, `added` ones beside them."""
    stored = tuple(Column(c.name, c.type) for c in record.columns[: len(columns)])
    if stored != columns or len(record.columns) != len(columns) + added:
        names = {column.name for column in stored} ^ {column.name for column in columns}
        why = reason("COLUMNS_CHANGED", ", ".join(sorted(names)) or "types or order")
        raise EngineError.of(why)


def about(code: str, table: TableName) -> EngineError:
    """Return the error for a reason that names a table."""
    return EngineError.of(reason(code, str(table)))
