"""The columns that a change query adds to those of its query."""

from collections.abc import Iterable
from typing import Final

from spark_dynamic.errors import EngineError
from spark_dynamic.warehouse import Column

ACTION: Final = "change_action"
IS_UPDATE: Final = "change_is_update"
ROW_ID: Final = "change_row_id"
TABLE: Final = "change_table"
VERSION: Final = "change_version"
TIMESTAMP: Final = "change_timestamp"
DIFF: Final = "change_diff"
TYPES: Final = {
    ACTION: "string",
    IS_UPDATE: "boolean",
    ROW_ID: "string",
    TABLE: "string",
    VERSION: "bigint",
    TIMESTAMP: "timestamp",
    DIFF: "int",
}
# In every mode, and in `redo_log` only.
ALWAYS: Final = (ACTION, IS_UPDATE, ROW_ID)
IN_ORDER: Final = (TABLE, VERSION, TIMESTAMP, DIFF)


def with_changes(columns: Iterable[Column], is_ordered: bool) -> tuple[Column, ...]:
    """Return the columns of the changes of a query with some columns."""
    added = (*ALWAYS, *IN_ORDER) if is_ordered else ALWAYS
    return (*columns, *(Column(name, TYPES[name]) for name in added))


def check_names(columns: Iterable[Column]) -> None:
    """Refuse a query that has a column of its own under the name of an added one."""
    taken = [c.name for c in columns if c.name.lower() in (*ALWAYS, *IN_ORDER)]
    if taken:
        raise EngineError(
            "CHANGE_COLUMN_TAKEN",
            f"The query has a column named {', '.join(taken)}, which is the name of a column that "
            "changes() adds. Give it another name in the query.",
        )
