"""A window of changes that moves: what is too old goes, what is new comes, in one commit.

A MERGE, and not INSERT … REPLACE WHERE: Delta's history calls the latter an overwrite, so that
whoever reads the window would have to compare two versions of it instead of its change feed.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from spark_dynamic.apply.storage import insert_rows, select_for_storage
from spark_dynamic.changes.columns import TIMESTAMP
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName, quote

# Of the one row of a MERGE's source that all rows match which are too old.
_ENDS = "__dyn_ends"


@dataclass(frozen=True)
class Slide:
    """How a window moves, and until when it then stays as it is."""

    # Changes of this moment, and earlier ones, are too old.
    oldest: datetime
    # What is new, as a SELECT; "" if nothing is.
    added: str = ""
    # Whether rows are stored that are too old.
    ages: bool = False
    # When the next row will be too old; None without rows.
    holds_until: datetime | None = None
    # What a record keeps about the window.
    facts: dict[str, Any] = field(default_factory=dict)
    # A change that was taken back is two changes.
    by_commit: ClassVar[bool] = True

    def statement(
        self, storage: TableName, version: int, columns: tuple[StoredColumn, ...]
    ) -> str:
        """Return the statement that moves the window."""
        return slide_statement(self, storage, columns)


def younger(select: str, oldest: datetime) -> str:
    """Return the changes of a redo log that are not too old."""
    return f"SELECT * FROM (\n{select}\n) WHERE {is_younger(oldest)}"


def is_younger(oldest: datetime) -> str:
    """Return the condition that a change is not too old."""
    return f"{TIMESTAMP} > {literal(oldest)}"


def stored_ages(storage: TableName, version: int, oldest: datetime) -> str:
    """Return the query for how many rows are too old, and how old the oldest of the others is."""
    bound = literal(oldest)
    return (
        f"SELECT count(CASE WHEN {TIMESTAMP} <= {bound} THEN 1 END) AS aged, "
        f"unix_micros(min(CASE WHEN {TIMESTAMP} > {bound} THEN {TIMESTAMP} END)) AS next "
        f"FROM {storage.sql} VERSION AS OF {version}"
    )


def slide_statement(slide: Slide, storage: TableName, columns: tuple[StoredColumn, ...]) -> str:
    """Return the statement that moves a window; where nothing is too old, it only appends."""
    added = slide.added and select_for_storage(slide.added, columns)
    if not slide.ages:
        return insert_rows(storage, added)
    bound = f"t.{TIMESTAMP} <= {literal(slide.oldest)}"
    source, inserts = f"SELECT true AS {_ENDS}", ""
    if added:
        names = [quote(column.stored_as) for column in columns]
        rows = f"SELECT *, false AS {_ENDS} FROM (\n{added}\n)"
        source = f"{rows}\nUNION ALL\nSELECT {'NULL, ' * len(names)}true"
        values = ", ".join(f"s.{name}" for name in names)
        inserts = (
            f"\nWHEN NOT MATCHED AND NOT s.{_ENDS} THEN INSERT ({', '.join(names)}) "
            f"VALUES ({values})"
        )
    # The first condition lets Delta skip files; the second one is an equality, so that Spark
    # need not compare each row with each.
    return (
        f"MERGE INTO {storage.sql} AS t USING (\n{source}\n) AS s\n"
        f"ON {bound} AND s.{_ENDS} = ({bound})\n"
        f"WHEN MATCHED THEN DELETE{inserts}"
    )
