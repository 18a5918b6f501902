"""What the engine needs from a Spark with Delta, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from spark_dynamic.names import TableName


@dataclass(frozen=True)
class Column:
    """A column's name and Spark type."""

    name: str
    type: str


@dataclass(frozen=True)
class Commit:
    """One commit of a Delta table, as its history tells it."""

    version: int
    timestamp: datetime
    operation: str
    parameters: Mapping[str, str | None] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    user_metadata: str | None = None
    # The program that wrote it, with its version.
    writer: str = ""


@dataclass(frozen=True)
class ViewText:
    """A view's query, and what its meaning depends on besides the text."""

    text: str
    schema: str
    output_columns: tuple[str, ...]
    settings: Mapping[str, str]
    # The catalog that names without one belong to; "" for the session's own.
    catalog: str = ""


@dataclass(frozen=True)
class Relation:
    """A table or view as the catalog describes it."""

    name: TableName
    columns: tuple[Column, ...]
    provider: str
    location: str
    properties: str = ""
    comment: str = ""
    view: ViewText | None = None
    # The comments of columns that have one, by name.
    column_comments: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_delta(self) -> bool:
        """Tell whether the table has versions."""
        return self.view is None and self.provider == "delta"

    @property
    def has_feed(self) -> bool:
        """Tell whether the table keeps a change feed now; it may have begun lately."""
        return self.has_property("delta.enableChangeDataFeed", "true")

    def has_property(self, key: str, value: str) -> bool:
        """Tell whether a table property has a value (Spark prints them as one text)."""
        return f"{key}={value}" in self.properties.strip("[]").replace(", ", ",").split(",")


class Warehouse(Protocol):
    """A connection: one thread, one session."""

    def execute(self, sql: str) -> None:
        """Run a statement. Raises WarehouseError."""

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Run a statement and return its rows by column name. Raises WarehouseError."""

    def history(self, table: TableName, limit: int) -> list[Commit]:
        """Return the newest commits of a Delta table, newest first. Raises WarehouseError."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
