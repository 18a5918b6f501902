"""What is done with a delta: the statements of a whole refresh, run by DuckDB.

The storage is filled by the engine's own statement over the old rows, refreshed by those that
read the changes and merge them, and has to be what it would be if it were filled anew, down to
the hidden columns. Everything is written in Spark's words and translated.
"""

import random
import re
from collections import Counter
from typing import Any

import duckdb

from fuzz.case import SCHEMA, Case
from fuzz.duck import Bag, canonical
from fuzz.history import BEGIN, DuckWarehouse, Event, Log, duck_text
from spark_dynamic.apply.groups import VISIBLE, Groups
from spark_dynamic.apply.identity import HASH
from spark_dynamic.apply.rows import REFRESH, ROW
from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.record import StoredColumn, Verdict
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.incremental import Work, incremental_statement
from spark_dynamic.refresh.maintenance import Maintenance, maintain
from spark_dynamic.sql.pin import Query, pinned
from spark_dynamic.sql.references import find_references
from spark_dynamic.warehouse import Column, Relation

STORAGE = TableName(SCHEMA, "result__dyn")
# The version of the storage that the refresh is based on, and the number of the refresh.
BASE, NUMBER = 7, 8
_TRY_DIVIDED = "try_divided(a, b) AS CASE WHEN b = 0 THEN NULL ELSE a / b END"
_CACHED = re.compile(r"CACHE (?:LAZY )?TABLE (\w+) AS\n(.*)", re.DOTALL)


class NotTranslated(Exception):
    """DuckDB cannot run what Spark could, so nothing is known."""


class Applying(DuckWarehouse):
    """A warehouse that also takes the statements of a refresh."""

    def __init__(self) -> None:
        super().__init__()
        self._connection.execute(f"CREATE SCHEMA {SCHEMA}; CREATE TEMP MACRO {_TRY_DIVIDED}")

    def fill(self, query: str) -> None:
        """Fill the storage; the version that a refresh is based on is kept beside it."""
        self._run(f"CREATE OR REPLACE TABLE {SCHEMA}.{STORAGE.name} AS {duck_text(query)}")
        kept = f"CREATE OR REPLACE TABLE new.{STORAGE.name}_v{BASE} AS"
        self._run(f"{kept} FROM {SCHEMA}.{STORAGE.name}")

    def execute(self, sql: str) -> None:
        """Run a statement; a cached view is a table here."""
        if found := _CACHED.fullmatch(sql):
            self._run(f"CREATE OR REPLACE TABLE new.{found[1]} AS {duck_text(found[2])}")
        elif sql.startswith("MERGE"):
            self._run(_lenient(duck_text(sql)))
        elif not sql.startswith("DROP VIEW"):
            self._run(duck_text(sql))

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a statement by name."""
        if not sql.startswith("SELECT"):
            return super().rows(sql)
        result = self._run(duck_text(sql))
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def bag(self, sql: str) -> Bag:
        """Return the rows of a statement in DuckDB's words."""
        return Counter(canonical(row) for row in self._run(sql).fetchall())

    def _run(self, sql: str) -> Any:
        try:
            return self._connection.execute(sql)
        except (
            duckdb.BinderException,
            duckdb.ParserException,
            duckdb.NotImplementedException,
        ) as e:
            raise NotTranslated(f"{e}\n{sql}") from e
        except duckdb.Error as error:
            raise WarehouseError("", f"{error}\n{sql}") from error


