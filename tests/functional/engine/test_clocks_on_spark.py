"""Clock functions run at the time of the cut, with the types that Spark gives them."""

from datetime import timedelta

from spark_shop import SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.refresh.run import Outcome
from spark_dynamic.refresh.verify import verify

DAY = timedelta(days=1)
CLOCKS = """select a, current_date as d1, CURRENT_DATE( ) as d2, curdate() as d3, now() as t1,
    current_timestamp as t2, localtimestamp() as l1, LocalTimestamp() as l2, unix_timestamp() as u,
    date_add(current_date, -7) as week, 'curdate' as word
  from t where current_date >= date'2020-01-01' -- and now()"""


def at_clock(outcome: Outcome) -> bool:
    return outcome.plan.verdict.at_clock


def is_verified(shop: SparkShop, outcome: Outcome) -> bool:
    found = verify(outcome.plan.request, shop.cycle(), SparkWarehouse(shop.session))
    return found.is_equal


def test_clocks_are_those_of_the_cut_and_can_be_verified_later(shop: SparkShop) -> None:
    # Where another day begins while it is still the old one in UTC.
    shop.run("SET TIME ZONE 'Pacific/Kiritimati'")
    shop.table("t", "a int", "(1)")
    shop.model("m", CLOCKS, refresh_mode="auto")
    cycle = shop.cycle(after=DAY)
    outcome = shop.refresh("m", cycle=cycle)
    assert at_clock(outcome)
    written, asked = (shop.session.sql(sql) for sql in ("TABLE m", CLOCKS))
    assert written.dtypes == asked.dtypes
    moment = cycle.data_timestamp.astimezone()
    [row] = shop.session.sql(
        "select d1 = d2 and d1 = d3 and d1 = cast(t1 as date) as dates, "
        "t1 = t2 and l1 = l2 and l1 = cast(t1 as timestamp_ntz) as times, "
        f"unix_micros(t1) = {round(moment.timestamp() * 1_000_000)} as moments, "
        "u = unix_seconds(t1) and week = d1 - interval '7' day and word = 'curdate' as others "
        "from m"
    ).collect()
    assert all(row.asDict().values()), row
    assert is_verified(shop, outcome)


def test_clocks_in_views_and_groups_are_those_of_the_cut(shop: SparkShop) -> None:
    shop.table("t", "a int", "(1)", "(2)")
    shop.run("CREATE VIEW v AS SELECT a, current_date AS d, unix_timestamp() AS u FROM t")
    sql = "select d, current_date as e, count(*) as n from v group by d, current_date, u"
    shop.model("m", sql, refresh_mode="auto")
    outcome = shop.refresh("m", cycle=shop.cycle(after=DAY))
    assert at_clock(outcome) and is_verified(shop, outcome)
    [row] = shop.session.sql("select n = 2 and d = e and d > current_date as x from m").collect()
    assert row.x


def test_what_only_looks_like_a_clock_is_left_alone(shop: SparkShop) -> None:
    shop.table("t", "a int, current_date string", "(1, 'x')")
    sql = "select current_date, now() > timestamp'2020-01-01' as is_late from t"
    shop.model("column", sql, refresh_mode="auto")
    # Without a name of its own, a column is called after its expression.
    shop.model("unnamed", "select current_date() from t where now() is not null")
    shop.models["unnamed"][1]["refresh_mode"] = "auto"
    for name in ("column", "unnamed"):
        assert not at_clock(shop.refresh(name))
        assert shop.difference(name) == []
