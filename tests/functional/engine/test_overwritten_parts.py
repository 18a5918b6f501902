"""Every way in which Delta overwrites: what history tells of it, and what a refresh reads."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from spark_shop import SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.frontier.compare import FEED_WEIGHT, change_feed, row_count
from spark_dynamic.frontier.history import net_rows, replaces_part
from spark_dynamic.names import TableName
from spark_dynamic.refresh import cost
from spark_dynamic.warehouse import Commit

DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


@contextmanager
def dynamic(shop: SparkShop) -> Iterator[None]:
    shop.run(f"SET {DYNAMIC}=dynamic")
    yield
    shop.run(f"RESET {DYNAMIC}")


def write(shop: SparkShop, rows: str, **options: str) -> None:
    """Overwrite by a data frame, as jobs outside dbt do."""
    frame = shop.session.sql(f"SELECT CAST(d AS int) AS d, CAST(v AS int) AS v FROM {rows}")
    # As an option, a condition of replaceOn names the new rows by an alias.
    frame.alias("s").write.format("delta").mode("overwrite").options(**options).saveAsTable("t")


ROWS = "(SELECT 4 AS d, id AS v FROM range({}))"
IN_SQL = {
    "static partition": "INSERT OVERWRITE t PARTITION (d = 3) SELECT id FROM range(9)",
    "static partition, emptied": "INSERT OVERWRITE t PARTITION (d = 3) SELECT id FROM range(0)",
    "replace a partition": "INSERT INTO t REPLACE WHERE d = 4 SELECT 4, id FROM range(9)",
    "replace some rows": "INSERT INTO t REPLACE WHERE v = 55 SELECT 5, 55 FROM range(3)",
    "replace rows of one partition": "INSERT INTO t REPLACE WHERE v = 55 AND d = 5 SELECT 5, 55",
    "replace no row": "INSERT INTO t REPLACE WHERE v = 5555 SELECT 5, 5555",
    "delete a partition": "DELETE FROM t WHERE d = 6",
    "delete a row": "DELETE FROM t WHERE v = 18",
    "merge": "MERGE INTO t USING (SELECT 7 AS d, 7 AS v UNION ALL SELECT 8, 888) s ON t.v = s.v "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
    "replace everything": "INSERT INTO t REPLACE WHERE true SELECT 5, id FROM range(20)",
    "overwrite": "INSERT OVERWRITE t SELECT id % 10, id FROM range(100)",
    "overwrite by nothing": "INSERT OVERWRITE t SELECT 1, 1 WHERE false",
    "append": "INSERT INTO t SELECT id % 10, id FROM range(100)",
    "truncate": "TRUNCATE TABLE t",
    "append again": "INSERT INTO t SELECT id % 10, id FROM range(100)",
    "restore": "RESTORE TABLE t TO VERSION AS OF 3",
    "delete everything": "DELETE FROM t",
    "create or replace as": "CREATE OR REPLACE TABLE t USING delta PARTITIONED BY (d) "
    "AS SELECT INT(id % 10) AS d, INT(id) AS v FROM range(100)",
}
BY_FRAMES = {
    "frame, replaceWhere": (3, {"replaceWhere": "d = 4"}),
    "frame, replaceWhere of all": (20, {"replaceWhere": "true"}),
    "frame, dynamic": (2, {"partitionOverwriteMode": "dynamic"}),
    "frame, replaceUsing": (6, {"replaceUsing": "d"}),
    "frame, replaceUsing of some": (3, {"replaceUsing": "v"}),
    "frame, replaceOn": (7, {"replaceOn": "x.d <=> s.d AND x.v <=> s.v", "targetAlias": "x"}),
    "frame, overwrite": (8, {}),
    "frame, overwrite with its schema": (9, {"overwriteSchema": "true"}),
    "frame, compacted": (9, {"dataChange": "false"}),
}
PARTS = {
    *list(IN_SQL)[:6],
    "dynamic partitions",
    "dynamic, static partition",
    *list(BY_FRAMES)[:6],
}


def test_row_counts_follow_every_kind_of_overwrite_or_are_unknown(shop: SparkShop) -> None:
    shop.run(
        "CREATE TABLE t (d int, v int) USING delta PARTITIONED BY (d) TBLPROPERTIES ("
        "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')",
        "INSERT INTO t SELECT id % 10, id FROM range(100)",
    )
    table = TableName(shop.schema, "t")
    unknown: set[str] = set()
    in_parts: set[str] = set()

    def check(what: str) -> None:
        warehouse = SparkWarehouse(shop.session)
        newest, before = warehouse.history(table, 2)
        there, was = (_count(shop, version) for version in (newest.version, before.version))
        counted = row_count([newest, before], newest.version, (before.version, was))
        assert counted in (there, None), f"{what}: {newest}"
        assert net_rows([newest]) in (there - was, None), f"{what}: {newest}"
        if counted is None:
            unknown.add(what)
        if replaces_part(newest):
            in_parts.add(what)
            assert _net_of_feed(shop, newest) == _difference(shop, newest), f"{what}: {newest}"

    for what, statement in list(IN_SQL.items())[:9]:
        shop.run(statement)
        check(what)
    with dynamic(shop):
        shop.run("INSERT OVERWRITE t SELECT id, 2 FROM range(5)")
        check("dynamic partitions")
        shop.run("INSERT OVERWRITE t PARTITION (d = 3) SELECT id FROM range(7)")
        check("dynamic, static partition")
    for what, (rows, options) in BY_FRAMES.items():
        write(shop, ROWS.format(rows), **options)
        check(what)
        if "overwrite" not in what:
            shop.run("INSERT INTO t SELECT id % 10, id FROM range(30)")
    for what, statement in list(IN_SQL.items())[9:]:
        shop.run(statement)
        check(what)
    assert in_parts == PARTS
    # Counted by Delta's statistics, where history does not tell.
    assert unknown == {
        "static partition, emptied",
        "dynamic partitions",
        "dynamic, static partition",
        "frame, dynamic",
        "restore",
    }


def _count(shop: SparkShop, version: int) -> int:
    return int(shop.session.sql(f"SELECT * FROM t VERSION AS OF {version}").count())


def _net_of_feed(shop: SparkShop, commit: Commit) -> list[str]:
    feed = change_feed(TableName(shop.schema, "t"), commit.version - 1, commit.version)
    return _net(shop, f"SELECT d, v, {FEED_WEIGHT} AS w FROM {feed}")


def _difference(shop: SparkShop, commit: Commit) -> list[str]:
    sides = ((commit.version, 1), (commit.version - 1, -1))
    both = (f"SELECT d, v, {weight} AS w FROM t VERSION AS OF {at}" for at, weight in sides)
    return _net(shop, " UNION ALL ".join(both))


def _net(shop: SparkShop, weighted: str) -> list[str]:
    query = f"SELECT d, v, sum(w) AS n FROM ({weighted}) GROUP BY d, v HAVING n <> 0"
    return sorted(map(str, shop.session.sql(query).collect()))


@pytest.fixture
def days(shop: SparkShop, monkeypatch: pytest.MonkeyPatch) -> SparkShop:
    """Ten days of rows, which are no small table."""
    monkeypatch.setattr(cost, "SMALL", 1000)
    shop.run(
        "CREATE TABLE t (d int, v int) USING delta PARTITIONED BY (d) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "INSERT INTO t SELECT id % 10, id FROM range(2000)",
    )
    shop.model("kept", "select d, v from t where v > 1", refresh_mode="auto")
    shop.model("sums", "select d, sum(v) as v from t group by d", refresh_mode="auto")
    for name in ("kept", "sums"):
        shop.check(name, "FULL")
    return shop


ONE_DAY = {
    "dynamic": "INSERT OVERWRITE t SELECT 1, {} FROM t WHERE d = 1",
    "static": "INSERT OVERWRITE t PARTITION (d = 1) SELECT {} FROM t WHERE d = 1",
    "replace where": "INSERT INTO t REPLACE WHERE d = 1 SELECT 1, {} FROM t WHERE d = 1",
}


@pytest.mark.parametrize("kind", ONE_DAY)
def test_of_an_overwritten_day_only_its_rows_are_compared(days: SparkShop, kind: str) -> None:
    with dynamic(days):
        days.run(ONE_DAY[kind].format("v + CAST(v > 1000 AS int)"))
    for name in ("kept", "sums"):
        outcome = days.check(name, "INCREMENTAL")
        assert outcome.plan.decision.reason.code == "CHANGES_CHEAPER"
        assert outcome.shape.endswith("t: a rewritten part)")
        read = [sql for sql in days.statements if not sql.startswith("DESCRIBE")]
        assert not [sql for sql in read if "`t` VERSION AS OF 1" in sql]
        assert [sql for sql in read if "table_changes" in sql]
    with dynamic(days):
        days.run(ONE_DAY[kind].format("v"))
    for name in ("kept", "sums"):
        days.check(name, "NO_DATA")
        # Whether rows changed was told by the feed: nothing was joined or grouped but that.
        assert not [sql for sql in days.statements if "UNION ALL" in sql], days.statements
