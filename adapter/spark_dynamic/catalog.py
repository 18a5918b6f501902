"""What the catalog says about relations and queries, asked once per cycle."""

import json
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.logs import Versions, look_at_logs
from spark_dynamic.frontier.settled import LogEnd, Settled
from spark_dynamic.listing import list_relations, location_of
from spark_dynamic.names import TableName, parts_of, quote
from spark_dynamic.warehouse import Column, Commit, Relation, ViewText, Warehouse

_NO_FUNCTION = ("ROUTINE_NOT_FOUND", "UNRESOLVED_ROUTINE", "SCHEMA_NOT_FOUND")
_FIRST_LOOK = 10


class Catalog:
    """A cache over the catalog that the threads of one cycle share.

    Two threads that ask for the same table wait for one answer.
    """

    def __init__(self) -> None:
        self._relations: dict[TableName, Relation | None] = {}
        self._histories: dict[TableName, list[Commit]] = {}
        self._tables: dict[str, set[str]] = {}
        self._functions: dict[str, str] = {}
        # What was listed of relations and logs when the cycle began, unless it was changed since.
        self._listings = 0
        self._listed: dict[TableName, tuple[int, str]] = {}
        self._names: list[tuple[str, str]] = []
        self._versions: dict[TableName, Versions] = {}
        self._forgotten: set[TableName] = set()
        self._locks: dict[object, threading.RLock] = {}
        self._guard = threading.Lock()

    def _lock(self, key: object) -> threading.RLock:
        with self._guard:
            return self._locks.setdefault(key, threading.RLock())

    def relation(self, warehouse: Warehouse, name: TableName) -> Relation | None:
        """Return a relation's description, or None if there is none of that name."""
        with self._lock(name):
            if name not in self._relations:
                self._relations[name] = describe_relation(warehouse, name)
            return self._relations[name]

    def history(self, warehouse: Warehouse, table: TableName, since: int = -1) -> list[Commit]:
        """Return commits, newest first; those from version `since` on are all there, if kept."""
        with self._lock(table):
            known = self._histories.get(table)
            if known is None or (known and known[0].version < since):
                known = warehouse.history(table, _FIRST_LOOK)
            while known and 0 <= since < known[-1].version:
                asked = known[0].version - since + 1
                # Commits that landed meanwhile push the oldest ones out: then look again.
                known = warehouse.history(table, asked)
                if len(known) < asked:
                    # Nothing older is kept.
                    break
            self._histories[table] = known
            return known

    def look_again(self, warehouse: Warehouse, table: TableName) -> list[Commit]:
        """Return the newest commits as they are now, and not when they were first asked for."""
        with self._lock(table):
            self._histories.pop(table, None)
            return self.history(warehouse, table)

    def tables(self, warehouse: Warehouse, schema: TableName) -> set[str]:
        """Return the names of all relations in a schema (that of the given name)."""
        key = schema.sibling("").sql
        with self._lock(key):
            if key not in self._tables:
                try:
                    rows = warehouse.rows(f"SHOW TABLES IN {key.removesuffix('.``')}")
                except WarehouseError as error:
                    if not error.misses_table:
                        raise
                    rows = []
                self._tables[key] = {row["tableName"].lower() for row in rows}
            return self._tables[key]

    def function_text(self, warehouse: Warehouse, name: str) -> str:
        """Return how a function of the user's is defined; nothing if there is none."""
        with self._lock(("function", name)):
            if name not in self._functions:
                self._functions[name] = describe_function(warehouse, name)
            return self._functions[name]

    def look(
        self, warehouse: Warehouse, known: Iterable[Settled], own: Mapping[TableName, str]
    ) -> None:
        """List everything that some tables are made of, and where its logs end.

        This comes first: what is described later is at least as new as what is listed. The
        dynamic tables themselves (`own`) have been listed already, when the run began.
        """
        self._forgotten.clear()
        known, found = list(known), dict(own)
        reached = {name for settled in known for name in settled.sources}
        found |= list_relations(warehouse, reached)
        ends: dict[str, set[LogEnd]] = {}
        for log in {log for settled in known for log in settled.logs}:
            if place := location_of(found.get(log.table, "")):
                ends.setdefault(place, set()).add(log)
        newest = {place: max(log.version for log in logs) for place, logs in ends.items()}
        versions = look_at_logs(warehouse, newest)
        with self._guard:
            self._listed = {name: (0, text) for name, text in found.items()}
            self._names = sorted((name.schema, name.name) for name in found)
            self._versions = {
                log.table: versions[place] for place in versions for log in ends[place]
            }
            # Other threads went on meanwhile.
            for name in self._forgotten:
                self._listed.pop(name, None)
                self._versions.pop(name, None)

    def now(self) -> int:
        """Return the moment of the newest listing, for `listed`."""
        return self._listings

    def listed(self, name: TableName, by: int | None = None) -> str | None:
        """Return what was listed of a relation by a moment; None if it has changed since."""
        found = self._listed.get(name)
        return None if found is None or (by is not None and found[0] > by) else found[1]

    def list_again(self, warehouse: Warehouse, name: TableName) -> None:
        """List a relation that was changed in this cycle; it is then also described anew."""
        with self._lock(name):
            if name in self._listed:
                return
            texts = list_relations(warehouse, [name])
            self._relations.pop(name, None)
            with self._guard:
                self._listings += 1
                self._listed |= {n: (self._listings, text) for n, text in texts.items()}

    def listed_after(self, name: TableName) -> Iterator[str]:
        """Yield the names in the same schema that begin with a name, when the cycle began."""
        key = (name.schema, name.name)
        for schema, other in self._names[bisect_left(self._names, key) :]:
            if schema != name.schema or not other.startswith(name.name):
                return
            yield other

    def is_end(self, log: LogEnd) -> bool:
        """Tell whether a commit was still the newest of its log when the cycle began."""
        return self._versions.get(log.table) == {log.version: log.committed_at}

    def forget(self, name: TableName) -> None:
        """Ask again next time: the relation was changed."""
        with self._lock(name):
            self._relations.pop(name, None)
            self._histories.pop(name, None)
        with self._guard:
            self._forgotten.add(name)
            self._listed.pop(name, None)
            self._versions.pop(name, None)
        key = name.sibling("").sql
        with self._lock(key):
            self._tables.pop(key, None)


