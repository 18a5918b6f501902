"""Rows that were found to be wrong are not built upon: readers wait until they are right."""

from dataclasses import replace
from datetime import datetime

import pytest
from fake_records import minute, pin_of, recorded_at
from fake_shop import Shop, small_shop

from spark_dynamic.changes.asked import ChangeRead
from spark_dynamic.changes.read import position_now
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.cut import Cut, Upstream, Waiting, choose_cut
from spark_dynamic.frontier.record import Pin, Recorded, write_record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.distrust import distrust
from spark_dynamic.support import reason

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
VIEW = TableName("shop", "totals")


def with_wrong_totals() -> Shop:
    """Return a shop in which `totals` was found to be wrong, and not rebuilt."""
    shop = small_shop(totals=TOTALS, big="select customer from shop.totals where total > 9")
    shop.run()
    # The fake knows no incremental refreshes, whose records have a fingerprint.
    newest, commits = shop.recorded("totals"), shop.storage("totals").commits
    text = write_record(replace(newest.record, fingerprint="f"))
    commits[-1] = replace(newest.commit, user_metadata=text)
    distrust(VIEW, "f", reason("SELF_CHECK_FAILED"), shop.open_cycle(), shop.session)
    assert shop.record("totals").is_wrong
    return shop


def test_a_reader_waits_for_rows_that_are_known_to_be_wrong() -> None:
    shop = with_wrong_totals()
    assert shop.run("big") == {"big": "WAITING/shop.totals"}
    assert shop.run("big", full_refresh=True) == {"big": "WAITING/shop.totals"}
    shop.spark.write("shop.orders").append((4, 20, 90))
    assert shop.run("big") == {"big": "WAITING/shop.totals"}
    assert shop.run("totals")["totals"] == "REINITIALIZE/SELF_CHECK_FAILED"
    shop.run("big")
    assert shop.is_right("big")


def test_changes_of_rows_that_are_known_to_be_wrong_are_refused() -> None:
    shop = with_wrong_totals()
    read = ChangeRead("select * from shop.totals", "shop", dict(shop.settings))
    with pytest.raises(EngineError, match=r"NO_COMMON_POINT: .*shop\.totals"):
        position_now(read, shop.open_cycle(), shop.session)
    shop.run("totals")
    assert position_now(read, shop.open_cycle(), shop.session)


def test_what_was_written_since_the_last_rebuild_is_not_read_at_an_older_moment() -> None:
    """Who knows since when the rows have been wrong."""

    def recorded(version: int, at: int, incarnation: str, **more: str) -> Recorded:
        found = recorded_at("a", version, at, pin_of("o", at))
        record = replace(found.record, incarnation=incarnation, fingerprint="f", **more)
        return replace(found, record=record)

    def same(one: Pin, other: Pin) -> bool:
        return one == other

    def choose(*records: Recorded) -> Cut | Waiting:
        upstream = Upstream(TableName("shop", "a"), TableName("shop", "a__dyn"), records)
        now, newest = minute(20), pin_of("o", 15)

        def pin_at(table: TableName, moment: datetime) -> Pin:
            return newest if moment == now else pin_of("o", 10)

        return choose_cut(now, None, [], [upstream], pin_at, same)

    mark, before = recorded(9, 10, "wrong", distrusted="f"), recorded(8, 10, "wrong")
    assert isinstance(choose(mark, before), Waiting)
    # Another run has rebuilt it after this one began.
    rebuilt = recorded(20, 50, "right")
    assert isinstance(choose(rebuilt, mark, before), Waiting)
    # What was there before the last rebuild but one is another matter.
    found = choose(rebuilt, mark, before, recorded(1, 10, "first"))
    assert isinstance(found, Cut)
    assert found.versions()[TableName("shop", "a__dyn")] == 1


def test_a_text_that_is_not_pinned_waits_for_them_too() -> None:
    shop = with_wrong_totals()

    def read_differently(sql: str, text: str) -> str:
        return text.replace("Project", "Project Distinct") if "VERSION AS OF" in sql else text

    shop.spark.explain = read_differently
    shop.models["plain"] = "select customer from shop.totals where total < 12345"
    assert shop.run("plain") == {"plain": "WAITING/shop.totals"}
