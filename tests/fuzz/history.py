"""Random histories: tables with versions and change feeds in DuckDB, behind the engine's protocol.

Statements in Spark's words are translated: a version is a table, the change feed another one.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from fuzz.duck import Bag, Duck, StrictDuckDB, _table, canonical, nonzero
from fuzz.schemas import Row, Table, changed, random_row, random_value
from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.sql.dialect import SparkDynamic
from spark_dynamic.warehouse import Commit

SCHEMA = "shop"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_FEED = {"_change_type": "string", "_commit_version": "bigint"}
_SPARK = {
    "INTEGER": "int", "BIGINT": "bigint", "HUGEINT": "bigint", "UBIGINT": "bigint",
    "VARCHAR": "string", "BOOLEAN": "boolean", "DATE": "date", "DOUBLE": "double",
    "TIMESTAMP": "timestamp_ntz", "TIMESTAMP WITH TIME ZONE": "timestamp", '"NULL"': "int",
}  # fmt: skip
_FUNCTIONS = {"raise_error": "error", "xxhash64": "hash", "timestamp_micros": "make_timestamp"}
# What a commit did: the kind of each change as a feed names it, and the row.
Event = tuple[str, Row]


@dataclass
class Log:
    """One table: its commits with their events, and the rows of every version."""

    table: Table
    has_feed: bool
    commits: list[Commit] = field(default_factory=list)
    events: list[list[Event]] = field(default_factory=list)
    versions: list[list[Row]] = field(default_factory=list)

    def commit(
        self, at: datetime, operation: str, events: list[Event], **facts: dict[str, str]
    ) -> None:
        changes = [(1 if k in ("insert", "update_postimage") else -1, row) for k, row in events]
        self.versions.append(changed(self.versions[-1] if self.versions else (), changes))
        self.events.append(events)
        self.commits.append(Commit(len(self.commits), at, operation, **facts))


KEY = "row_number"


def keyed(tables: dict[str, Table]) -> dict[str, Table]:
    """Return tables with a column that names each row."""
    return {
        name: Table(
            {**table.columns, KEY: "int"},
            tuple((*row, number) for number, row in enumerate(table.rows, 1)),
        )
        for name, table in tables.items()
    }


def random_logs(rng: random.Random, tables: dict[str, Table], most: int = 4) -> dict[str, Log]:
    """Return tables that were created with their rows and then changed by some commits."""
    logs = {name: Log(table, rng.random() < 0.85) for name, table in tables.items()}
    clock = BEGIN
    for log in logs.values():
        log.commit(clock, "CREATE TABLE AS SELECT", [("insert", row) for row in log.table.rows])
    for _ in range(rng.randint(1, most)):
        for log in rng.sample(list(logs.values()), rng.randint(1, len(logs))):
            # Sometimes two tables are written at the same moment.
            clock += timedelta(seconds=rng.choice((0, 1, 1, 60)))
            last = log.commits[-1].timestamp
            clock = max(clock, last + timedelta(seconds=1))
            _random_commit(rng, log, clock)
    return logs


def _random_commit(rng: random.Random, log: Log, at: datetime) -> None:
    live, columns = log.versions[-1], log.table.columns
    is_keyed = KEY in columns
    kind = rng.choice(("append", "append", "append", "delete", "update", "merge", "over", "none"))
    if kind == "over" and rng.random() < 0.5:
        kind = "part"
    fresh = [_fresh_row(rng, log) for _ in range(rng.randint(1, 3))]
    if is_keyed:
        fresh = _renumbered(log, fresh)
    some = rng.sample(live, min(len(live), rng.randint(1, 2)))
    inserts: list[Event] = [("insert", row) for row in fresh]
    deletes: list[Event] = [("delete", row) for row in some]
    updates: list[Event] = []
    for old in some:
        place = rng.randrange(len(old) - is_keyed)
        value = random_value(rng, list(columns.values())[place])
        new = (*old[:place], value, *old[place + 1 :])
        updates += [("update_preimage", old), ("update_postimage", new)]
    count = str(len(some))
    match kind:
        case "append":
            metrics = {"numOutputRows": str(len(fresh))}
            log.commit(at, "WRITE", inserts, parameters={"mode": "Append"}, metrics=metrics)
        case "delete":
            log.commit(at, "DELETE", deletes, metrics={"numDeletedRows": count})
        case "update":
            log.commit(at, "UPDATE", updates, metrics={"numUpdatedRows": count})
        case "merge":
            both = rng.choice((updates, deletes))
            metrics = {"numTargetRowsInserted": str(len(fresh))}
            metrics["numTargetRowsUpdated"] = count if both is updates else "0"
            metrics["numTargetRowsDeleted"] = count if both is deletes else "0"
            log.commit(at, "MERGE", both + inserts, metrics=metrics)
        case "over":
            kept = rng.sample(live, rng.randint(0, len(live)))
            gone: list[Event] = [("delete", row) for row in live]
            if is_keyed:
                fresh = [row for row in fresh if row not in kept]
            put: list[Event] = [("insert", row) for row in kept + fresh]
            log.commit(at, "WRITE", gone + put, parameters={"mode": "Overwrite"})
        case "part":
            # Some of the rows are written again.
            again = [row for row in some if rng.random() < 0.5]
            same: list[Event] = [("insert", row) for row in again]
            facts = {"mode": "Overwrite", "predicate": "a part"}
            log.commit(at, "WRITE", deletes + same + inserts, parameters=facts)
        case _:
            log.commit(at, "OPTIMIZE", [])


def _fresh_row(rng: random.Random, log: Log) -> Row:
    """Return a row to insert: often one that was there before."""
    known = [row for version in log.versions for row in version]
    return (
        rng.choice(known) if known and rng.random() < 0.5 else random_row(rng, log.table.columns)
    )


def _renumbered(log: Log, rows: list[Row]) -> list[Row]:
    """Give rows keys that no live row has: a new one, or that of a row which is gone."""
    live = {row[-1] for row in log.versions[-1]}
    known = {row[-1] for version in log.versions for row in version}
    found: list[Row] = []
    for row in rows:
        taken = live | {other[-1] for other in found} | {None}
        number = row[-1] if row[-1] not in taken else 1 + max({0, *known, *(taken - {None})})
        found.append((*row[:-1], number))
    return found


class DuckWarehouse(Duck):
    """Answers the engine's questions about a history."""

    def load_history(self, logs: dict[str, Log]) -> None:
        self.logs = logs
        self._described: dict[str, list[dict[str, Any]]] = {}
        statements = []
        for name, log in logs.items():
            columns = log.table.columns
            kinds = tuple(columns.values())
            for version, rows in enumerate(log.versions):
                statements.append(_table(f"new.{name}_v{version}", columns, rows, kinds))
            feed = [
                (*row, kind, version)
                for version, events in enumerate(log.events)
                for kind, row in events
            ]
            whole = {**columns, **_FEED}
            statements.append(_table(f"new.{name}_feed", whole, feed, (*kinds, *_FEED.values())))
        self._connection.execute("SET schema = 'new';" + ";\n".join(statements))

    # The protocol

    def now(self) -> datetime:
        return BEGIN + timedelta(days=1)

    def execute(self, sql: str) -> None:
        raise AssertionError(sql)

    def history(self, table: TableName, limit: int) -> list[Commit]:
        return self.logs[table.name].commits[::-1][:limit]

    def rows(self, sql: str) -> list[dict[str, Any]]:
        if found := re.fullmatch(r"DESCRIBE TABLE EXTENDED `shop`\.`(\w+)`", sql):
            log = self.logs[found[1]]
            columns = log.table.columns
            kinds = {k: v.replace("timestamp", "timestamp_ntz") for k, v in columns.items()}
            facts = {**kinds, "": "", "Provider": "delta", "Location": found[1]}
            feed = f"[delta.enableChangeDataFeed={str(log.has_feed).lower()}]"
            facts["Table Properties"] = feed
            return [{"col_name": key, "data_type": value} for key, value in facts.items()]
        if sql.startswith("SHOW TABLES"):
            return []
        assert sql.startswith("DESCRIBE QUERY "), sql
        if sql not in self._described:
            self._described[sql] = self._describe(sql.removeprefix("DESCRIBE QUERY "))
        return self._described[sql]

    def _describe(self, sql: str) -> list[dict[str, Any]]:
        text = duck_text(sql)
        try:
            rows = self._connection.execute(f"DESCRIBE {text}").fetchall()
        except duckdb.Error as error:
            raise WarehouseError("", f"{error}\n{text}") from error
        return [{"col_name": row[0], "data_type": spark_type(row[1])} for row in rows]

    # What tests ask

    def answer(self, sql: str) -> list[Row]:
        """Return the rows of a query in Spark's words."""
        text = duck_text(sql)
        try:
            return self._connection.execute(text).fetchall()
        except duckdb.Error as error:
            raise AssertionError(f"{error}\n{text}\n{sql}") from error

    def keep(self, name: str, text: str) -> None:
        """Let a table hold what a query in DuckDB's words gives."""
        self._connection.execute(f"CREATE OR REPLACE TABLE new.{name} AS {text}")

    def query_over(self, sql: str, tables: dict[str, Iterable[Row]]) -> Bag:
        """Return what a query in DuckDB's words makes of some rows."""
        for name, rows in tables.items():
            columns = self.logs[name].table.columns
            kinds = tuple(columns.values())
            self._connection.execute(_table(f"new.{name}", columns, rows, kinds))
        return self._bag(sql, None)[0]


