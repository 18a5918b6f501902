"""Errors, suspension, and the operations on the schedule, on a fake Spark."""

from collections.abc import Iterator
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError, EventCompilationError
from fake_dbt import DbtShop, dbt_shop
from fake_operations import operations, rows

from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.operations import text_table
from dbt.adapters.spark_dynamic.schedule_operations import aligned

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
REPORT = "select max(total) as best from shop.totals"


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[DbtShop]:
    with dbt_shop(monkeypatch) as made:
        made.model("totals", TOTALS, target_lag="10 minutes", suspend_after=2)
        made.model("report", REPORT, target_lag="10 minutes")
        yield made


def break_source(shop: DbtShop) -> Any:
    return shop.spark.entries.pop(next(n for n in shop.spark.entries if n.name == "orders"))


# Errors


def test_a_failed_refresh_is_tried_again_by_the_next_run(shop: DbtShop) -> None:
    shop.run()
    orders = break_source(shop)
    assert shop.run("totals", after=400)["totals"].startswith("SOURCE_MISSING")
    shop.spark.entries[orders.name] = orders
    assert shop.run("totals", after=1) == {"totals": "NO_DATA"}
    assert shop.run("totals", after=1)["totals"].startswith("NOT_DUE")


def test_after_some_errors_in_a_row_a_table_is_suspended(shop: DbtShop) -> None:
    shop.run()
    orders = break_source(shop)
    for _ in range(2):
        assert shop.run("totals", after=400)["totals"].startswith("SOURCE_MISSING")
    tried = len(shop.rows)
    shop.spark.entries[orders.name] = orders
    for _ in range(2):
        line = shop.run("totals", after=400)["totals"]
        assert line.startswith("SUSPENDED: The last 2 refreshes of shop.totals failed")
        assert "dynamic_table_resume --args '{models: totals}'" in line
    # Saying so is no further try, and costs nothing.
    assert len(shop.rows) == tried
    assert shop.statements["totals"] == ["DESCRIBE HISTORY `shop`.`dynamic_table_refreshes`"]
    assert shop.run("report", after=1) == {"report": "WAITING for shop.totals"}

    assert rows(operations(shop).resume("totals")) == [["shop.totals", "RESUMED"]]
    assert set(shop.run(after=1).values()) == {"NO_DATA"}


def test_editing_a_suspended_model_resumes_it(shop: DbtShop) -> None:
    shop.run()
    shop.shop.models["totals"] = TOTALS.replace("orders", "nothing")
    for _ in range(2):
        assert shop.run("totals")["totals"].startswith("SOURCE_MISSING")
    assert shop.run("totals")["totals"].startswith("SUSPENDED")
    shop.shop.models["totals"] = TOTALS.replace("sum", "min")
    assert "DEFINITION_CHANGED" in shop.run("totals")["totals"]


def test_what_fails_before_the_refresh_is_an_error_too(shop: DbtShop) -> None:
    adapter = shop.adapter()
    tables = DynamicTables(adapter)
    request = shop.request(adapter, "totals")
    assert tables.held(request) is None
    tables.plan(request)
    tables.ended(request.view, ValueError("the hook failed"))
    tables.ended(request.view, ValueError("told twice"))
    tables.flush()
    assert [(row.state, row.error) for row in shop.rows] == [("FAILED", "FAILED: the hook failed")]


def run_and_fail(shop: DbtShop, error: Exception) -> None:
    """Refresh a table; then what comes after its refresh fails."""
    adapter = shop.adapter()
    tables = DynamicTables(adapter)
    request = shop.request(adapter, "totals")
    assert tables.held(request) is None
    tables.run(tables.plan(request))
    tables.ended(request.view, error)
    tables.flush()


