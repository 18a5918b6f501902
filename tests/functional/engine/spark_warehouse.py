"""The engine's `Warehouse` over a Spark session, without dbt: quick enough for many cases."""

import re
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.spark_dynamic.warehouse import _HISTORY, _commit
from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Commit

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")


class SparkWarehouse:
    """Runs the engine's statements, and remembers them."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.statements: list[str] = []

    def execute(self, sql: str) -> None:
        self._run(sql)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self._run(sql)]

    def history(self, table: TableName, limit: int) -> list[Commit]:
        sql = f"DESCRIBE HISTORY {table.sql} LIMIT {limit}"
        return [_commit(row.asDict()) for row in self._run(sql, _HISTORY)]

    def now(self) -> datetime:
        return datetime.now(UTC)

    def _run(self, sql: str, columns: list[str] | None = None) -> list[Any]:
        self.statements.append(sql)
        try:
            found = self.session.sql(sql)
            return (found.selectExpr(*columns) if columns else found).collect()
        except (PySparkException, Py4JJavaError) as error:
            # What PySpark does not know, such as two writers at once, comes as it is.
            condition = _CONDITION.search(str(error))
            raise WarehouseError(condition.group(1) if condition else "", str(error)) from error
