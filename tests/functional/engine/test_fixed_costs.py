"""Statements and Spark jobs of each action: they are what a small refresh costs."""

from dataclasses import dataclass
from typing import Any

from spark_shop import SparkShop

SETTINGS = ("SET", "RESET")
WRITES = (
    "INSERT", "MERGE", "UPDATE", "DELETE", "TRUNCATE", "COPY", "RESTORE",
    "CREATE TABLE", "CREATE OR REPLACE TABLE", "REPLACE TABLE",
)  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """What one refresh took: questions, cached views, and Spark jobs.

    Views that are dropped and settings come on top; they cost next to nothing.
    """

    asked: int
    cached: int
    jobs: int


class Costs:
    """Refreshes, each of which may take so much and no more."""

    def __init__(self, shop: SparkShop) -> None:
        self._shop = shop
        self._scheduler = shop.session.sparkContext._jsc.sc().dagScheduler()

    def check(self, name: str, action: str, most: Cost, **more: Any) -> None:
        commits = self._commits(name)
        before = self._scheduler.numTotalJobs()
        outcome = self._shop.refresh(name, **more)
        jobs = self._scheduler.numTotalJobs() - before
        assert outcome.plan.decision.action == action, str(outcome.plan.decision)
        changed = [sql for sql in outcome.statements if not sql.startswith(SETTINGS)]
        asked = [sql for sql in self._shop.statements if sql not in outcome.statements]
        found = Cost(
            asked=len([sql for sql in asked if not sql.startswith(SETTINGS)]),
            cached=len([sql for sql in changed if sql.startswith("CACHE")]),
            jobs=jobs,
        )
        writes = 1 if outcome.plan.decision.writes else 0
        assert len([sql for sql in changed if sql.startswith(WRITES)]) == writes, changed
        assert self._commits(name) == commits + writes
        print(name, action, found)
        assert (found.asked, found.cached) == (most.asked, most.cached), asked
        assert found.jobs <= most.jobs, found
        assert self._shop.difference(name) == []

    def _commits(self, name: str) -> int:
        """Count the commits of all tables behind a model."""
        tables = self._shop.session.sql(f"SHOW TABLES LIKE '{name}__dyn*'").collect()
        histories = (f"DESCRIBE HISTORY {table['tableName']}" for table in tables)
        return sum(self._shop.session.sql(sql).count() for sql in histories)


def test_what_each_action_costs(shop: SparkShop) -> None:
    shop.table("a", "k int, v int", "(1, 1)", "(2, 2)")
    shop.table("b", "k int, w int", "(1, 10)", "(2, 20)")
    shop.model("appended", "select k, v + 1 as v from a where v > 0")
    shop.model("joined", "select a.k, v, w from a join b on a.k = b.k")
    shop.model("grouped", "select k, sum(v) as total, count(*) as n from a group by k")
    shop.model("extremes", "select k, min(v) as least, max(v) as most from a group by k")
    costs = Costs(shop)

    # First builds: one CREATE TABLE, and the view.
    costs.check("appended", "FULL", Cost(99, 0, 99))
    costs.check("joined", "FULL", Cost(99, 0, 99))
    costs.check("grouped", "FULL", Cost(99, 0, 99))
    costs.check("extremes", "FULL", Cost(99, 0, 99))

    # Nothing changed: metadata is read, no job of Spark looks at rows, nothing is written.
    for name in shop.models:
        costs.check(name, "NO_DATA", Cost(99, 0, 99))

    # Inserts only: no row that is stored is read, but of groups.
    shop.run("INSERT INTO a VALUES (3, 3), (2, 9)")
    costs.check("appended", "INCREMENTAL", Cost(99, 0, 99))
    costs.check("joined", "INCREMENTAL", Cost(99, 0, 99))
    costs.check("grouped", "INCREMENTAL", Cost(99, 0, 99))
    costs.check("extremes", "INCREMENTAL", Cost(99, 0, 99))

    # Deletes and updates: the net change once, and a MERGE. Two extremes left.
    shop.run("UPDATE a SET v = v + 1 WHERE k < 3", "INSERT INTO b VALUES (3, 30)")
    costs.check("appended", "INCREMENTAL", Cost(99, 0, 99))
    costs.check("joined", "INCREMENTAL", Cost(99, 0, 99))
    costs.check("grouped", "INCREMENTAL", Cost(99, 0, 99))
    costs.check("extremes", "INCREMENTAL", Cost(99, 0, 99))

    # Rebuilds: asked for, and after an edit that keeps the columns or does not.
    costs.check("appended", "FULL", Cost(99, 0, 99), full_refresh=True)
    costs.check("grouped", "FULL", Cost(99, 0, 99), full_refresh=True)
    shop.model("appended", "select k, v + 2 as v from a where v > 0")
    costs.check("appended", "REINITIALIZE", Cost(99, 0, 99))
    shop.model("grouped", "select k, sum(v) as total from a group by k")
    costs.check("grouped", "REINITIALIZE", Cost(99, 0, 99))
