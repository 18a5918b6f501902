"""The clock that a record names is the clock that the rows were computed with."""

from datetime import UTC, datetime

import pytest
from fake_shop import Shop, small_shop

from spark_dynamic.clock import stamp
from spark_dynamic.sql.clocks import find_clocks

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
DATED = "select t.total, current_date as d from shop.totals t"
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)
WRITTEN = "TIMESTAMP_LTZ'2026-01-02T03:04:05.000678Z'"


def run_text(shop: Shop, name: str) -> str:
    """Return the statement that wrote a table last."""
    begin = tuple(f"{verb} TABLE `shop`.`{name}__dyn`" for verb in ("CREATE", "INSERT OVERWRITE"))
    return next(statement for statement in reversed(shop.spark.log) if statement.startswith(begin))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select current_date", f"select CAST({WRITTEN} AS DATE)"),
        ("select Current_Date ( )", f"select CAST({WRITTEN} AS DATE)"),
        ("select curdate()", f"select CAST({WRITTEN} AS DATE)"),
        ("select now()+x", f"select {WRITTEN}+x"),
        ("select current_timestamp", f"select {WRITTEN}"),
        ("select localtimestamp()", f"select CAST({WRITTEN} AS TIMESTAMP_NTZ)"),
        ("select unix_timestamp()", f"select unix_timestamp({WRITTEN})"),
        ("select unix_timestamp(a)", None),
        ("select now, curdate from t", None),
        ("select t.current_date, 1 as current_date", None),
        ("select `current_date`, 'now()' -- now()", None),
    ],
)
def test_only_calls_of_clocks_are_found(text: str, expected: str | None) -> None:
    found = text
    for call in reversed(find_clocks(text)):
        found = found[: call.start] + call.answered(MOMENT) + found[call.end :]
    assert found == (expected or text)


def test_the_clock_of_the_record_is_the_clock_of_the_text() -> None:
    shop = small_shop(dated="select id, current_date as d from shop.orders")
    shop.run()
    record = shop.record("dated")
    assert record.clock is not None and record.clock == record.data_timestamp
    assert f"TIMESTAMP_LTZ'{stamp(record.clock)}'" in run_text(shop, "dated")
    assert {d for _, d in shop.spark.read("select * from shop.dated")} == {"2026-01-01"}


def run_dated_alone(shop: Shop) -> dict[str, str]:
    """Refresh what asks for the time when only an older cut is right for its upstream."""
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    shop.run("totals")
    shop.spark.write("shop.orders").append((5, 20, 90))
    return shop.run("dated")


def test_an_older_cut_has_an_older_clock() -> None:
    shop = small_shop(totals=TOTALS, dated=DATED)
    assert run_dated_alone(shop) == {"dated": "FULL/CLOCK_FUNCTION"}
    moment = shop.record("totals").data_timestamp
    assert shop.record("dated").clock == moment
    assert f"TIMESTAMP_LTZ'{stamp(moment)}'" in run_text(shop, "dated")


def test_a_clock_that_cannot_be_written_down_is_never_that_of_an_older_cut() -> None:
    shop = small_shop(totals=TOTALS, dated=DATED)

    def read_differently(sql: str, text: str) -> str:
        return text.replace("Project", "Project Distinct") if "TIMESTAMP_LTZ" in sql else text

    shop.spark.explain = read_differently
    assert run_dated_alone(shop) == {"dated": "WAITING/shop.totals"}
    assert "CURRENT_DATE" in run_text(shop, "dated").upper()
