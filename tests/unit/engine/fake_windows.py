"""Windows of changes on the fake Spark; queries run in DuckDB, which knows what redo logs need."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any

import duckdb
import pytest
import sqlglot
from fake_delta import DeltaTable, Row, Snapshot
from fake_query import StoredView
from fake_shop import SETTINGS, Shop, said
from fake_warehouse import NAME, FakeWarehouse
from fuzz.history import duck_text, spark_type
from sqlglot import exp

from spark_dynamic.changes.asked import STRICT, ChangeRead, Mode
from spark_dynamic.changes.window import Window
from spark_dynamic.frontier.history import records
from spark_dynamic.frontier.record import Record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.run import Outcome, run_plan
from spark_dynamic.refresh.verify import verify
from spark_dynamic.refresh.windows import Windows, drop_unread
from spark_dynamic.sql.dialect import SparkDynamic
from spark_dynamic.warehouse import Column

_DUCK = {"bigint": "HUGEINT", "int": "INTEGER", "string": "VARCHAR", "boolean": "BOOLEAN"}
_DUCK |= {"double": "DOUBLE"}
_MERGE = (
    rf"MERGE INTO {NAME} AS t USING \(\n(.*)\n\) AS s\nON (.*)\nWHEN MATCHED THEN DELETE"
    r"(?:\nWHEN NOT MATCHED AND (.*?) THEN INSERT \((.*?)\) VALUES \((.*?)\))?"
)
# Who a row is, is tested elsewhere.
_LEFT_OUT = ("change_row_id", "change_is_update")
HOUR = timedelta(hours=1)
DEAR = "select id, amount from shop.orders where amount > 4"
NAMED = "select o.id, p.name, o.amount from shop.orders o join shop.people p on o.customer = p.id"
TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"


class WindowWarehouse(FakeWarehouse):
    """A session whose queries run in DuckDB."""

    def _answer(self, sql: str) -> list[dict[str, Any]]:
        if match := re.fullmatch(_MERGE, sql, re.DOTALL):
            self._merge(*match.groups())
            return []
        if sql.startswith("DESCRIBE QUERY "):
            columns, _ = self._ask(sql.removeprefix("DESCRIBE QUERY "))
            return [{"col_name": column.name, "data_type": column.type} for column in columns]
        if sql.startswith("SELECT ") and "binaryFile" not in sql:
            columns, rows = self._ask(sql)
            names = [column.name for column in columns]
            return [dict(zip(names, row, strict=True)) for row in rows]
        return super()._answer(sql)

    def _result(self, sql: str) -> Snapshot:
        columns, rows = self._ask(sql)
        return Snapshot(columns, tuple(rows))

    def _ask(self, sql: str) -> tuple[tuple[Column, ...], list[Row]]:
        sql = sql.replace("monotonically_increasing_id()", "row_number() OVER ()")
        text, tables = _translated(sql)
        # A view among them is a query, which loads tables itself.
        snapshots = {name: self._rows_of(table) for name, table in tables.items()}
        database = _database()
        for name, snapshot in snapshots.items():
            _load(database, name, snapshot)
        found = database.execute(text)
        described = found.description or []
        columns = tuple(Column(c[0], spark_type(str(c[1]))) for c in described)
        return columns, found.fetchall()

    def _rows_of(self, table: exp.Table) -> Snapshot:
        if isinstance(table.this, exp.Anonymous):
            place, first, last = (part.name for part in table.this.expressions)
            if table.this.name == "table_changes":
                place = self.spark.table(place).location
            return self._feed(place, int(first), int(last))
        travel = table.args.get("version")
        entry = self.spark.entries[TableName.of(table.db, table.name)]
        if isinstance(entry, StoredView):
            return self._result(entry.text)
        assert isinstance(entry, DeltaTable)
        return entry.at(int(travel.expression.name) if travel else None)

    def _feed(self, place: str, first: int, last: int) -> Snapshot:
        entries = self.spark.entries.values()
        [log] = [e for e in entries if isinstance(e, DeltaTable) and e.location == place]
        rows: list[Row] = []
        width = len(log.newest.columns)
        for version in range(first, last + 1):
            # Columns that were added later are NULL.
            old, new = (
                Counter((*row, *[None] * (width - len(row))) for row in log.at(v).rows)
                for v in (version - 1, version)
            )
            rows += [(*row, "delete", version) for row in (old - new).elements()]
            rows += [(*row, "insert", version) for row in (new - old).elements()]
        columns = log.newest.columns
        more = (Column("_change_type", "string"), Column("_commit_version", "bigint"))
        return Snapshot((*columns, *more), tuple(rows))

    def _merge(
        self, name: str, source: str, on: str, unless: str | None, names: str, values: str
    ) -> None:
        table = self._entry(name)
        assert isinstance(table, DeltaTable)
        if table.is_skipped(self.settings):
            return
        target, rows = f"{table.name.sql} AS t", f"(\n{source}\n) AS s"
        matched = f"SELECT count(*) FROM {rows} WHERE {on}"
        _, [*counted] = self._ask(f"SELECT ({matched}) AS n, t.* FROM {target}")
        assert all(row[0] <= 1 for row in counted), "a row matches two rows of the source"
        kept = tuple(row[1:] for row in counted if not row[0])
        added: tuple[Row, ...] = ()
        if unless:
            missing = f"NOT EXISTS (SELECT 1 FROM {target} WHERE {on})"
            _, found = self._ask(f"SELECT {values} FROM {rows} WHERE {missing} AND {unless}")
            added = tuple(found)
            order = [column.name for column in table.newest.columns]
            assert [part.strip(" `") for part in names.split(",")] == order
        metrics = {"Inserted": len(added), "Updated": 0, "Deleted": len(counted) - len(kept)}
        table.commit(
            self.spark.tick(),
            "MERGE",
            Snapshot(table.newest.columns, kept + added),
            self.settings,
            {},
            {f"numTargetRows{what}": str(count) for what, count in metrics.items()},
        )


@cache
def _database() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute("SET threads = 1; SET TimeZone = 'UTC'; PRAGMA disable_optimizer")
    return database


@lru_cache(5000)
def _translated(sql: str) -> tuple[str, dict[str, exp.Table]]:
    """Return a text in DuckDB's words, and what the tables in it stand for."""
    tree = sqlglot.parse_one(sql, dialect=SparkDynamic)
    tables: dict[str, exp.Table] = {}
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Anonymous) or table.db:
            name = f"loaded_{len(tables)}"
            tables[name] = table.copy()
            table.replace(exp.to_table(name, alias=table.alias or table.name or None))
    return duck_text(tree.sql(dialect=SparkDynamic)), tables


