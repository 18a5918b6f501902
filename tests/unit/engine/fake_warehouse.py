"""A Spark with Delta in memory: enough of both to drive whole refreshes in milliseconds."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fake_constraints import PREFIX, add_constraint, check_rows
from fake_delta import APPLICATION, DeltaTable, OtherTable, Row, Snapshot, Writer, by_name
from fake_names import location, names_in, plain
from fake_query import Leaf, StoredView, columns_of, expand, explanation, run_query

from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Column, Commit

NAME = r"((?:`(?:[^`]|``)+`|[\w.])+)"
_PAIR = re.compile(r"'((?:[^'\\]|\\.)*)' = '((?:[^'\\]|\\.)*)'")
_SETTINGS = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "Etc/UTC"}


class Killed(BaseException):
    """The process died. Nothing of the engine may catch it."""


Entry = DeltaTable | OtherTable | StoredView


@dataclass
class FakeSpark:
    """What all sessions share: the catalog, the files, the clock."""

    clock: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    entries: dict[TableName, Entry] = field(default_factory=dict)
    left_over: set[str] = field(default_factory=set)
    # Files of which no table knows, and whether sessions can remove any.
    files: dict[str, datetime] = field(default_factory=dict)
    removes: bool = True
    log: list[str] = field(default_factory=list)
    schema: str = "shop"
    # Something that another session does just before a statement: (pattern, what).
    meanwhile: list[tuple[str, Callable[[], None]]] = field(default_factory=list)
    # The rows of the state table, which only the schedule's tests read back.
    state_rows: list[Any] = field(default_factory=list)
    # What Spark makes of a query, where the built-in answer would be too simple.
    explain: Callable[[str, str], str] = lambda sql, text: text

    def tick(self, seconds: float = 1) -> datetime:
        self.clock += timedelta(seconds=seconds)
        return self.clock

    def table(self, name: str) -> DeltaTable:
        found = self.entries[TableName.parse(name)]
        assert isinstance(found, DeltaTable)
        return found

    def view(self, name: str) -> StoredView:
        found = self.entries[TableName.parse(name)]
        assert isinstance(found, StoredView)
        return found

    def exists(self, name: str) -> bool:
        return TableName.parse(name) in self.entries

    def create(self, name: str, columns: dict[str, str], *rows: Row, **more: Any) -> DeltaTable:
        """Make a Delta table, as a person would."""
        table = DeltaTable(TableName.parse(name), location(name), **more)
        shown = tuple(Column(key, kind) for key, kind in columns.items())
        count = {"numOutputRows": str(len(rows))}
        table.commit(self.tick(), "CREATE TABLE AS SELECT", Snapshot(shown, rows), {}, {}, count)
        self.entries[table.name] = table
        return table

    def create_parquet(self, name: str, columns: dict[str, str], *rows: Row) -> None:
        shown = tuple(Column(key, kind) for key, kind in columns.items())
        table = OtherTable(TableName.parse(name), location(name), shown, rows)
        self.entries[table.name] = table

    def create_view(
        self, name: str, text: str, columns: list[str] | None = None, **settings: str
    ) -> None:
        """Make (or replace) a view, as a person would."""
        found = columns_of(expand(text, self.schema, self.lookup))
        names = columns or [column.name for column in found]
        shown = tuple(Column(n, c.type) for n, c in zip(names, found, strict=True))
        inside = tuple(column.name for column in found)
        view = TableName.parse(name)
        captured = _SETTINGS | settings
        self.entries[view] = StoredView(view, text, self.schema, shown, inside, {}, captured)

    def write(self, name: str, metadata: dict[str, str] | None = None) -> Writer:
        """Write to a table from outside."""
        return Writer(self.table(name), self.tick, metadata or {})

    def drop(self, name: str) -> None:
        del self.entries[TableName.parse(name)]

    def lookup(self, name: TableName, version: int | None) -> StoredView | Leaf:
        entry = self.entries.get(name)
        if entry is None:
            raise WarehouseError("TABLE_OR_VIEW_NOT_FOUND", f"{name} cannot be found")
        if isinstance(entry, StoredView):
            return entry
        if isinstance(entry, OtherTable):
            return Leaf(plain(name), name, entry.columns, entry.rows)
        snapshot = entry.at(version)
        place = plain(name) if version is None else f"{plain(name)}_v{version}"
        return Leaf(place, name, snapshot.columns, snapshot.rows)

    def read(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query in a fixed order."""
        rows = run_query(expand(sql, self.schema, self.lookup))
        return sorted((tuple(row.values()) for row in rows), key=repr)


