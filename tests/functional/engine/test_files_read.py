"""A refresh reads few files: those that its changes can concern, and every change feed once."""

import pytest
from executed_scans import Scans
from spark_shop import SparkShop

FEED = "table_changes("
# A file, or a few, for each.
TENS = range(0, 30, 10)


def files(shop: SparkShop, table: str) -> int:
    return int(shop.session.sql(f"DESCRIBE DETAIL {table}").first()["numFiles"])


def statement(shop: SparkShop, kind: str) -> str:
    [found] = [sql for sql in shop.statements if sql.startswith(kind)]
    return found


def test_a_merge_of_groups_reads_the_files_that_its_keys_lie_in(shop: SparkShop) -> None:
    shop.table("a", "k int, v int")
    shop.model("totals", "select k, sum(v) as total, max(v) as most from a group by k")
    shop.check("totals", "FULL")
    for ten in TENS:
        shop.run(f"INSERT INTO a VALUES ({ten}, 1), ({ten + 9}, 1), ({ten + 9}, 2)")
        shop.refresh("totals")
    before = files(shop, "totals__dyn")
    assert before >= len(TENS)

    # Both the look for extremes that left and the MERGE itself go by the bounds.
    shop.run("DELETE FROM a WHERE k = 29 AND v = 2", "UPDATE a SET v = 7 WHERE k = 20")
    scans = Scans(shop.session)
    shop.refresh("totals")
    assert "t.`k` BETWEEN 20 AND 29" in statement(shop, "MERGE").split("\nON ")[1]
    read = [scan.files for scan in scans.of("totals__dyn")]
    assert len(read) >= 2 and set(read) == {1}, read
    metrics = shop.session.sql("DESCRIBE HISTORY totals__dyn LIMIT 1").first()["operationMetrics"]
    assert metrics["numTargetFilesRemoved"] == metrics["numTargetFilesAdded"] == "1"
    assert files(shop, "totals__dyn") == before
    assert shop.difference("totals") == []


def test_the_other_side_of_a_join_is_read_where_the_changed_keys_lie(shop: SparkShop) -> None:
    shop.table("a", "k int, v int", "(1, 1)")
    shop.table("b", "k int, w int")
    for ten in TENS:
        shop.run(f"INSERT INTO b SELECT id, 1 FROM range({ten}, {ten + 10}, 1, 1)")
    assert files(shop, "b") == len(TENS)
    shop.model("joined", "select a.k, v, w from a join b on a.k = b.k")
    shop.check("joined", "FULL")
    shop.run("INSERT INTO a VALUES (10, 5), (19, 5), (12, 5)")
    scans = Scans(shop.session)
    shop.refresh("joined")
    assert [scan.files for scan in scans.of("b")] == [1]
    assert shop.difference("joined") == []


@pytest.mark.nightly
def test_every_change_feed_is_read_once(shop: SparkShop) -> None:
    shop.table("a", "k int, v int", "(1, 1)", "(2, 2)")
    shop.table("b", "k int, w int", "(1, 10)")
    shop.model("joined", "select x.k, y.v, w from a x join a y on x.v = y.v join b on b.k = x.k")
    shop.model("grouped", "select a.k, max(w) as w from a join b on a.k = b.k group by a.k")
    shop.model("both", "select k, v from a where v > 1 union all select v, k from a where k > 1")
    shop.model("nested", "select x.k, n from b x join "
               "(select k, count(*) as n from a group by k) y on x.k = y.k")  # fmt: skip
    for name in shop.models:
        shop.check(name, "FULL")
    shop.run(
        "INSERT INTO a VALUES (3, 3), (1, 2)", "INSERT INTO b VALUES (2, 20), (3, 30), (3, 3)"
    )
    fed = {"both": [2]}
    for name in shop.models:
        scans = Scans(shop.session)
        shop.refresh(name)
        assert all(sql.count(FEED) <= 1 for sql in shop.statements), name
        assert sorted(scan.rows for scan in scans.of_feeds()) == fed.get(name, [2, 3]), name
        assert shop.difference(name) == []
