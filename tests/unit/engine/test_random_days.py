"""Random days in a shop: whatever people and crashes do, every table equals its recorded cut."""

import random
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from fake_delta import DeltaTable
from fake_shop import Shop, small_shop
from fake_warehouse import FakeWarehouse, Killed, OtherTable
from fuzz.commit_mutants import COMMIT_MUTANTS
from fuzz.mutants import Mutant, planted

from spark_dynamic.clock import SKEW
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.history import records
from spark_dynamic.frontier.record import Record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.run import run_plan

ORDERS = {"id": "bigint", "customer": "bigint", "amount": "bigint"}
PEOPLE = {"id": "bigint", "name": "string"}
# Each model in two versions, upstreams first.
MODELS = {
    "totals": [
        "select customer, sum(amount) as total from shop.orders group by customer",
        "select customer, count(*) as total from shop.orders group by customer",
    ],
    "people": ["select id, name from shop.v", "select id, name as called from shop.v"],
    "big": [
        "select t.customer, t.total, o.id from shop.totals t join shop.orders o "
        "on o.customer = t.customer where t.total > 5",
        "select customer, total, 1 as id from shop.totals",
    ],
    "summary": [
        "select b.customer, p.id from shop.big b join shop.people p on p.id = b.customer",
        "select b.customer from shop.big b where b.customer in (select id from shop.people)",
    ],
}
VIEWS = [
    "select id, name from shop.customers",
    "select id, name from shop.customers where id > 10",
]

pytestmark = pytest.mark.thorough