def test_post_hooks_that_failed_are_owed_by_an_operation_too(shop: DbtShop) -> None:
    shop.configs["totals"]["post-hook"] = "select 1"
    run_and_fail(shop, ValueError("the hook failed"))
    written = [(row.refresh_action, row.state, row.error) for row in shop.rows]
    assert written == [
        ("FULL", "SUCCEEDED", None),
        ("FULL", "FAILED", "FAILED: the hook failed"),
    ]
    assert rows(operations(shop).refresh("totals")) == [["shop.totals", "NO_DATA"]]
    assert "The hooks of totals are not run." in shop.warnings[-1]


def test_a_warning_that_is_made_an_error_is_none_of_the_table(shop: DbtShop) -> None:
    run_and_fail(shop, EventCompilationError("rebuilt in full", None))
    assert [row.state for row in shop.rows] == ["SUCCEEDED"]
    assert shop.run("totals", after=1)["totals"].startswith("NOT_DUE")


# Suspended by a person


def test_a_table_suspended_by_a_person_succeeds_and_is_not_touched(shop: DbtShop) -> None:
    shop.run()
    assert rows(operations(shop).suspend(["totals"])) == [["shop.totals", "SUSPENDED"]]
    shop.spark.write("shop.orders").append((4, 20, 100))
    shop.flags["FULL_REFRESH"] = True
    found = shop.responses(after=400)
    held = found["totals"]
    assert not isinstance(held, str)
    assert str(held) == "SUSPENDED (SUSPENDED_BY_A_PERSON)"
    assert (held.code, held.reason_code) == ("SUSPENDED", "SUSPENDED_BY_A_PERSON")
    assert held.reason.startswith("SUSPENDED_BY_A_PERSON: Somebody suspended shop.totals.")
    shop.flags.clear()
    assert shop.run("report", after=1) == {"report": "WAITING for shop.totals"}

    operations(shop).resume(["totals"])
    assert {line.split()[0] for line in shop.run(after=1).values()} == {"FULL"}
    assert shop.shop.is_right("report")


def test_a_table_can_be_suspended_before_there_is_a_state_table(shop: DbtShop) -> None:
    operations(shop).suspend(["totals"])
    assert shop.run("totals") == {"totals": "SUSPENDED (SUSPENDED_BY_A_PERSON)"}


def test_only_dynamic_tables_can_be_suspended(shop: DbtShop) -> None:
    with pytest.raises(DbtRuntimeError, match="'orders' is no dynamic table of this project"):
        operations(shop).suspend(["orders"])
    with pytest.raises(DbtRuntimeError, match="Expected a model or a list"):
        operations(shop).suspend(None)


# Refresh now


def test_a_refresh_takes_its_upstreams_along(shop: DbtShop) -> None:
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 100))
    done = rows(operations(shop).refresh("report"))
    assert [name for name, _ in done] == ["shop.totals", "shop.report"]
    assert {line.split()[0] for _, line in done} == {"FULL"}
    assert shop.rows[-1].refresh_trigger == "MANUAL"
    assert shop.shop.is_right("report")
    assert shop.run("totals", after=1)["totals"].startswith("NOT_DUE")


def test_a_refresh_that_fails_says_what_happened_to_each_table(shop: DbtShop) -> None:
    shop.run()
    break_source(shop)
    with pytest.raises(DbtRuntimeError, match="shop.totals: ERROR SOURCE_MISSING"):
        operations(shop).refresh(["totals"])
    assert shop.rows[-1].state == "FAILED"


# How tables stand


def status(shop: DbtShop, after: float = 1, models: Any = None) -> dict[str, list[Any]]:
    return {row[0]: row[1:] for row in rows(operations(shop, after).status(models))}


def test_a_refresh_says_that_it_runs_no_hooks(shop: DbtShop) -> None:
    shop.configs["totals"]["post-hook"] = "select 1"
    operations(shop).refresh("totals")
    [warning] = shop.warnings
    assert warning == (
        "The hooks of totals are not run. To run them: "
        "SPARK_DYNAMIC_REFRESH=all dbt run --select totals."
    )
    # Nothing is written, so no hook would have run.
    operations(shop).refresh("totals")
    assert len(shop.warnings) == 1


