"""Statements and Spark jobs of each action: they are what a small refresh costs."""

from dataclasses import dataclass

from spark_shop import SparkShop


@dataclass(frozen=True)
class Cost:
    """What one refresh took."""

    asked: int
    written: int
    jobs: int


def cost(shop: SparkShop, name: str, action: str) -> Cost:
    scheduler = shop.session.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    outcome = shop.refresh(name)
    jobs = scheduler.numTotalJobs() - before
    assert outcome.plan.decision.action == action, str(outcome.plan.decision)
    settings = ("SET ", "RESET ")
    asked = [sql for sql in shop.statements if not sql.startswith(settings)]
    written = [sql for sql in outcome.statements if not sql.startswith((*settings, "DROP VIEW"))]
    return Cost(len(asked), len(written), jobs)


def test_what_each_action_costs(shop: SparkShop) -> None:
    shop.table("a", "k int, v int", "(1, 1)", "(2, 2)")
    shop.table("b", "k int, w int", "(1, 10)", "(2, 20)")
    shop.model("appended", "select k, v + 1 as v from a where v > 0")
    shop.model("joined", "select a.k, v, w from a join b on a.k = b.k")
    shop.model("grouped", "select k, sum(v) as total, count(*) as n from a group by k")
    names = ("appended", "joined", "grouped")
    for name in names:
        shop.check(name, "FULL")

    # Nothing changed: metadata is read, no job of Spark looks at rows, nothing is written.
    for name in names:
        found = cost(shop, name, "NO_DATA")
        assert found.written == 0
        assert found.jobs <= 10, found

    # Inserts only: one statement.
    shop.run("INSERT INTO a VALUES (3, 3)")
    found = cost(shop, "appended", "INCREMENTAL")
    assert found.written == 1
    assert found.jobs <= 16, found
    found = cost(shop, "joined", "INCREMENTAL")
    assert found.written == 2
    found = cost(shop, "grouped", "INCREMENTAL")
    assert found.written == 2
    assert found.jobs <= 30, found

    # Deletes and updates: the net change once, and a MERGE.
    shop.run("UPDATE a SET v = v + 1 WHERE k = 1", "INSERT INTO b VALUES (3, 30)")
    found = cost(shop, "appended", "INCREMENTAL")
    assert found.written == 2
    assert found.jobs <= 30, found
    found = cost(shop, "joined", "INCREMENTAL")
    assert found.written == 4
    assert found.jobs <= 45, found
