"""Change queries over random histories: what they show leads from one state to the next.

Checked on the SQL that the engine writes, run by DuckDB: the old result and the changes make the
new one; net changes are minimal; two intervals make the long one; the redo log passes through the
state after every commit; append_only shows what is inserted for the first time (computed here by
its definition); contents and changes integrate to the table, also by key; windows of changes that
move hold what a change query shows.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from unittest import mock

import duckdb

from fuzz.case import random_case
from fuzz.duck import Bag, added, duck_sql
from fuzz.history import KEY, SCHEMA, DuckWarehouse, Log, as_bag, keyed, random_logs
from fuzz.schemas import Row
from fuzz.slides import check_slide
from spark_dynamic.changes import question
from spark_dynamic.changes.integrate import latest, own_columns, summed
from spark_dynamic.changes.read import ChangeRead, Mode, Position, change_select
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import Pin, Verdict
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Column

Versions = dict[str, int]


@dataclass
class Counts:
    """What the cases have exercised."""

    cases: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)

    def summary(self) -> str:
        """Return the counts as lines."""
        lines = [f"{self.cases} cases"]
        lines += [f"  {count:6d} {name}" for name, count in self.shapes.most_common() if count]
        return "\n".join(lines + [f"  {n:6d} skipped: {m}" for m, n in self.skipped.items()])


@contextmanager
def spark_agrees() -> Iterator[None]:
    """Leave the guard out: there is no Spark to ask."""
    with mock.patch.object(question, "judge", lambda *_: Verdict("")):
        yield


class Checked:
    """One query over one history."""

    def __init__(self, seed: int, duck: DuckWarehouse, counts: Counts) -> None:
        self.rng = random.Random(seed)
        # DISTINCT shows any one of equal texts, so they have to look the same.
        case = random_case(seed, has_collations=False)
        self.sql = case.sql
        if self.rng.random() < 0.2:
            # What the rules do not cover is compared as a whole.
            self.sql = f"SELECT DISTINCT * FROM ({case.sql}) AS whole"
        self.duck = duck
        self.counts = counts
        tables = dict(case.tables)
        self.is_keyed = self.rng.random() < 0.5
        self.logs = random_logs(self.rng, keyed(tables) if self.is_keyed else tables)
        duck.load_history(self.logs)
        self.cycle = Cycle("fuzz", duck.now(), KnownState())
        self.text = duck_sql(self.sql)

    def check(self) -> None:
        try:
            self.result(self.newest())
        except duckdb.Error:
            self.counts.skipped["not comparable"] += 1
            return
        try:
            self.modes()
        except EngineError as error:
            self.counts.skipped[error.code] += 1
            # A random query that has no plan: ids cannot travel through it.
            without_plan = ("SYNTAX_NOT_KNOWN", "FLOAT_DECIDES")
            refused = error.code == "ROW_KEYS_NOT_USABLE" and any(
                code in str(error) for code in without_plan
            )
            known = ("COLUMN_NAME_TWICE", "CHANGES_NOT_KNOWN")
            assert refused or error.code in known, error

    def modes(self) -> None:
        read = ChangeRead(self.sql, SCHEMA, {})
        start, middle, end = self.points()
        old, new = self.result(start), self.result(end)
        net = self.net(read, start, end)
        assert added(old, net) == new, "min_delta"
        first, second = self.net(read, start, middle), self.net(read, middle, end)
        assert added(first, second) == net, "two intervals"
        if self.is_keyed and "DISTINCT * FROM (" not in self.sql:
            named = ChangeRead(self.sql, SCHEMA, {}, row_keys=self.keys(self.sql))
            by_id = self.net(named, start, end)
            assert by_id == net, "row_keys"
            self.counts.shapes["row_keys"] += 1
        self.integrates(read, start, end, new)
        if self.is_keyed:
            self.integrates_by_key(start, end)
        self.redo(read, start, end)
        self.appended(self.sql, start, end)
        # Few random queries are monotonic.
        monotonic = self.monotonic()
        self.appended(monotonic, start, end)
        if self.is_keyed:
            self.appended(monotonic, start, end, by_key=True)
        self.narrowed(start, end)
        if self.counts.cases % 3 == 0:
            self.slides(monotonic)
        self.counts.cases += 1

    def slides(self, monotonic: str) -> None:
        """Let windows of the query move, with its rows named by keys and by their contents."""
        one, two, three = self.points()
        begins, ends = (one, two), (two, three)
        if self.rng.random() < 0.5:
            # They overlap, or one of their ends stays.
            begins, ends = ((one, one), (two, three)), ((one, two), (three, three))
            begins, ends = self.rng.choice((begins, ends))
        reads = [(ChangeRead(self.sql, SCHEMA, {}), False)]
        if self.is_keyed and "DISTINCT * FROM (" not in self.sql:
            reads.append((replace(reads[0][0], row_keys=self.keys(self.sql)), False))
        reads.append((ChangeRead(monotonic, SCHEMA, {}, Mode.APPEND_ONLY), True))
        for read, only_inserts in reads:
            asked = question.ask(read, self.cycle, self.duck)
            if not asked.is_exact:
                continue
            between = partial(self.select, read)
            check_slide(self.duck, asked.layout, between, begins, ends, only_inserts)
            self.counts.shapes["slides"] += 1

    def narrowed(self, start: Versions, end: Versions) -> None:
        """Few random queries use a column of a table, leave it out, and do nothing else."""
        rng = random.Random(self.sql)
        name = rng.choice(sorted(self.logs))
        shown, used = rng.sample(list(self.logs[name].table.columns), 2)
        sql = f"SELECT {shown} FROM {name} WHERE {used} IS NOT NULL"
        net = self.net(ChangeRead(sql, SCHEMA, {}), start, end)
        old, new = (
            self.duck.query_over(duck_sql(sql), {name: self.logs[name].versions[at[name]]})
            for at in (start, end)
        )
        assert added(old, net) == new, "narrowed"

    def monotonic(self) -> str:
        one, other = (self.rng.choice(sorted(self.logs)) for _ in range(2))
        if self.rng.random() < 0.5:
            return f"SELECT * FROM {one}"
        return f"SELECT a.*, b.k AS other_k FROM {one} a JOIN {other} b ON a.k = b.k"

    def keys(self, sql: str) -> dict[TableName, tuple[str, ...]]:
        """Return the key of every table that a query reads."""
        used = {name for name in self.logs if re.search(rf"\b{name}\b", sql)}
        return {TableName(SCHEMA, name): (KEY,) for name in used}

    # Points

    def newest(self) -> Versions:
        return {name: len(log.commits) - 1 for name, log in self.logs.items()}

    def points(self) -> tuple[Versions, Versions, Versions]:
        """Return three states of all tables in the order of time."""
        moments = sorted(c.timestamp for log in self.logs.values() for c in log.commits)
        chosen = sorted(self.rng.choice(moments) for _ in range(3))
        chosen[0] = self.rng.choice((chosen[0], moments[0]))
        chosen[2] = self.rng.choice((chosen[2], moments[-1]))
        one, two, three = (
            {
                name: max(c.version for c in log.commits if c.timestamp <= moment)
                for name, log in self.logs.items()
            }
            for moment in chosen
        )
        return one, two, three

    def position(self, versions: Versions) -> Position:
        return {
            TableName(SCHEMA, name): Pin(
                TableName(SCHEMA, name),
                name,
                version,
                self.logs[name].commits[version].timestamp,
            )
            for name, version in versions.items()
        }

    def result(self, versions: Versions) -> Bag:
        rows = {name: self.logs[name].versions[version] for name, version in versions.items()}
        return self.duck.query_over(self.text, rows)

    # Modes

    def select(
        self, read: ChangeRead, start: Versions | None, end: Versions, initial: bool = False
    ) -> str:
        then = None if start is None else self.position(start)
        sql = change_select(read, then, self.position(end), self.cycle, self.duck, initial)
        for shape in (
            "ADDED_ONLY", "REMOVED_ONLY", "MINIMAL", "MINIMIZE", "DIFFERENCE", "APPEND_ONLY",
            "INITIAL_ROWS",
        ):  # fmt: skip
            self.counts.shapes[f"{read.mode.value} {shape}"] += f"/* {shape} */" in sql
        return sql

    def net(self, read: ChangeRead, start: Versions, end: Versions) -> Bag:
        rows = self.duck.answer(self.select(read, start, end))
        ids = Counter((row[-1], row[-3]) for row in rows)
        assert all(count == 1 for count in ids.values()), "one id for two rows"
        contents = Counter((row[:-3], row[-1]) for row in rows)
        assert all(count == 1 for count in contents.values()), "not minimal"
        actions: dict[str, set[str]] = {}
        for row in rows:
            actions.setdefault(row[-1], set()).add(row[-3])
        for row in rows:
            assert row[-2] == (len(actions[row[-1]]) == 2), "is_update"
        return as_bag((row[:-3] for row in rows), (_weight(row[-3]) for row in rows))

    def redo(self, read: ChangeRead, start: Versions, end: Versions) -> None:
        """Follow the log through the state after every commit."""
        read = ChangeRead(read.sql, SCHEMA, {}, Mode.REDO_LOG)
        rows = self.duck.answer(self.select(read, start, end))
        places = [(row[-2].replace(tzinfo=None), row[-4], row[-3]) for row in rows]
        state, versions = self.result(start), dict(start)
        for at, name, version in self.commits(start, end):
            versions[name] = version
            commit = (at.replace(tzinfo=None), f"{SCHEMA}.{name}", version)
            here = [row for row, place in zip(rows, places, strict=True) if place == commit]
            change = as_bag((row[:-7] for row in here), (row[-1] for row in here))
            state = added(state, change)
            assert state == self.result(versions), f"redo_log at {name} {version}"
        total = as_bag((row[:-7] for row in rows), (row[-1] for row in rows))
        assert added(self.result(start), total) == self.result(end), "redo_log"
        assert all(row[-7] == ("INSERT" if row[-1] == 1 else "DELETE") for row in rows)

    def commits(self, start: Versions, end: Versions) -> list[tuple[object, str, int]]:
        return sorted(
            (commit.timestamp, name, commit.version)
            for name, log in self.logs.items()
            for commit in log.commits
            if start[name] < commit.version <= end[name]
        )

    def appended(self, query: str, start: Versions, end: Versions, by_key: bool = False) -> None:
        keys = self.keys(query) if by_key else {}
        read = ChangeRead(query, SCHEMA, {}, Mode.APPEND_ONLY, row_keys=keys)
        try:
            sql = self.select(read, start, end)
        except EngineError as error:
            assert error.code == "NOT_MONOTONIC", error
            return
        rows = self.duck.answer(sql)
        assert {row[-3] for row in rows} <= {"INSERT"}
        found = as_bag((row[:-3] for row in rows), (1 for _ in rows))
        expected = self.first_time(duck_sql(query), start, end, by_key)
        assert found == expected, f"append_only\n{sql}"
        self.counts.shapes["append_only by key"] += by_key

    def first_time(self, text: str, start: Versions, end: Versions, by_key: bool) -> Bag:
        """Add up, commit by commit, what the result gains by new rows of one table."""
        fresh = {
            name: first_inserts(log, start[name], end[name], by_key)
            for name, log in self.logs.items()
        }
        total: Bag = Counter()
        versions = dict(start)
        for _, name, version in self.commits(start, end):
            versions[name] = version
            rows = {n: list(self.logs[n].versions[v]) for n, v in versions.items()}
            whole = self.duck.query_over(text, rows)
            for row in fresh[name].get(version, ()):
                rows[name].remove(row)
            without = self.duck.query_over(text, rows)
            gained = added(whole, Counter({row: -n for row, n in without.items()}))
            total = added(total, gained)
        return total

    def integrates(self, read: ChangeRead, start: Versions, end: Versions, new: Bag) -> None:
        mode = self.rng.choice((Mode.MIN_DELTA, Mode.REDO_LOG))
        read = ChangeRead(read.sql, SCHEMA, {}, mode)
        sql = self.select(read, start, end, initial=True)
        described = self.duck.rows(f"DESCRIBE QUERY {sql}")
        columns = [Column(row["col_name"], row["data_type"]) for row in described]
        table = summed(f"(\n{sql}\n)", own_columns(columns), mode is Mode.REDO_LOG)
        rows = self.duck.answer(table)
        assert as_bag(rows, (1 for _ in rows)) == new, "integrate"

    def integrates_by_key(self, start: Versions, end: Versions) -> None:
        """The last changes of all keys are the table, also if updates have their new row alone."""
        name = self.rng.choice(sorted(self.logs))
        sql = f"SELECT * FROM {name}"
        as_upserts = self.counts.shapes["by key"] % 2 == 1
        read = ChangeRead(sql, SCHEMA, {}, Mode.REDO_LOG, upserts=as_upserts)
        if as_upserts:
            named = replace(read, row_keys=self.keys(sql)), replace(read, unique_key=(KEY,))
            self.names_the_same(named, start, end)
            read = self.rng.choice(named)
        sql = self.select(read, start, end, initial=True)
        described = self.duck.rows(f"DESCRIBE QUERY {sql}")
        columns = [Column(row["col_name"], row["data_type"]) for row in described]
        table = latest(f"(\n{sql}\n)", own_columns(columns), [KEY], [], "", columns)
        rows = self.duck.answer(table)
        expected = self.logs[name].versions[end[name]]
        assert as_bag(rows, (1 for _ in rows)) == as_bag(expected, (1 for _ in expected)), (
            f"integrate by key\n{table}"
        )
        self.counts.shapes["by key"] += 1
        self.counts.shapes["upserts"] += as_upserts

    def names_the_same(
        self, reads: tuple[ChangeRead, ...], start: Versions, end: Versions
    ) -> None:
        """Keys of the result and keys of the source show the same rows as updated."""
        mode = self.rng.choice((Mode.MIN_DELTA, Mode.REDO_LOG))
        one, other = (
            _unnamed(self.duck.answer(self.select(replace(r, mode=mode), start, end)), mode)
            for r in reads
        )
        assert one == other, "row_keys and unique_key"


def first_inserts(log: Log, start: int, end: int, by_key: bool) -> dict[int, list[Row]]:
    """Return the rows of each version that were inserted for the first time, by definition."""
    level: Counter[object] = Counter()
    highest: Counter[object] = Counter()
    found: dict[int, list[Row]] = {}
    for version in range(start + 1, end + 1):
        events = log.events[version]
        is_feed = log.has_feed and log.commits[version].parameters.get("mode") != "Overwrite"
        if is_feed:
            signs = {"insert": 1, "delete": -1}
            weighted = [(row, signs.get(kind, 0)) for kind, row in events]
        else:
            # Only the difference of two versions is known.
            weighted = [(row, 1) for row in log.versions[version]]
            weighted += [(row, -1) for row in log.versions[version - 1]]
        # As texts, 0.0 and -0.0 are two values, as they are to a hash.
        rows = {repr(row): row for row, _ in weighted}
        change: Counter[str] = Counter()
        for row, weight in weighted:
            change[repr(row)] += weight
        # The key is the last column.
        named = {text: row[-1] if by_key else text for text, row in rows.items()}
        for text, count in change.items():
            level[named[text]] += count
        for text, count in change.items():
            name = named[text]
            new = max(0, level[name]) - highest[name] if count > 0 else 0
            if new > 0:
                found.setdefault(version, []).extend([rows[text]] * new)
                highest[name] = level[name]
    return found


def _unnamed(rows: list[Row], mode: Mode) -> Counter[str]:
    """Return changes without their ids: how these are made differs."""
    place = -5 if mode is Mode.REDO_LOG else -1
    return Counter(repr((*row[:place], *row[len(row) + place + 1 :])) for row in rows)


def _weight(action: str) -> int:
    return 1 if action == "INSERT" else -1


def run_changes(seed: int, cases: int) -> Counts:
    """Check cases one by one; the first failure names its seed."""
    duck, counts = DuckWarehouse(), Counts()
    with spark_agrees():
        for number in range(cases):
            checked = Checked(seed + number, duck, counts)
            try:
                checked.check()
            except AssertionError as error:
                raise AssertionError(f"seed {seed + number}: {checked.sql}\n{error}") from error
    return counts