class FakeWarehouse:
    """One session: its settings, and the statement at which it dies or fails."""

    def __init__(self, spark: FakeSpark) -> None:
        self.spark = spark
        self.settings: dict[str, str] = {}
        self.count = 0
        self.die_before = self.die_after = self.fail_at = -1
        self.is_dead = False
        self.refused = ""
        # Spark's name for the failure, if it has one.
        self.condition = ""

    def now(self) -> datetime:
        return self.spark.tick(0.001)

    def execute(self, sql: str) -> None:
        self._run(sql, lambda: self._answer(sql))

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return self._run(sql, lambda: self._answer(sql))

    def history(self, table: TableName, limit: int) -> list[Commit]:
        return self._run(f"DESCRIBE HISTORY {table.sql}", lambda: self._history(table, limit))

    def _history(self, table: TableName, limit: int) -> list[Commit]:
        entry = self._entry(table.sql)
        if not isinstance(entry, DeltaTable):
            raise WarehouseError("DELTA_ONLY_OPERATION", f"{table} is not a Delta table")
        return entry.history(limit)

    def _run(self, sql: str, answer: Callable[[], Any]) -> Any:
        if self.is_dead:
            raise Killed
        self.count += 1
        if self.count == self.die_before:
            self._die(sql)
        if self.count == self.fail_at:
            self.refused = sql
            raise WarehouseError(self.condition, f"statement {self.count} failed: {sql}")
        for item in list(self.spark.meanwhile):
            if re.search(item[0], sql, re.DOTALL):
                self.spark.meanwhile.remove(item)
                item[1]()
        self.spark.log.append(sql)
        try:
            return answer()
        finally:
            if self.count == self.die_after:
                self.is_dead = True
                raise Killed

    def _die(self, sql: str) -> None:
        self.is_dead = True
        if create := re.match(rf"CREATE TABLE {NAME}", sql):
            # Files were written before the commit could be made.
            self.spark.left_over.add(location(str(TableName.parse(create[1]))))
        raise Killed

    def _answer(self, sql: str) -> list[dict[str, Any]]:
        for pattern, handler in _HANDLERS:
            if match := re.fullmatch(pattern, sql, re.DOTALL):
                return handler(self, *match.groups()) or []
        raise AssertionError(f"The fake does not know this statement: {sql}")

    def _entry(self, name: str) -> Entry:
        table = TableName.parse(name)
        if table not in self.spark.entries:
            raise WarehouseError("TABLE_OR_VIEW_NOT_FOUND", f"{table} cannot be found")
        return self.spark.entries[table]

    def _set(self, key: str, value: str) -> None:
        self.settings[key.strip("`")] = value.strip("`").replace("``", "`")

    def _get(self, key: str) -> list[dict[str, Any]]:
        unset = "STATIC" if key == "spark.sql.sources.partitionOverwriteMode" else "<undefined>"
        return [{"key": key, "value": self.settings.get(key, unset)}]

    def _list_settings(self) -> list[dict[str, Any]]:
        return [{"key": key, "value": value} for key, value in self.settings.items()]

    def _reset(self, key: str) -> None:
        self.settings.pop(key.strip("`"), None)

    def _show_tables(self, schema: str) -> list[dict[str, Any]]:
        names = (n for n in self.spark.entries if n.schema == schema.strip("`"))
        return [{"namespace": name.schema, "tableName": name.name} for name in names]

    def _show_extended(self, schema: str, pattern: str) -> list[dict[str, Any]]:
        wanted = None if pattern == "*" else pattern.split("|")
        found = []
        for name, entry in self.spark.entries.items():
            if name.schema == schema.strip("`") and (wanted is None or name.name in wanted):
                facts = {"Table": name.name, "Last Access": str(self.spark.clock)}
                if isinstance(entry, StoredView):
                    facts |= {"View Text": entry.text, "View Schema": str(entry.columns)}
                    facts |= {"View Configuration": str(entry.settings)}
                else:
                    facts |= {"Location": entry.location, "Provider": entry.provider}
                facts["Table Properties"] = str(entry.properties)
                text = "".join(f"{key}: {value}\n" for key, value in facts.items())
                found.append({"tableName": name.name, "information": text})
        return found

    def _log_files(self, root: str, patterns: str) -> list[dict[str, Any]]:
        """List files of logs: each location with two versions, the newest known and the next."""
        found = []
        logs = {e.location: e for e in self.spark.entries.values() if isinstance(e, DeltaTable)}
        for rest, *versions in re.findall(r"([^{},]+)/_delta_log/{(\d+)\.json,(\d+)", patterns):
            place = root + rest
            table = logs.get(place)
            for commit in table.commits if table else ():
                if commit.version in map(int, versions):
                    path = f"{place}/_delta_log/{commit.version:020}.json"
                    modified = round(commit.timestamp.timestamp() * 1_000_000)
                    found.append({"path": path, "modified": modified})
        return found

    def _describe_json(self, name: str) -> list[dict[str, Any]]:
        entry = self._entry(name)
        assert isinstance(entry, StoredView)
        facts = {
            "view_text": entry.text,
            "view_catalog_and_namespace": f"spark_catalog.{entry.schema}",
            "view_query_output_columns": list(entry.output_columns),
            "view_creation_spark_configuration": entry.settings,
        }
        return [{"json_metadata": json.dumps(facts)}]

    def _describe(self, name: str) -> list[dict[str, Any]]:
        entry = self._entry(name)
        is_view = isinstance(entry, StoredView)
        columns = entry.newest.columns if isinstance(entry, DeltaTable) else entry.columns
        facts = {column.name: column.type for column in columns}
        facts |= {"": "", "# Detailed Table Information": "", "Type": "MANAGED"}
        facts |= {"Type": "VIEW"} if is_view else {"Location": entry.location}
        facts |= {} if is_view else {"Provider": entry.provider}
        shown = dict(entry.properties)
        facts["Comment"] = shown.pop("comment", "")
        pairs = (", " if is_view else ",").join(f"{k}={v}" for k, v in shown.items())
        facts["Table Properties"] = f"[{pairs}]"
        said = entry.comments if isinstance(entry, DeltaTable) else {}
        return [{"col_name": k, "data_type": v, "comment": said.get(k)} for k, v in facts.items()]

    def _describe_query(self, sql: str) -> list[dict[str, Any]]:
        found = columns_of(expand(sql, self.spark.schema, self.spark.lookup))
        return [{"col_name": column.name, "data_type": column.type} for column in found]

    def _explain(self, sql: str) -> list[dict[str, Any]]:
        def lookup(name: TableName, version: int | None) -> StoredView | Leaf:
            # Spark's plans name the table, not the version.
            found = self.spark.lookup(name, version)
            return replace(found, name=plain(name)) if isinstance(found, Leaf) else found

        text = explanation(expand(sql, self.spark.schema, lookup))
        return [{"plan": self.spark.explain(sql, text)}]

    def _select(self, sql: str) -> list[dict[str, Any]]:
        return run_query(expand(sql, self.spark.schema, self.spark.lookup))

    def _result(self, sql: str) -> Snapshot:
        query = expand(sql, self.spark.schema, self.spark.lookup)
        return Snapshot(columns_of(query), tuple(tuple(r.values()) for r in run_query(query)))

    def _create_table(self, name: str, clauses: str, sql: str) -> None:
        table = TableName.parse(name)
        if table in self.spark.entries:
            raise WarehouseError("TABLE_OR_VIEW_ALREADY_EXISTS", f"{table} already exists")
        place = location(str(table))
        if place in self.spark.left_over:
            condition = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
            raise WarehouseError(condition, f"{place} is not empty")
        made = DeltaTable(table, place, dict(_PAIR.findall(clauses)))
        made.partition_by = names_in(r"PARTITIONED BY \((.*?)\)", clauses)
        made.cluster_by = names_in(r"CLUSTER BY \((.*?)\)", clauses)
        result = self._result(sql)
        count = {"numOutputRows": str(len(result.rows))}
        made.commit(self.spark.tick(), "CREATE TABLE AS SELECT", result, self.settings, {}, count)
        self.spark.entries[table] = made

    def _insert(self, mode: str, name: str, sql: str) -> None:
        table = self._entry(name)
        assert isinstance(table, DeltaTable)
        if table.is_skipped(self.settings):
            return
        result = by_name(self._result(sql), table.newest.columns)
        if not result.rows and mode == "INTO" and APPLICATION not in self.settings:
            return
        check_rows(table, result)
        kept = table.newest.rows if mode == "INTO" else ()
        table.commit(
            self.spark.tick(),
            "WRITE",
            Snapshot(result.columns, kept + result.rows),
            self.settings,
            {"mode": "Append" if mode == "INTO" else "Overwrite"},
            {"numOutputRows": str(len(result.rows))},
        )

    def _create_view(self, name: str, properties: str, sql: str) -> None:
        if self.spark.exists(name):
            raise WarehouseError("TABLE_OR_VIEW_ALREADY_EXISTS", f"{name} already exists")
        self.spark.create_view(name, sql)
        self.spark.view(name).properties.update(_PAIR.findall(properties))

    def _alter_view(self, name: str, sql: str) -> None:
        before = self._entry(name)
        assert isinstance(before, StoredView)
        self.spark.create_view(name, sql)
        after = replace(self.spark.view(name), properties=before.properties)
        self.spark.entries[after.name] = after

    def _set_properties(self, kind: str, name: str, properties: str) -> None:
        entry = self._entry(name)
        entry.properties.update(_PAIR.findall(properties))
        if isinstance(entry, DeltaTable):
            entry.commit(self.spark.tick(), "SET TBLPROPERTIES", entry.newest, self.settings)

    def _show_properties(self, name: str) -> list[dict[str, Any]]:
        return [{"key": k, "value": v} for k, v in self._entry(name).properties.items()]

    def _constrain(self, name: str, constraint: str, condition: str) -> None:
        table = self.spark.table(name)
        add_constraint(table, constraint, condition)
        table.tell("ADD CONSTRAINT", self.spark.tick(), self.settings, name=constraint)

    def _release(self, name: str, constraint: str) -> None:
        table = self.spark.table(name)
        del table.properties[PREFIX + constraint]
        table.tell("DROP CONSTRAINT", self.spark.tick(), self.settings, name=constraint)

    def _unset_properties(self, kind: str, name: str, keys: str) -> None:
        entry = self._entry(name)
        for key in re.findall(r"'(.*?)'", keys):
            entry.properties.pop(key, None)
        if isinstance(entry, DeltaTable):
            entry.commit(self.spark.tick(), "UNSET TBLPROPERTIES", entry.newest, self.settings)

    def _cluster(self, name: str, columns: str) -> None:
        table = self.spark.table(name)
        table.cluster_by = names_in(r"\((.*)\)", columns)
        table.commit(self.spark.tick(), "CLUSTER BY", table.newest, self.settings)

    def _comment(self, name: str, column: str, text: str) -> None:
        table = self.spark.table(name)
        table.comments[column.strip("`")] = text
        table.commit(self.spark.tick(), "CHANGE COLUMN", table.newest, self.settings)

    def _drop(self, kind: str, name: str) -> None:
        assert isinstance(self._entry(name), StoredView) == (kind == "VIEW"), name
        self.spark.drop(name)