def describe_query(warehouse: Warehouse, sql: str) -> tuple[Column, ...]:
    """Return names and types of a query's columns, as Spark sees them."""
    rows = warehouse.rows(f"DESCRIBE QUERY SELECT * FROM (\n{sql}\n)")
    return tuple(Column(row["col_name"], row["data_type"]) for row in rows)


def describe_queries(
    warehouse: Warehouse, last: str, others: Sequence[tuple[str, int]]
) -> list[tuple[Column, ...]]:
    """Return the columns of several queries, asked at once: analysed as one, they are not run.

    Of all but the last one the number of columns has to be known.
    """
    texts = [*(sql for sql, _ in others), last]
    together = "\nCROSS JOIN ".join(f"(\n{sql}\n) AS q{i}" for i, sql in enumerate(texts))
    columns = iter(describe_query(warehouse, f"SELECT * FROM {together}"))
    return [*(tuple(islice(columns, number)) for _, number in others), tuple(columns)]


def describe_function(warehouse: Warehouse, name: str) -> str:
    """Return what Spark tells about a function: its body, or the class that it is."""
    quoted = ".".join(quote(part) for part in name.split("."))
    try:
        rows = warehouse.rows(f"DESCRIBE FUNCTION EXTENDED {quoted}")
    except WarehouseError as error:
        if error.condition not in _NO_FUNCTION:
            raise
        return ""
    # When it was made says nothing about what it does.
    lines = [str(next(iter(row.values()))) for row in rows]
    return "\n".join(line for line in lines if not line.lower().startswith("create time"))


def describe_relation(warehouse: Warehouse, name: TableName) -> Relation | None:
    """Ask the catalog about one relation."""
    if name.is_other_path:
        return _describe_files(warehouse, name)
    try:
        rows = warehouse.rows(f"DESCRIBE TABLE EXTENDED {name.sql}")
    except WarehouseError as error:
        if error.misses_table:
            return None
        raise
    columns, comments = [], {}
    for row in rows:
        if not row["col_name"] or row["col_name"].startswith("# "):
            break
        columns.append(Column(row["col_name"], row["data_type"]))
        if row.get("comment"):
            comments[row["col_name"]] = row["comment"]
    facts = {row["col_name"]: row["data_type"] for row in rows[len(columns) :]}
    return Relation(
        name=name,
        columns=tuple(columns),
        provider=name.schema if name.is_path else (facts.get("Provider") or "").lower(),
        location=facts.get("Location") or "",
        properties=facts.get("Table Properties") or "",
        comment=facts.get("Comment") or "",
        view=_view_text(warehouse, name, columns) if facts.get("Type") == "VIEW" else None,
        column_comments=comments,
    )


def _describe_files(warehouse: Warehouse, name: TableName) -> Relation | None:
    """Ask about files that are read by their path, such as ``parquet.`/data/t` ``."""
    try:
        columns = describe_query(warehouse, f"SELECT * FROM {name.sql}")
    except WarehouseError as error:
        if error.misses_table or error.condition == "PATH_NOT_FOUND":
            return None
        raise
    return Relation(name, columns, provider=name.schema, location=name.name)


def _view_text(warehouse: Warehouse, name: TableName, columns: Sequence[Column]) -> ViewText:
    [row] = warehouse.rows(f"DESCRIBE TABLE EXTENDED {name.sql} AS JSON")
    facts = json.loads(next(iter(row.values())))
    *outer, schema = parts_of(facts.get("view_catalog_and_namespace") or "default")
    # Views that Hive or an early Spark made have no such list: their query has their own names.
    inside = facts.get("view_query_output_columns") or [column.name for column in columns]
    return ViewText(
        text=facts["view_text"],
        schema=schema,
        output_columns=tuple(inside),
        settings=facts.get("view_creation_spark_configuration", {}),
        catalog=outer[0] if outer else "",
    )
