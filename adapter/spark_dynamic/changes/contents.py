"""The whole result of a query at a position, and the difference of two of them."""

from spark_dynamic.changes.asked import Position
from spark_dynamic.changes.kept import check_kept_rows, lasting
from spark_dynamic.changes.question import Question
from spark_dynamic.changes.states import pin_of, version_sql
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import State
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.sql.write import WEIGHT, Relation, Writer
from spark_dynamic.support import reason
from spark_dynamic.warehouse import Warehouse


class At:
    """All sources at one position."""

    def __init__(self, position: Position) -> None:
        self._position = position

    def relation(self, table: TableName, state: State) -> Relation:
        """Return a source at its version."""
        assert state is State.NEW
        return Relation(version_sql(pin_of(table, self._position)))


def contents(question: Question, position: Position, cycle: Cycle, warehouse: Warehouse) -> str:
    """Return the rows of a query at a position as they are called inside, with weight 1.

    They come from the query's own text, unless only its plan knows their ids.
    """
    tables = question.analysis.tables()
    pins = {table: lasting(pin_of(table, position), cycle, warehouse) for table in tables}
    for pin in pins.values():
        check_kept_rows(pin, cycle, warehouse)
    moved = [str(table) for table, pin in pins.items() if pin.table != table]
    if question.layout.is_named or (moved and question.plan is not None):
        assert question.plan is not None
        return Writer(At(pins)).weighted(question.plan)
    if moved:
        raise EngineError.of(reason("UPSTREAM_REBUILT", moved[0]))
    text = question.text_at({table: pin.version for table, pin in pins.items()})
    return f"SELECT *, 1 AS {WEIGHT} FROM (\n{text}\n)"


def difference(
    question: Question, start: Position, end: Position, cycle: Cycle, warehouse: Warehouse
) -> str:
    """Return the rows at the end with weight 1 and those at the start with weight -1."""
    names = ", ".join(name for name, _ in question.layout.inside)
    new = contents(question, end, cycle, warehouse)
    old = contents(question, start, cycle, warehouse)
    return (
        f"SELECT {names}, {WEIGHT} FROM (\n{new}\n)\nUNION ALL\n"
        f"SELECT {names}, -{WEIGHT} AS {WEIGHT} FROM (\n{old}\n)"
    )
