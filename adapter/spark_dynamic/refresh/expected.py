"""The statements of an incremental refresh, as far as they are known before changes are read."""

from collections import defaultdict
from dataclasses import replace
from datetime import datetime
from typing import Any

from spark_dynamic.names import TableName
from spark_dynamic.refresh.incremental import Work, incremental_statement
from spark_dynamic.warehouse import Commit


def expected_statements(work: Work) -> list[str]:
    """Return what would be run if something was added and something taken away everywhere.

    What is known of the changes later is left out: their bounds, and which of them cancel out.
    """
    unread = _Unread()
    with incremental_statement(replace(work, rows_touched=None), unread) as write:
        computed = [sql for sql in unread.statements if not sql.startswith("DROP VIEW ")]
    return [*computed, write.statement] if write else []


class _Unread:
    """A warehouse that notes statements instead of running them.

    Whoever counts rows is told that there are two, one of them of the kind that is looked for,
    and no value in any column, so that no bounds are found. Histories and clocks were read before:
    a refresh that asks for either at this point is a mistake.
    """

    def __init__(self) -> None:
        self.statements: list[str] = []

    def execute(self, sql: str) -> None:
        self.statements.append(sql)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [defaultdict(int, total=2, n=1, there=1)]

    def history(self, table: TableName, limit: int) -> list[Commit]:
        raise AssertionError(f"The history of {table} was asked for.")

    def now(self) -> datetime:
        raise AssertionError("The time was asked for.")