def spark_type(kind: str) -> str:
    return _SPARK.get(kind, kind.lower())


def duck_text(sql: str) -> str:
    """Translate a statement of the engine's."""
    tree = sqlglot.parse_one(sql, dialect=SparkDynamic)
    for table in list(tree.find_all(exp.Table)):
        travel = table.args.get("version")
        if travel is not None:
            name = f"{table.name}_v{travel.expression.name}"
            table.replace(exp.to_table(name, alias=table.alias or table.name))
        elif isinstance(table.this, exp.Anonymous) and table.this.name == "table_changes_by_path":
            place, first, last = (part.name for part in table.this.expressions)
            feed = f"SELECT * FROM {place}_feed WHERE _commit_version BETWEEN {first} AND {last}"
            table.replace(sqlglot.parse_one(feed, dialect=DuckDB).subquery("feed"))
    for node in list(tree.find_all(exp.Anonymous)):
        if node.name.lower() in _FUNCTIONS:
            if node.name.lower() == "xxhash64":
                # It passes over NULLs; and DuckDB has two hashes for whole numbers of two types.
                texts = [exp.cast(e, "varchar", copy=False) for e in node.expressions]
                parts = [exp.Literal.string("|"), *texts]
                node.set("expressions", [exp.Anonymous(this="concat_ws", expressions=parts)])
            node.set("this", _FUNCTIONS[node.name.lower()])
        elif node.name.lower() == "monotonically_increasing_id":
            node.replace(exp.Window(this=exp.RowNumber()))
        elif node.name.lower() == "isnull":
            is_null = exp.Is(this=node.expressions[0].copy(), expression=exp.Null())
            node.replace(exp.Paren(this=is_null))
    for node in list(tree.find_all(exp.Cast)):
        if node.to.is_type("binary"):
            # A cast would take backslashes for escapes.
            node.replace(exp.Anonymous(this="encode", expressions=[node.this.copy()]))
    for node in list(tree.find_all(exp.GenerateSeries)):
        # DuckDB's sums are wider than Spark's.
        node.set("end", exp.cast(node.args["end"], "bigint"))
    for node in list(tree.find_all(exp.CountIf)):
        when = exp.Case(ifs=[exp.If(this=node.this.copy(), true=exp.Literal.number(1))])
        node.replace(exp.Count(this=when))
    return tree.sql(dialect=StrictDuckDB)


def as_bag(rows: Iterable[Row], weights: Iterable[int]) -> Bag:
    """Return rows with weights as a bag."""
    bag: Bag = Counter()
    for row, weight in zip(rows, weights, strict=True):
        bag[canonical(row)] += weight
    return nonzero(bag)