@pytest.mark.parametrize(
    "config", [{"grants": {"select": ["ann"]}}, {"contract": {"enforced": True}}]
)
def test_a_refresh_makes_no_table_without_its_grants_and_constraints(
    shop: DbtShop, config: dict[str, Any]
) -> None:
    shop.configs["totals"] |= config
    with pytest.raises(DbtRuntimeError, match="NEEDS_DBT_RUN: A new table is made for totals"):
        operations(shop).refresh("totals")
    assert not shop.spark.exists("shop.totals")
    shop.run("totals")
    shop.spark.write("shop.orders").append((4, 20, 100))
    [[_, done]] = rows(operations(shop).refresh("totals"))
    assert done.startswith("FULL +2 -2")


def test_the_status_shows_target_lags(shop: DbtShop) -> None:
    shop.model("free", TOTALS)
    shop.model("root", TOTALS, target_lag="downstream")
    shop.model("unread", TOTALS, target_lag="downstream")
    shop.model("reader", "select * from shop.root", target_lag="1 hour")
    found = status(shop)
    assert found["shop.totals"] == ["DUE", "10m", None, "now", None, None, None, "0"]
    assert found["shop.free"][1] == "every run"
    assert found["shop.root"][1] == "downstream: 1h"
    assert found["shop.unread"][1] == "downstream: on demand"


def test_the_status_shows_lags(shop: DbtShop) -> None:
    shop.run()
    shop.run(after=760)
    found = status(shop, after=20, models="totals")
    assert found.keys() == {"shop.totals"}
    state, target, lag, due, peak, trough, share, errors = found["shop.totals"]
    assert (state, target, errors) == ("NOT_DUE", "10m", "0")
    assert lag.startswith("2") and peak.startswith("12m 4") and trough.endswith("s")
    assert due.endswith("UTC") and 70 < float(share.rstrip("%")) < 100
    shown = aligned(operations(shop).status()).splitlines()
    assert len({len(line) for line in shown}) == 1 and "within target" in shown[0]


def test_the_status_shows_who_is_suspended_and_who_waits(shop: DbtShop) -> None:
    shop.run()
    operations(shop).suspend("totals")
    found = status(shop, after=400)
    assert found["shop.totals"][0] == "SUSPENDED_BY_A_PERSON"
    assert found["shop.report"][0] == "WAITING"
    # Neither is due at a time that could be told.
    assert (found["shop.totals"][3], found["shop.report"][3]) == (None, None)


def test_the_status_shows_who_has_failed_as_due(shop: DbtShop) -> None:
    shop.run()
    break_source(shop)
    shop.run("totals", after=400)
    state, *_, due, _, _, _, errors = status(shop, after=1, models="totals")["shop.totals"]
    assert (state, due, errors) == ("DUE", "now", "1")


# What the generic tests ask


def test_a_table_within_its_lag_has_no_problem(shop: DbtShop) -> None:
    shop.run()
    assert rows(operations(shop).lag_problems("totals")) == []
    [[problem]] = rows(operations(shop, after=700).lag_problems("totals"))
    assert problem.startswith("shop.totals has a lag of 11m")
    assert problem.endswith("; its target lag is 10m.")


def test_a_table_that_is_not_built_is_not_within_its_lag(shop: DbtShop) -> None:
    [[problem]] = rows(operations(shop).lag_problems("totals"))
    assert problem == "shop.totals is not built yet; its target lag is 10m."
    shop.model("free", TOTALS)
    assert rows(operations(shop).lag_problems("free")) == []


@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize("what", ["shop.totals", "shop.totals__dyn"])
def test_whoever_looks_finds_out_that_a_table_was_dropped(
    shop: DbtShop, what: str, is_cached: bool
) -> None:
    shop.run()
    shop.flags["POPULATE_CACHE"] = is_cached
    shop.spark.drop(what)
    assert rows(operations(shop).lag_problems("report")) == []
    [[problem]] = rows(operations(shop).lag_problems("totals"))
    assert problem == "shop.totals is not built yet; its target lag is 10m."
    assert status(shop)["shop.totals"][0] == "DUE"
    # As a run would: the view is made again, or the table is built.
    forecast = {row[0]: row[1] for row in rows(operations(shop).forecast(None, None))}
    assert forecast["shop.totals"] == shop.run("totals")["totals"].split()[0] != "NOT_DUE"


