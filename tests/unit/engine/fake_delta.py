"""Delta tables in memory: rows of every version, commits, transaction numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Column, Commit

Row = tuple[Any, ...]

METADATA = "spark.databricks.delta.commitInfo.userMetadata"
APPLICATION = "spark.databricks.delta.write.txnAppId"
WRITER = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
TRANSACTION = "spark.databricks.delta.write.txnVersion"


@dataclass(frozen=True)
class Snapshot:
    """What a table holds at one version."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def by_name(given: Snapshot, columns: tuple[Column, ...]) -> Snapshot:
    """Put values into the columns of their names; a column without one is left empty."""
    names = [column.name.lower() for column in given.columns]
    unknown = set(names) - {column.name.lower() for column in columns}
    if unknown:
        raise WarehouseError("DELTA_INSERT_COLUMN_ARITY_MISMATCH", f"no columns {unknown}")
    places = [names.index(c.name.lower()) if c.name.lower() in names else None for c in columns]
    rows = (tuple(None if i is None else row[i] for i in places) for row in given.rows)
    return Snapshot(columns, tuple(rows))


@dataclass
class DeltaTable:
    """One Delta log. The rules are those that were seen on Delta 4.4."""

    name: TableName
    location: str
    properties: dict[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    comments: dict[str, str] = field(default_factory=dict)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)
    transactions: dict[str, int] = field(default_factory=dict)
    provider = "delta"

    def __deepcopy__(self, memo: object) -> "DeltaTable":
        """Copy what can change; rows and commits cannot."""
        return replace(
            self,
            properties=dict(self.properties),
            comments=dict(self.comments),
            snapshots=dict(self.snapshots),
            commits=list(self.commits),
            transactions=dict(self.transactions),
        )

    @property
    def version(self) -> int:
        return self.commits[-1].version

    @property
    def newest(self) -> Snapshot:
        return self.snapshots[self.version]

    def at(self, version: int | None) -> Snapshot:
        """Read a version; those whose log was cleaned are gone."""
        wanted = self.version if version is None else version
        if wanted not in self.snapshots:
            raise WarehouseError("DELTA_VERSION_NOT_FOUND", f"no version {wanted} of {self.name}")
        return self.snapshots[wanted]

    def history(self, limit: int) -> list[Commit]:
        return self.commits[::-1][:limit]

    def is_skipped(self, settings: Mapping[str, str]) -> bool:
        """Delta does nothing, and says nothing, for a transaction number that it has seen."""
        if APPLICATION not in settings:
            return False
        return self.transactions.get(settings[APPLICATION], -1) >= int(settings[TRANSACTION])

    def commit(
        self,
        at: datetime,
        operation: str,
        snapshot: Snapshot,
        settings: Mapping[str, str],
        parameters: Mapping[str, str] | None = None,
        metrics: Mapping[str, str] | None = None,
    ) -> None:
        version = self.version + 1 if self.commits else 0
        if self.commits:
            # Delta dates no commit before the one before it, whatever the clock says.
            at = max(at, self.commits[-1].timestamp + timedelta(milliseconds=1))
        if APPLICATION in settings:
            self.transactions[settings[APPLICATION]] = int(settings[TRANSACTION])
        self.snapshots[version] = snapshot
        self.commits.append(
            Commit(
                version,
                at,
                operation,
                parameters or {},
                metrics or {},
                settings.get(METADATA),
                WRITER,
            )
        )

    def tell(self, operation: str, at: datetime, settings: Mapping[str, str], **what: str) -> None:
        """Commit something that changes no row."""
        self.commit(at, operation, self.newest, settings, what)

    def forget_before(self, version: int) -> None:
        """Clean the log, as Delta does when commits are older than the retention."""
        self.commits = [commit for commit in self.commits if commit.version >= version]
        self.snapshots = {v: s for v, s in self.snapshots.items() if v >= version}


@dataclass
class OtherTable:
    """A table that is not Delta."""

    name: TableName
    location: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    provider: str = "parquet"
    properties: dict[str, str] = field(default_factory=dict)


class Writer:
    """Other people's writes to a table, each one commit with the metrics that Delta gives it."""

    def __init__(
        self, table: DeltaTable, clock: Callable[[], datetime], settings: Mapping[str, str]
    ) -> None:
        self._table = table
        self._clock = clock
        self._settings = settings

    def _commit(
        self, operation: str, rows: tuple[Row, ...] | None = None, **more: dict[str, str]
    ) -> None:
        now = self._table.newest
        after = Snapshot(now.columns, now.rows if rows is None else rows)
        self._table.commit(self._clock(), operation, after, self._settings, **more)

    def append(self, *rows: Row) -> None:
        self._commit(
            "WRITE",
            self._table.newest.rows + rows,
            parameters={"mode": "Append"},
            metrics={"numOutputRows": str(len(rows)), "numFiles": "1"},
        )

    def overwrite(self, *rows: Row) -> None:
        self._commit(
            "WRITE",
            rows,
            parameters={"mode": "Overwrite"},
            metrics={"numOutputRows": str(len(rows)), "numRemovedFiles": "1"},
        )

    def delete(self, *rows: Row) -> None:
        left = list(self._table.newest.rows)
        for row in rows:
            left.remove(row)
        self._commit("DELETE", tuple(left), metrics={"numDeletedRows": str(len(rows))})

    def optimize(self) -> None:
        self._commit("OPTIMIZE", metrics={"numAddedFiles": "1", "numRemovedFiles": "2"})

    def restore(self, version: int) -> None:
        self._commit("RESTORE", self._table.at(version).rows)

    def add_column(self, name: str, kind: str) -> None:
        now = self._table.newest
        columns = (*now.columns, Column(name, kind))
        rows = tuple((*row, None) for row in now.rows)
        self._table.commit(self._clock(), "ADD COLUMNS", Snapshot(columns, rows), self._settings)

    def drop_column(self, name: str) -> None:
        now = self._table.newest
        place = [column.name for column in now.columns].index(name)
        columns = now.columns[:place] + now.columns[place + 1 :]
        rows = tuple(row[:place] + row[place + 1 :] for row in now.rows)
        self._table.commit(self._clock(), "DROP COLUMNS", Snapshot(columns, rows), self._settings)

    def rename_column(self, old: str, new: str) -> None:
        now = self._table.newest
        columns = tuple(Column(new if c.name == old else c.name, c.type) for c in now.columns)
        after = Snapshot(columns, now.rows)
        self._table.commit(self._clock(), "RENAME COLUMN", after, self._settings)

    def comment_column(self, name: str, text: str) -> None:
        self._table.comments[name] = text
        self._commit("CHANGE COLUMN")