@dataclass
class Day:
    """A shop, a source of chance, and the query behind every refresh that was ever committed."""

    chance: random.Random
    shop: Shop = field(default_factory=lambda: small_shop(**{k: v[0] for k, v in MODELS.items()}))
    written: dict[str, Record] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shop.spark.create_view("shop.v", VIEWS[0])

    def row(self, table: str) -> tuple[int | str, ...]:
        number = self.chance.randrange(1, 40)
        if table == "shop.customers":
            return (number, self.chance.choice("abc"))
        return (number, self.chance.choice((10, 20, 30)), self.chance.randrange(1, 9))

    def something_happens(self) -> None:
        """Let people write to sources, change definitions, and meddle; clocks may be ahead."""
        spark, ahead = self.shop.spark, self.ahead()
        spark.clock += ahead
        self._happens()
        spark.clock -= ahead

    def _happens(self) -> None:
        spark, chance = self.shop.spark, self.chance
        table = chance.choice(("shop.orders", "shop.customers"))
        write = spark.write(table)
        rows = list(spark.table(table).newest.rows)
        chance.shuffle(rows)
        match chance.randrange(12):
            case 0 | 1 | 2:
                write.append(self.row(table))
            case 3 if rows:
                write.delete(rows[0])
            case 4:
                write.overwrite(*rows)
            case 5:
                write.overwrite(*rows[1:], self.row(table))
            case 6:
                for _ in range(chance.randrange(1, 14)):
                    write.optimize()
            case 7:
                write.restore(chance.choice(list(spark.table(table).snapshots)))
            case 8:
                spark.drop(table)
                columns = ORDERS if table == "shop.orders" else PEOPLE
                spark.create(table, columns, *(self.row(table) for _ in range(3)))
            case 9:
                name = chance.choice(list(MODELS))
                self.shop.models[name] = chance.choice(MODELS[name])
            case 10:
                spark.create_view("shop.v", chance.choice(VIEWS))
            case 11:
                self.meddle()

    def meddle(self) -> None:
        """Let somebody write to a storage table, or drop one."""
        spark = self.shop.spark
        found = [e for e in spark.entries.values() if isinstance(e, DeltaTable)]
        stores = [table for table in found if "__dyn" in table.name.name]
        if not stores:
            return
        table = self.chance.choice(stores)
        if self.chance.random() < 0.5:
            spark.write(str(table.name)).overwrite(*table.newest.rows[1:])
        else:
            spark.drop(str(table.name))
            spark.entries.pop(table.name.sibling(table.name.name.split("__dyn")[0]), None)

    def ahead(self) -> timedelta:
        """Return how far a clock is ahead: mostly not at all, else by minutes or days."""
        if self.chance.random() >= 0.15:
            return timedelta()
        return timedelta(days=self.chance.choice((0.002, 1, 40)))

    def run(self, names: list[str]) -> dict[str, str]:
        """Refresh models in one cycle, perhaps killed, perhaps with a clock that is ahead.

        Note what each refresh was made of.
        """
        spark, ahead = self.shop.spark, self.ahead()
        spark.clock += ahead
        try:
            return self._run(names)
        finally:
            spark.clock -= ahead

    def _run(self, names: list[str]) -> dict[str, str]:
        shop = self.shop
        cycle, session = shop.open_cycle(), FakeWarehouse(shop.spark)
        if self.chance.random() < 0.3:
            session.die_before = self.chance.randrange(1, 90)
        found = {}
        try:
            for name in names:
                plan = plan_refresh(shop.request(name), cycle, session)
                found[name] = run_plan(plan, cycle, session).plan.decision.action
        except Killed:
            found = {}
        except EngineError as error:
            # A view that was dropped by hand is a source that is missing.
            assert error.code == "SOURCE_MISSING"
        for recorded in self.records():
            record = recorded
            if record.attempt not in self.written:
                self.written[record.attempt] = record
                self.queries[record.attempt] = shop.models[record.model.split(".")[-1]]
                self.views[record.attempt] = shop.spark.view("shop.v").text
        return found

    def records(self) -> list[Record]:
        entries = self.shop.spark.entries.values()
        tables = [entry for entry in entries if isinstance(entry, DeltaTable)]
        return [found.record for table in tables for found in records(table.commits)]

    def is_as_recorded(self, name: str) -> bool:
        """Evaluate the query of a table's newest refresh at the cut that it recorded."""
        shop, spark = self.shop, self.shop.spark
        record = shop.record(name)
        held = spark.read(f"select * from shop.{name}")
        before = dict(spark.entries)
        try:
            for pin in record.frontier:
                table = spark.entries.get(pin.table)
                if not isinstance(table, DeltaTable) or pin.version not in table.snapshots:
                    return True
                if table.commits[pin.version].timestamp != pin.committed_at:
                    return True
                snapshot = table.at(pin.version)
                spark.entries[pin.table] = OtherTable(
                    pin.table, "", snapshot.columns, snapshot.rows
                )
            used: dict[str, str] = {}
            if not self._write_out(name, record, used):
                return True
            spark.entries.pop(TableName("shop", name), None)
            return held == spark.read(self.queries[record.attempt])
        finally:
            spark.entries = before

    def _write_out(self, name: str, record: Record, used: dict[str, str]) -> bool:
        """Replace upstreams by their queries; False if two versions of one would be needed."""
        view = used.setdefault("v", self.views[record.attempt])
        if view != self.views[record.attempt]:
            return False
        self.shop.spark.create_view("shop.v", view)
        for storage, attempt in record.upstreams.items():
            upstream = storage.removeprefix("shop.").split("__dyn")[0]
            query = self.queries[attempt]
            if used.setdefault(upstream, query) != query:
                return False
            if not self._write_out(upstream, self.written[attempt], used):
                return False
            self.shop.spark.create_view(f"shop.{upstream}", query)
        return True


def check(seed: int, steps: int = 12) -> None:
    day = Day(random.Random(seed))
    everything = list(MODELS)
    for step in range(steps):
        for _ in range(day.chance.randrange(3)):
            day.something_happens()
        some = [name for name in everything if day.chance.random() < 0.7]
        found = day.run(some)
        for name, action in found.items():
            if action not in ("WAITING", "COVERED"):
                assert day.is_as_recorded(name), (seed, step, name, action)
    day.chance.random = lambda: 1.0  # type: ignore[method-assign]
    # Rows of writers whose clocks are ahead by minutes are late by as much.
    day.shop.spark.tick(SKEW.total_seconds())
    day.run(everything)
    last = day.run(everything)
    assert {name: day.shop.is_right(name) for name in everything} == dict.fromkeys(
        everything, True
    )
    assert set(last.values()) == {"NO_DATA"}, (seed, last)


@pytest.mark.parametrize("seed", range(6))
def test_a_random_day(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("mutant", COMMIT_MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_random_day_shows_a_bug_in_the_commit(mutant: Mutant) -> None:
    with planted(mutant), pytest.raises(AssertionError):
        for seed in range(6):
            check(seed)