def test_a_failed_refresh_is_a_problem(shop: DbtShop) -> None:
    shop.run()
    assert rows(operations(shop).error_problems("totals")) == []
    break_source(shop)
    shop.run("totals", after=400)
    [[problem]] = rows(operations(shop).error_problems("totals"))
    assert problem == "The last refresh of shop.totals failed."
    shop.run("totals", after=1)
    [[problem]] = rows(operations(shop).error_problems("totals"))
    assert problem == "The last 2 refreshes of shop.totals failed."


def test_a_test_in_the_same_invocation_sees_what_nobody_has_written_down_yet(
    shop: DbtShop,
) -> None:
    found = operations(shop)
    request = found._request(found._node("totals"))
    found._tables.held(request)
    found._tables.run(found._tables.plan(request))
    asked = len(shop.spark.log)
    assert rows(found.lag_problems("totals")) == []
    assert len(shop.spark.log) == asked


def test_targets_and_periods_are_in_seconds(shop: DbtShop) -> None:
    shop.model("free", TOTALS)
    found = rows(operations(shop).targets())
    assert ["shop.totals", "600", "384", "2"] in found
    assert ["shop.free", None, None, "5"] in found


def test_a_forecast_knows_what_is_not_due(shop: DbtShop) -> None:
    shop.model("free", TOTALS)
    shop.run()
    found = {row[0]: row[1:] for row in rows(operations(shop).forecast(None, None))}
    assert found["shop.totals"][0] == "NOT_DUE" and found["shop.totals"][1].endswith("s of 10m")
    assert found["shop.free"][0] == "NO_DATA"
    operations(shop).suspend("totals")
    found = {row[0]: row[1:] for row in rows(operations(shop, 400).forecast(None, None))}
    assert found["shop.totals"][0] == "SUSPENDED"
    assert found["shop.totals"][1].startswith("SUSPENDED_BY_A_PERSON: ")
    assert found["shop.report"] == ["WAITING", "for shop.totals"]


# What is said about a table


def test_what_is_said_about_a_held_table_is_applied(shop: DbtShop) -> None:
    shop.run()
    operations(shop).suspend("totals")
    shop.spark.write("shop.orders").append((4, 20, 100))
    version = shop.shop.recorded("totals").commit.version
    held = {"totals": "SUSPENDED (SUSPENDED_BY_A_PERSON)", "report": "WAITING for shop.totals"}
    assert shop.run(after=400) == held
    assert shop.granted == []
    for name in shop.shop.models:
        shop.configs[name] |= {"tblproperties": {"team": name}}
    assert shop.run() == held
    # A reconfigured table is due; what it waits for is found out by its plan.
    assert shop.granted == ["totals"]
    assert {shop.shop.storage(n).properties["team"] for n in held} == {"totals", "report"}
    # Once is enough, and what is gone goes.
    assert shop.run() == held
    assert not [sql for name in held for sql in shop.statements[name] if "ALTER" in sql]
    shop.configs["totals"]["tblproperties"] = {"on": "a view"}
    shop.configs["report"].pop("tblproperties")
    assert shop.run() == held
    assert "team" not in shop.shop.storage("totals").properties
    # It is as it was when it was refreshed: nothing seems to have changed.
    assert shop.shop.recorded("totals").commit.version == version


def test_texts_that_look_like_no_value_are_shown_as_they_are() -> None:
    table = text_table(
        ["side", "status"], [["only in the table", "none"], ["", "N/A"], ["x", None]]
    )
    assert rows(table) == [["only in the table", "none"], ["", "N/A"], ["x", None]]