class Watched(Applying):
    """Remembers the statements that it ran."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def execute(self, sql: str) -> None:
        """Run a statement, and keep it."""
        self.written.append(sql)
        super().execute(sql)


def _lenient(merge: str) -> str:
    """Return a MERGE that fails for no row.

    DuckDB computes what a clause writes for rows of other clauses as well. Where a check fails, a
    wrong value is written instead.
    """
    return re.sub(r"\bERROR\('[^']*'\)", "NULL", merge).replace("DIVIDED(", "try_divided(")


class Applied:
    """One case, refreshed."""

    def __init__(self, case: Case, warehouse: Applying) -> None:
        self._case = case
        self._warehouse = warehouse
        self._rng = random.Random(case.seed)
        self._query = Query(case.sql, find_references(case.sql, SCHEMA), {})
        # In the same order always: chance decides about one after the other.
        self._old = dict.fromkeys(sorted(self._query.tables(), key=str), 0)
        self._new = {table: int(table.name in case.batches) for table in self._old}
        self.shape = ""

    def difference(self, result: Bag) -> str:
        """Refresh; return what is wrong with the storage, or nothing.

        Raises NotIncremental if the query cannot be refreshed, and NotTranslated.
        """
        self._warehouse.load_history({t.name: self._log(t.name) for t in self._old})
        maintenance = self._maintenance()
        fill = maintenance.build(pinned(self._query, self._old), self._old, 1)
        self._warehouse.fill(fill)
        work = Work(
            maintenance,
            STORAGE,
            BASE,
            NUMBER,
            self._intervals(),
            self._new,
            beyond_travel=self._beyond_travel(),
        )
        with incremental_statement(work, self._warehouse) as write:
            if write is not None:
                self._warehouse.execute(write.statement)
        self.shape = work.shape
        again = duck_text(maintenance.build(pinned(self._query, self._new), self._new, 1))
        return (
            self._stored(maintenance, again)
            or _compared(self._shown(maintenance), result)
            or self._twice(maintenance)
        )

    def _log(self, name: str) -> Log:
        table = self._case.tables[name]
        log = Log(table, True)
        log.commit(BEGIN, "CREATE TABLE AS SELECT", [("insert", row) for row in table.rows])
        if name in self._case.batches:
            events: list[Event] = []
            for weight, row in self._case.batches[name].changes:
                events += [("insert" if weight > 0 else "delete", row)] * abs(weight)
            log.commit(BEGIN, "MERGE", events)
        return log

    def _maintenance(self) -> Maintenance:
        relations = tuple(
            Relation(table, self._columns(table), "delta", table.name) for table in self._old
        )
        analysis = Analysis(self._query, "", tuple(self._old), relations=relations)
        described = self._warehouse.rows(f"DESCRIBE QUERY {pinned(self._query, self._old)}")
        columns = tuple(
            StoredColumn(row["col_name"], row["col_name"], row["data_type"]) for row in described
        )
        # A key that is declared, whether it is one or not.
        named = self._rng.sample(columns, self._rng.randint(0, min(2, len(columns))))
        key = frozenset(column.name.lower() for column in named)
        old, warehouse = self._old, self._warehouse
        return maintain(analysis, Verdict(""), SCHEMA, old, warehouse, key)

    def _columns(self, table: TableName) -> tuple[Column, ...]:
        types = {"timestamp": "timestamp_ntz"}
        known = self._case.columns_of(table)
        return tuple(Column(c.name, types.get(c.type, c.type)) for c in known)

    def _intervals(self) -> dict[TableName, Interval]:
        """Return what changed; now and then as if the table had been written anew."""
        found = {}
        for table in self._old:
            if table.name in self._case.batches:
                batch = self._case.batches[table.name]
                kind = Kind.INSERTS if batch.insert_only else Kind.CHANGES
                if self._rng.random() < 0.3:
                    kind = Kind.REWRITE
                found[table] = Interval(table, 0, 1, kind, location=table.name)
        return found

    def _beyond_travel(self) -> frozenset[TableName]:
        """Return the tables whose old versions cannot be read; now and then all of them."""
        return frozenset(self._old if self._rng.random() < 0.2 else ())

    # Checks

    def _stored(self, maintenance: Maintenance, again: str) -> str:
        own = "" if isinstance(maintenance.target, Groups) else f" EXCLUDE ({REFRESH}, {ROW})"
        found = self._warehouse.bag(f"SELECT *{own} FROM {SCHEMA}.{STORAGE.name}")
        return _compared(found, self._warehouse.bag(f"SELECT *{own} FROM ({again})"))

    def _shown(self, maintenance: Maintenance) -> Bag:
        target = maintenance.target
        where = f" WHERE {VISIBLE}" if isinstance(target, Groups) and target.is_filtered else ""
        names = ", ".join(f'"{column.stored_as}"' for column in target.columns)
        return self._warehouse.bag(f"SELECT {names} FROM {SCHEMA}.{STORAGE.name}{where}")

    def _twice(self, maintenance: Maintenance) -> str:
        if isinstance(maintenance.target, Groups):
            return ""
        identity = ", ".join((*HASH, REFRESH, ROW))
        counted = (
            f"SELECT {identity} FROM {SCHEMA}.{STORAGE.name} GROUP BY ALL HAVING count(*) > 1"
        )
        twice = self._warehouse.bag(counted)
        return f"one identity for two rows: {twice}" if twice else ""


def _compared(found: Bag, wanted: Bag) -> str:
    return "" if found == wanted else f"missing: {wanted - found}\ntoo many: {found - wanted}"
