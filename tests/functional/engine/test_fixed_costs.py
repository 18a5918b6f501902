"""Statements and Spark jobs of each action: they are what a small refresh costs."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from spark_shop import SparkShop
from tests.bags import bag

SETTINGS = ("SET", "RESET")
WRITES = (
    "INSERT", "MERGE", "UPDATE", "DELETE", "TRUNCATE", "COPY", "RESTORE",
    "CREATE TABLE", "CREATE OR REPLACE TABLE", "REPLACE TABLE",
)  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """What one refresh took: questions, views that hold changes, and Spark jobs.

    Settings and views that are dropped come on top; they cost next to nothing.
    """

    asked: int
    cached: int
    jobs: int


class Costs:
    """Refreshes a shop and counts."""

    def __init__(self, shop: SparkShop) -> None:
        self._shop = shop
        self._scheduler = shop.session.sparkContext._jsc.sc().dagScheduler()
        self._written: Counter[str] = Counter()

    def check(self, name: str, action: str, most: Cost, **more: Any) -> None:
        """Refresh a model; it may take so many jobs, and exactly so many statements."""
        found, asked = self.cost(name, action, **more)
        assert (found.asked, found.cached) == (most.asked, most.cached), (found, asked)
        assert found.jobs <= most.jobs, found

    def cost(self, name: str, action: str, **more: Any) -> tuple[Cost, list[str]]:
        """Refresh a model; return what it took, and what was asked."""
        before = self._scheduler.numTotalJobs()
        outcome = self._shop.refresh(name, **more)
        jobs = self._scheduler.numTotalJobs() - before
        assert outcome.plan.decision.action == action, str(outcome.plan.decision)
        changing = Counter(outcome.statements)
        asked = [sql for sql in self._shop.statements if sql not in changing]
        found = Cost(
            asked=len([sql for sql in asked if not sql.startswith(SETTINGS)]),
            cached=sum(sql.startswith("CACHE") for sql in outcome.statements),
            jobs=jobs,
        )
        written = [sql for sql in outcome.statements if sql.startswith(WRITES)]
        assert len(written) == outcome.plan.decision.writes, written
        self._written[name] += len(written)
        return found, asked

    def check_commits(self) -> None:
        """Require that every statement that wrote was one commit, and nothing else was."""
        for name in self._shop.models:
            found = self._shop.session.sql(f"SHOW TABLES LIKE '{name}__dyn*'").collect()
            histories = (f"DESCRIBE HISTORY {row['tableName']}" for row in found)
            commits = sum(self._shop.session.sql(sql).count() for sql in histories)
            assert commits == self._written[name], name


def test_what_each_action_costs(shop: SparkShop) -> None:
    shop.table("a", "k int, v int", "(1, 1)", "(2, 2)")
    shop.table("b", "k int, w int", "(1, 10)", "(2, 20)")
    shop.model("appended", "select k, v + 1 as v from a where v > 0")
    shop.model("joined", "select a.k, v, w from a join b on a.k = b.k")
    shop.model("grouped", "select k, sum(v) as total, count(*) as n from a group by k")
    shop.model("extremes", "select k, min(v) as least, max(v) as most from a group by k")
    costs = Costs(shop)

    # First builds: one CREATE TABLE, and the view.
    costs.check("appended", "FULL", Cost(asked=11, cached=0, jobs=7))
    costs.check("joined", "FULL", Cost(asked=13, cached=0, jobs=13))
    costs.check("grouped", "FULL", Cost(asked=11, cached=0, jobs=7))
    costs.check("extremes", "FULL", Cost(asked=11, cached=0, jobs=7))

    # Nothing changed: metadata is read, no job of Spark looks at rows, nothing is written.
    costs.check("appended", "NO_DATA", Cost(asked=6, cached=0, jobs=4))
    costs.check("joined", "NO_DATA", Cost(asked=8, cached=0, jobs=6))
    costs.check("grouped", "NO_DATA", Cost(asked=6, cached=0, jobs=4))

    # Inserts only: a blind append; or a MERGE of the groups, in which no extreme can have left.
    shop.run("INSERT INTO a VALUES (3, 3), (2, 9)")
    costs.check("appended", "INCREMENTAL", Cost(asked=9, cached=0, jobs=8))
    costs.check("joined", "INCREMENTAL", Cost(asked=12, cached=1, jobs=13))
    costs.check("grouped", "INCREMENTAL", Cost(asked=10, cached=1, jobs=13))
    costs.check("extremes", "INCREMENTAL", Cost(asked=10, cached=1, jobs=13))

    # Updates: the net change once, and a MERGE; the rows to look for are handed to every task,
    # which is a job of its own. Two extremes left.
    shop.run("UPDATE a SET v = v + 1 WHERE k < 3", "INSERT INTO b VALUES (3, 30)")
    costs.check("appended", "INCREMENTAL", Cost(asked=13, cached=1, jobs=18))
    costs.check("joined", "INCREMENTAL", Cost(asked=17, cached=3, jobs=26))
    costs.check("grouped", "INCREMENTAL", Cost(asked=13, cached=1, jobs=14))
    costs.check("extremes", "INCREMENTAL", Cost(asked=14, cached=3, jobs=23))

    # Rebuilds: asked for, and after an edit that keeps the columns, or does not.
    costs.check("appended", "FULL", Cost(asked=10, cached=0, jobs=10), full_refresh=True)
    costs.check("grouped", "FULL", Cost(asked=10, cached=0, jobs=11), full_refresh=True)
    shop.model("appended", "select k, v + 2 as v from a where v > 0")
    costs.check("appended", "REINITIALIZE", Cost(asked=13, cached=0, jobs=10))
    shop.model("grouped", "select k, sum(v) as total from a group by k")
    costs.check("grouped", "REINITIALIZE", Cost(asked=14, cached=0, jobs=9))
    costs.check_commits()


def test_with_a_pre_hook_nothing_is_computed_twice(shop: SparkShop) -> None:
    """The hook may write to the sources, and the refresh still writes what was planned."""
    shop.table("a", "k int, v int", "(1, 1)", "(2, 2)")
    shop.table("b", "k int, w int", "(1, 10)", "(2, 20)")
    shop.model("joined", "select a.k, v, w from a join b on a.k = b.k")
    shop.model("extremes", "select k, min(v) as least, max(v) as most from a group by k")
    costs = Costs(shop)
    for name in shop.models:
        shop.refresh(name)

    took: list[list[Cost]] = []
    # The first refresh after a build asks for more than later ones.
    for hook in (None, None, lambda: None):
        shop.run("UPDATE a SET v = v + 1 WHERE k < 3")
        took.append([costs.cost(name, "INCREMENTAL", hook=hook)[0] for name in shop.models])
        assert [shop.difference(name) for name in shop.models] == [[], []]
    assert took[2] == took[1]

    for name in shop.models:
        shop.run("UPDATE a SET v = v + 1 WHERE k < 3")
        wanted = shop.session.sql(shop.models[name][0]).collect()
        shop.refresh(name, hook=lambda: shop.run("UPDATE a SET v = 100", "CLEAR CACHE"))
        assert bag(shop.session.table(name).collect()) == bag(wanted)
        assert shop.session.sql("SHOW VIEWS LIKE '__dyn*'").collect() == []
        shop.check(name)
