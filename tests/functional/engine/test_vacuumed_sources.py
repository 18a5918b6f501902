"""Sources of which VACUUM has removed what the last refresh saw, on Delta itself."""

import time

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from spark_shop import SparkShop

from spark_dynamic.errors import EngineError
from spark_dynamic.refresh import cost

ORDERS = "day int, id int, amount int"
LINES = "day int, id int, price int"
JOINED = "select o.id, amount, price from orders o join lines l on o.id = l.id"
GROUPED = (
    "select id, sum(price) as total, min(price) as least, max(price) as most "
    f"from ({JOINED}) group by id"
)
# The old totals of an order are nowhere but in the old lines.
NESTED = (
    "select o.id, amount, total from orders o "
    "join (select id, sum(price) as total from lines group by id) l on o.id = l.id"
)
SETTINGS = {
    # As on all of dbt's connections.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


@pytest.fixture
def kept_shortly(shop: SparkShop, monkeypatch: pytest.MonkeyPatch) -> SparkShop:
    """Tables that keep replaced files for a second; of day 1 they have two files each."""
    monkeypatch.setattr(cost, "SMALL", 0)
    monkeypatch.setattr(cost, "LARGE", 10)
    shop.run(*(f"SET {key}={value}" for key, value in SETTINGS.items()))
    for name, columns in (("orders", ORDERS), ("lines", LINES)):
        shop.run(
            f"CREATE TABLE {name} ({columns}) USING delta PARTITIONED BY (day) TBLPROPERTIES ("
            "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true', "
            "'delta.deletedFileRetentionDuration' = 'interval 1 second')",
            f"INSERT INTO {name} VALUES (1, 1, 10), (1, 2, 20), (3, 1, 30), (3, 3, 40)",
            f"INSERT INTO {name} VALUES (1, 1, 11), (1, 4, 41)",
        )
    return shop


def vacuum(shop: SparkShop) -> None:
    # Longer than the tables keep anything.
    time.sleep(1.2)
    shop.run("VACUUM orders RETAIN 0 HOURS", "VACUUM lines RETAIN 0 HOURS")


def is_readable(shop: SparkShop, relation: str) -> bool:
    try:
        shop.session.sql(f"SELECT * FROM {relation}").collect()
    except (PySparkException, Py4JJavaError):
        return False
    return True


def test_what_is_new_and_its_changes_stand_for_the_old_version(kept_shortly: SparkShop) -> None:
    shop = kept_shortly
    shop.model("joined", JOINED)
    shop.model("grouped", GROUPED)
    shop.model("nested", NESTED)
    for name in shop.models:
        shop.check(name, "FULL")
    shop.run(
        # With old and with new partners; one copy of a row, and one that was the greatest.
        "INSERT INTO orders VALUES (2, 1, 12), (2, 5, 50)",
        "INSERT INTO lines VALUES (2, 1, 10), (2, 2, 21), (2, 5, 51)",
        "DELETE FROM lines WHERE day = 3 AND id = 1",
        "DELETE FROM orders WHERE day = 3 AND id = 3",
        # The files that the last refresh read are replaced, those of the changes are not.
        "OPTIMIZE orders WHERE day = 1",
        "OPTIMIZE lines WHERE day = 1",
    )
    vacuum(shop)
    for table in ("orders", "lines"):
        assert not is_readable(shop, f"{table} VERSION AS OF 2")
        assert is_readable(shop, f"table_changes('{table}', 3)")
    for name in ("joined", "grouped"):
        shop.check(name, "INCREMENTAL")

    # This one needs the old lines themselves.
    before = shop.session.sql("TABLE nested").collect()
    with pytest.raises(EngineError, match=r"^HISTORY_LOST: .*The history of .*lines"):
        shop.refresh("nested")
    assert shop.session.sql("TABLE nested").collect() == before
    shop.model("nested", NESTED, refresh_mode="auto")
    assert shop.check("nested", "FULL").plan.decision.reason.code == "HISTORY_LOST"

    # From here on all is as usual, as long as what was replaced is kept.
    kept = "'delta.deletedFileRetentionDuration' = 'interval 1 day'"
    shop.run(f"ALTER TABLE lines SET TBLPROPERTIES ({kept})", "DELETE FROM lines WHERE id = 2")
    for name in ("grouped", "nested"):
        shop.check(name, "INCREMENTAL")


@pytest.mark.nightly
def test_changes_whose_files_are_gone_are_found_otherwise_or_not_at_all(
    kept_shortly: SparkShop,
) -> None:
    shop = kept_shortly
    for name, sql in (("joined", JOINED), ("grouped", GROUPED)):
        shop.model(name, sql)
        shop.check(name, "FULL")
    # The rows before are still in the table's files, where they are marked as deleted.
    shop.run("UPDATE lines SET price = price + 1 WHERE id = 3")
    vacuum(shop)
    assert not is_readable(shop, "table_changes('lines', 3)")
    assert is_readable(shop, "lines VERSION AS OF 2")
    for name in shop.models:
        shop.check(name, "INCREMENTAL")

    # Now they are in no file any more.
    shop.run("UPDATE lines SET price = price + 1 WHERE id = 1", "OPTIMIZE lines")
    shop.run("REORG TABLE lines APPLY (PURGE)")
    vacuum(shop)
    before = shop.session.sql("TABLE joined").collect()
    with pytest.raises(EngineError, match=r"^HISTORY_LOST: .*The history of .*lines"):
        shop.refresh("joined")
    assert shop.session.sql("TABLE joined").collect() == before
    for name, sql in (("joined", JOINED), ("grouped", GROUPED)):
        shop.model(name, sql, refresh_mode="auto")
        assert shop.check(name, "FULL").plan.decision.reason.code == "HISTORY_LOST"
        shop.check(name, "NO_DATA")
