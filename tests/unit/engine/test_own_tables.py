"""Tables of ours that an earlier version made get the columns that they lack."""

from typing import Any, cast

import pytest

from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.own_tables import append_to, make
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Warehouse

TABLE = TableName("shop", "list")
COLUMNS = {"a": "INT", "b": "STRING", "c": "ARRAY<STRING>"}


class Catalog:
    """A table with some columns; an append needs all of ours."""

    def __init__(self, *columns: str) -> None:
        self.columns = list(columns)
        self.log: list[str] = []

    def append(self) -> None:
        self.log.append("append")
        if set(self.columns) < set(COLUMNS):
            raise WarehouseError("UNRESOLVED_COLUMN", "no such column")
        if "x" in self.columns:
            raise WarehouseError("OTHER", "no")

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [{"col_name": name, "data_type": "int"} for name in self.columns]

    def execute(self, sql: str) -> None:
        self.log.append(sql)
        self.columns = list(COLUMNS)


def test_missing_columns_are_added() -> None:
    catalog = Catalog("a")
    append_to(catalog, TABLE, COLUMNS, catalog.append)
    added = "ALTER TABLE `shop`.`list` ADD COLUMNS (`b` STRING, `c` ARRAY<STRING>)"
    assert catalog.log == ["append", added, "append"]


def test_a_table_that_has_them_is_asked_nothing() -> None:
    catalog = Catalog(*COLUMNS)
    append_to(catalog, TABLE, COLUMNS, catalog.append)
    assert catalog.log == ["append"]


def test_another_run_that_does_the_same_is_no_reason_to_fail() -> None:
    catalog, failing = (
        Catalog(*COLUMNS),
        ["TABLE_OR_VIEW_ALREADY_EXISTS", "DELTA_METADATA_CHANGED"],
    )

    class Busy:
        def execute(self, sql: str) -> None:
            catalog.execute(sql)
            if sql == "CREATE TABLE" and len(failing) > 1:
                raise WarehouseError(failing.pop(0), "another run was faster")

    def append() -> None:
        catalog.append()
        if failing:
            raise WarehouseError(failing.pop(), "another run was faster")

    make(cast(Warehouse, Busy()), TABLE, "CREATE TABLE")
    append_to(cast(Warehouse, catalog), TABLE, COLUMNS, append)
    schema = "CREATE SCHEMA IF NOT EXISTS `shop`"
    assert catalog.log == [schema, "CREATE TABLE"] * 2 + ["append"] * 2


def test_what_else_goes_wrong_is_told() -> None:
    catalog = Catalog(*COLUMNS, "x")
    with pytest.raises(WarehouseError, match="no"):
        append_to(catalog, TABLE, COLUMNS, catalog.append)
    assert catalog.log == ["append"]
