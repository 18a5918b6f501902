"""Clocks that are ahead, of a writer and of a run, on logs as Delta dates them."""

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from spark_shop import SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.frontier.state import KnownState, row_of, summarise
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.run import Outcome

DAY = timedelta(days=1)


def date_ahead(shop: SparkShop, table: str, version: int) -> None:
    """Let a commit be dated as by a writer whose clock is a day ahead."""
    [facts] = shop.session.sql(f"DESCRIBE DETAIL {table}").collect()
    log = Path(facts.location.removeprefix("file:")) / "_delta_log" / f"{version:020}.json"
    moment = (datetime.now(UTC) + DAY).timestamp()
    os.utime(log, (moment, moment))


@pytest.mark.parametrize("in_commit", [False, True])
def test_rows_of_a_writer_whose_clock_is_ahead_are_refreshed(
    shop: SparkShop, in_commit: bool
) -> None:
    shop.table("t", "a int", "(1)")
    if in_commit:
        # Then it is the log itself that holds the date, and no later commit has an earlier one.
        shop.run("ALTER TABLE t SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")
    shop.model("m", "select a from t")
    shop.check("m", "FULL")
    shop.run("INSERT INTO t VALUES (2)")
    warehouse = SparkWarehouse(shop.session)
    newest = warehouse.history(TableName(shop.schema, "t"), 1)[0].version
    if in_commit:
        put_ahead(shop, "t", newest)
    else:
        date_ahead(shop, "t", newest)
    assert (
        warehouse.history(TableName(shop.schema, "t"), 1)[0].timestamp
        > datetime.now(UTC) + DAY / 2
    )
    cycle = shop.cycle()
    assert shop.action("m", cycle=cycle) == "INCREMENTAL"
    assert shop.difference("m") == []
    [warning] = cycle.take_warnings()
    assert warning.startswith(f"{shop.schema}.t has commits from the future")
    # Those who write afterwards have a clock that is right; Delta dates them after the other.
    shop.run("INSERT INTO t VALUES (3)")
    shop.check("m")
    shop.check("m", "NO_DATA")


def put_ahead(shop: SparkShop, table: str, version: int) -> None:
    """Write another date into a commit."""
    [facts] = shop.session.sql(f"DESCRIBE DETAIL {table}").collect()
    log = Path(facts.location.removeprefix("file:")) / "_delta_log"
    path = log / f"{version:020}.json"
    text = path.read_text()
    found = re.search(r'"inCommitTimestamp":(\d+)', text)
    assert found is not None
    later = int(found[1]) + DAY // timedelta(milliseconds=1)
    path.write_text(text.replace(found[0], f'"inCommitTimestamp":{later}'))
    for sums in log.glob(f".{version:020}.json.crc"):
        sums.unlink()
    for sums in log.glob(f"{version:020}.crc"):
        sums.unlink()


def known(*outcomes: Outcome) -> KnownState:
    """Return what the state table says after some refreshes."""
    rows = [row_of(o.recorded, o.plan.request.view) for o in outcomes if o.recorded]
    return summarise(rows)


def test_the_run_after_one_whose_clock_was_ahead_is_dated_now(shop: SparkShop) -> None:
    shop.table("t", "a int", "(1)")
    shop.model("days", "select a, current_date as d from t", refresh_mode="auto")
    shop.model("m", "select a from t where a > 0")
    shop.model("both", "select m.a, days.d from m join days using (a)", refresh_mode="auto")
    ahead = shop.cycle(after=30 * DAY)
    before = [shop.refresh(name, cycle=ahead) for name in shop.models]
    shop.run("INSERT INTO t VALUES (2)")
    cycle = Cycle("invocation", datetime.now(UTC), known(*before))
    assert cycle.data_timestamp < datetime.now(UTC)
    assert "Data timestamps from the future do not count" in cycle.take_warnings()[0]
    actions = [shop.action(name, cycle=cycle) for name in shop.models]
    assert "WAITING" not in actions and "COVERED" not in actions
    for name in shop.models:
        assert shop.difference(name) == []
    [row] = shop.session.sql(
        "select count(*) = 2 and max(d) = current_date as x from both"
    ).collect()
    assert row.x