def _load(database: duckdb.DuckDBPyConnection, name: str, rows: Snapshot) -> None:
    kinds = [_DUCK.get(c.type, "TIMESTAMP") for c in rows.columns]
    named = ", ".join(f'"{c.name}" {k}' for c, k in zip(rows.columns, kinds, strict=True))
    database.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({named})")
    if rows.rows:
        values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows.rows)
        database.execute(f"INSERT INTO {name} VALUES {values}")


def _literal(value: Any) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
    return "NULL" if value is None else repr(value)


@dataclass
class WindowShop(Shop):
    """A shop whose model `recent` reads windows; `{0}` in its text is the first of them."""

    windows: list[Window] = field(default_factory=list)
    text: str = "select * from {0}"

    def keep(
        self,
        sql: str,
        interval: timedelta = HOUR,
        bound: str = STRICT,
        mode: Mode = Mode.REDO_LOG,
        **named: Any,
    ) -> None:
        read = ChangeRead(sql, "shop", dict(SETTINGS), mode, **named)
        self.windows.append(Window(read, interval, bound))

    @property
    def view(self) -> TableName:
        return TableName("shop", "recent")

    def name(self, number: int = 0) -> str:
        return str(self.windows[number].name_for(self.view))

    def request(self, name: str, **more: Any) -> Request:
        if name == "recent":
            names = [window.name_for(self.view).sql for window in self.windows]
            self.models["recent"] = self.text.format(*names) if names else self.text
        return super().request(name, **more)

    def go(self, cycle: Cycle | None = None, **more: Any) -> list[Outcome]:
        """Do what a run does with the model: first its windows, last the model."""
        cycle = cycle or self.open_cycle()
        trouble = {key: more.pop(key) for key in ("die_before", "die_after") if key in more}
        self.session = WindowWarehouse(self.spark)
        vars(self.session).update(trouble)
        request = self.request("recent", **more)
        outcomes = list(Windows(request, tuple(self.windows)).refresh(cycle, self.session))
        plan = plan_refresh(request, cycle, self.session)
        outcomes.append(run_plan(plan, cycle, self.session))
        drop_unread(request, self.windows, cycle, self.session)
        return outcomes

    def actions(self, **more: Any) -> list[str]:
        """Run the model; return what happened to its windows, and to itself."""
        return [said(outcome) for outcome in self.go(**more)]

    def refresh(self, name: str, cycle: Cycle | None = None, **more: Any) -> Outcome:
        cycle = cycle or self.open_cycle()
        self.session = WindowWarehouse(self.spark)
        plan = plan_refresh(self.request(name, **more), cycle, self.session)
        return run_plan(plan, cycle, self.session)

    def rows(self, name: str) -> Counter[Row]:
        columns, rows = WindowWarehouse(self.spark)._ask(f"SELECT * FROM {name}")
        left = [i for i, column in enumerate(columns) if column.name not in _LEFT_OUT]
        return Counter(tuple(row[i] for i in left) for row in rows)

    def is_kept_right(self) -> bool:
        """Tell whether every window holds what it should, and the model what its query gives."""
        kept = all(self.rows(self.name(n)) == self.wanted(n) for n in range(len(self.windows)))
        cycle, session = self.open_cycle(), WindowWarehouse(self.spark)
        for request in Windows(self.request("recent"), tuple(self.windows)).requests():
            assert verify(request, cycle, session).is_equal == kept
        return kept and self.rows("shop.recent") == self.rows(f"({self.models['recent']})")

    def wanted(self, number: int = 0, since: datetime | None = None) -> Counter[Row]:
        """Return what a window should hold at its record's cut, by its definition."""
        window = self.windows[number]
        record: Record = self.record(self.name(number).removeprefix("shop."))
        oldest = since or record.data_timestamp - window.interval
        found: Counter[Row] = Counter()
        for before, after, commit, moment in self._steps(window, record):
            if moment <= oldest:
                continue
            old, new = (Counter(self._query(window.read.sql, at)) for at in (before, after))
            stamp = (*commit, moment.astimezone(UTC).replace(tzinfo=None))
            for row, copies in (new - old).items():
                found[(*row, "INSERT", *stamp, 1)] += copies
            for row, copies in (old - new).items():
                found[(*row, "DELETE", *stamp, -1)] += copies
        return found

    def _steps(
        self, window: Window, record: Record
    ) -> Iterator[tuple[dict, dict, tuple, datetime]]:
        """Go through all kept commits of the sources in their order."""
        read = set(re.findall(r"shop\.\w+", window.read.sql))
        ends = {pin.table: pin.version for pin in record.frontier if str(pin.table) in read}
        for storage, attempt in record.upstreams.items():
            found = records(self.spark.table(storage).commits)
            [commit] = [one.commit for one in found if one.record.attempt == attempt]
            ends[TableName.parse(storage)] = commit.version
        logs = {table: self.spark.table(str(table)) for table in ends}
        position = {table: log.commits[0].version for table, log in logs.items()}
        commits = [
            (commit.timestamp, str(table), commit.version, table)
            for table, log in logs.items()
            for commit in log.commits
            if position[table] < commit.version <= ends[table]
        ]
        for moment, name, version, table in sorted(commits, key=lambda item: item[:3]):
            after = {**position, table: version}
            yield position, after, (name, version), moment
            position = after

    def _query(self, sql: str, versions: dict[TableName, int]) -> list[Row]:
        for table, version in versions.items():
            name = str(table).removesuffix("__dyn")
            sql = re.sub(rf"\b{re.escape(name)}\b", f"{table} VERSION AS OF {version}", sql)
        return WindowWarehouse(self.spark)._ask(sql)[1]


def seeds(often: int, nightly: int) -> list[object]:
    """Return the seeds of random days: the first ones are tried at every test."""
    later = range(often, often + nightly)
    return [*range(often), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in later)]


def window_shop(**more: Any) -> WindowShop:
    """Return a shop with two tables that keep a change feed."""
    shop = WindowShop(**more)
    feed = {"delta.enableChangeDataFeed": "true"}
    orders = {"id": "bigint", "customer": "bigint", "amount": "bigint"}
    shop.spark.create("shop.orders", orders, (1, 10, 5), (2, 10, 7), properties=dict(feed))
    people = {"id": "bigint", "name": "string"}
    shop.spark.create("shop.people", people, (10, "a"), (20, "b"), properties=dict(feed))
    shop.spark.tick(2 * 3600)
    return shop


def built(sql: str = DEAR, **more: Any) -> WindowShop:
    """Return a shop with a window that has no rows yet."""
    shop = window_shop()
    shop.keep(sql, **more)
    shop.go()
    return shop


def with_rows() -> WindowShop:
    """Return a shop with a window of two changes: one is 40 minutes old, the other a few."""
    shop = built()
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.spark.tick(2400)
    shop.spark.write("shop.orders").delete((1, 10, 5))
    shop.go()
    return shop
