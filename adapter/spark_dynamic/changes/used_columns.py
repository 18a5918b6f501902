"""Can an older version be read with the columns that a query uses today?

What happens to other columns of a source is none of its business: they may come, go, or get
another type.
"""

from collections.abc import Mapping, Sequence

from spark_dynamic.catalog import describe_query
from spark_dynamic.changes.question import Question
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.frontier.compare import may_touch_columns
from spark_dynamic.frontier.record import Pin
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import fields_of
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Column, Warehouse

COLUMNS_CHANGED = "COLUMNS_CHANGED"


def check_columns(
    question: Question, pins: Mapping[TableName, Pin], cycle: Cycle, warehouse: Warehouse
) -> None:
    """Refuse versions at which columns that the query uses are missing or of another type.

    The ends of an interval could not be compared then.
    """
    suspects = [
        pin
        for table, pin in sorted(pins.items(), key=lambda item: str(item[0]))
        # Generations of a dynamic table are compared by what their records say.
        if pin.table == table and may_have_others(pin, cycle, warehouse)
    ]
    if question.plan is None:
        if suspects and not _fits_text(question, pins, warehouse):
            raise _changed(suspects, "")
        return
    for pin in suspects:
        missing = misfits(question, pin, warehouse)
        if missing:
            raise _changed([pin], ", ".join(missing))


def misfits(question: Question, pin: Pin, warehouse: Warehouse) -> list[str]:
    """Return the columns of a source that the plan uses and a version does not have as they are.

    A version that cannot be described has none of them.
    """
    assert question.plan is not None
    used = fields_of(question.plan, pin.table).values()
    wanted = [Column(field.name, field.type) for field in used]
    there = had_by(pin, wanted, warehouse)
    return [column.name for column in wanted if column not in there]


def had_by(pin: Pin, columns: Sequence[Column], warehouse: Warehouse) -> list[Column]:
    """Return those of some columns that a version has as they are."""
    if not columns:
        return []
    version = f"SELECT * FROM {pin.table.sql} VERSION AS OF {pin.version}"
    try:
        found = {(c.name.lower(), c.type) for c in describe_query(warehouse, version)}
    except WarehouseError:
        return []
    return [column for column in columns if (column.name.lower(), column.type) in found]


def may_have_others(pin: Pin, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Tell whether a version may have other columns than the newest one, by history alone."""
    history = cycle.catalog.history(warehouse, pin.table, since=pin.version)
    return may_touch_columns(commit for commit in history if commit.version > pin.version)


def _fits_text(question: Question, pins: Mapping[TableName, Pin], warehouse: Warehouse) -> bool:
    """Tell whether the query's own text gives the same columns at some versions as today."""
    text = question.text_at({table: pin.version for table, pin in pins.items()})
    try:
        found = describe_query(warehouse, text)
    except WarehouseError:
        return False
    return [c.type for c in found] == [c.type for c in question.layout.columns]


def _changed(pins: list[Pin], columns: str) -> EngineError:
    versions = " and ".join(f"version {pin.version} of {pin.table}" for pin in pins)
    what = f"The query uses {columns}, which" if columns else "The query has columns that"
    return EngineError(
        COLUMNS_CHANGED,
        f"{what} {versions} does not have, or has with another type, so what changed since then "
        "cannot be told. Ask for an interval after the columns changed, or name columns that were "
        "there all the time instead of `*`.",
    )