_HANDLERS: list[tuple[str, Callable[..., Any]]] = [
    (r"SET (`[^`]+`|[\w.]+)=(.*)", FakeWarehouse._set),
    (r"SET ([\w.]+)", FakeWarehouse._get),
    (r"SET", FakeWarehouse._list_settings),
    (r"RESET (`?[\w.]+`?)", FakeWarehouse._reset),
    (r"SHOW TABLES IN (.*)", FakeWarehouse._show_tables),
    (r"SHOW TABLE EXTENDED IN (.*) LIKE '(.*)'", FakeWarehouse._show_extended),
    (r"SELECT path, .* FROM binaryFile.`([^{]*){(.*)}`", FakeWarehouse._log_files),
    (rf"DESCRIBE TABLE EXTENDED {NAME} AS JSON", FakeWarehouse._describe_json),
    (rf"DESCRIBE TABLE EXTENDED {NAME}", FakeWarehouse._describe),
    (r"DESCRIBE QUERY (.*)", FakeWarehouse._describe_query),
    (r"EXPLAIN EXTENDED (.*)", FakeWarehouse._explain),
    (r"(SELECT .*)", FakeWarehouse._select),
    (rf"CREATE TABLE {NAME}\n(.*?)\nAS (SELECT .*)", FakeWarehouse._create_table),
    (rf"INSERT (INTO|OVERWRITE TABLE) {NAME}(?: BY NAME)?\s(SELECT .*)", FakeWarehouse._insert),
    (rf"CREATE VIEW {NAME} TBLPROPERTIES \((.*?)\) AS (.*)", FakeWarehouse._create_view),
    (rf"ALTER VIEW {NAME} AS (.*)", FakeWarehouse._alter_view),
    (rf"ALTER (VIEW|TABLE) {NAME} SET TBLPROPERTIES \((.*)\)", FakeWarehouse._set_properties),
    (
        rf"ALTER (VIEW|TABLE) {NAME} UNSET TBLPROPERTIES IF EXISTS \((.*)\)",
        FakeWarehouse._unset_properties,
    ),
    (rf"ALTER TABLE {NAME} CLUSTER BY (.*)", FakeWarehouse._cluster),
    (rf"ALTER TABLE {NAME} ALTER COLUMN (.*?) COMMENT '(.*)'", FakeWarehouse._comment),
    (rf"SHOW TBLPROPERTIES {NAME}", FakeWarehouse._show_properties),
    (rf"ALTER TABLE {NAME} ADD CONSTRAINT `(.*?)` CHECK \((.*)\)", FakeWarehouse._constrain),
    (rf"ALTER TABLE {NAME} DROP CONSTRAINT `(.*)`", FakeWarehouse._release),
    (rf"DROP (TABLE|VIEW) {NAME}", FakeWarehouse._drop),
]
