"""`dbt run` with target lags, from the manifest to the state table, on a fake Spark."""

from collections.abc import Iterator
from datetime import timedelta
from statistics import median
from time import thread_time

import pytest
from fake_dbt import DbtShop, dbt_shop

from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.project import Project
from spark_dynamic.frontier.state import read_state
from spark_dynamic.schedule.lag_warnings import lag_warnings

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
REPORT = "select max(total) as best from shop.totals"


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[DbtShop]:
    with dbt_shop(monkeypatch) as made:
        yield made


def actions(found: dict[str, str]) -> dict[str, str]:
    return {name: line.split()[0] for name, line in found.items()}


def test_a_table_within_its_lag_is_not_touched(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    assert shop.run() == {"totals": "FULL +2 -0 (INITIAL_BUILD)"}
    shop.spark.write("shop.orders").append((4, 20, 100))
    appended = len(shop.rows)
    assert shop.run() == {"totals": "NOT_DUE lag 1m 2s of 10m"}
    # One look at the state table opens the cycle; nothing is asked or written for the table.
    assert shop.statements["totals"] == ["DESCRIBE HISTORY `shop`.`dynamic_table_refreshes`"]
    assert len(shop.rows) == appended
    # The period of ten minutes is 6 m 24 s.
    assert shop.run(after=330)["totals"].startswith("FULL +2 -2")
    assert shop.shop.is_right("totals")


def test_a_table_that_is_not_due_takes_a_millisecond(shop: DbtShop) -> None:
    for number in range(30):
        shop.model(f"t{number}", TOTALS, target_lag="10 minutes")
    shop.run()
    adapter = shop.adapter()
    tables, took = DynamicTables(adapter), []
    for name in shop.shop.models:
        request = shop.request(adapter, name)
        # The time of this thread alone: the machine may be busy.
        begin = thread_time()
        held = tables.held(request)
        took.append(thread_time() - begin)
        assert held is not None and held.refresh_action == "NOT_DUE"
    # The first one opens the cycle for all others.
    assert median(took) < 0.005 and sum(took) < 0.2


def test_it_is_remembered_how_long_tables_waited_in_their_run(shop: DbtShop) -> None:
    shop.model("slow", TOTALS, target_lag="10 minutes")
    shop.model("later", TOTALS, target_lag="10 minutes")
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 100))
    shop.run(after=400)
    first, second = (row.event.refresh for row in shop.rows[-2:])
    # The cycle opens when the first table begins; the other one waits for it to end.
    assert first.waited and second.waited and first.waited < timedelta(seconds=0.01)
    assert first.ended_at - first.started_at <= second.waited
    newest = shop.spark.table("shop.dynamic_table_refreshes").commits[-1]
    known = read_state([newest]).tables["shop.later"].known
    assert known.expected_wait >= second.waited


def test_how_to_force_is_said_once_per_run(shop: DbtShop) -> None:
    for name in ("a", "b"):
        shop.model(name, TOTALS, target_lag="10 minutes")
    shop.run()
    assert shop.told == []
    shop.run()
    assert len(shop.told) == 1 and "SPARK_DYNAMIC_REFRESH=all" in shop.told[0]
    # They may be beyond their target lag: when a run came late, or none could keep it.
    assert "within" not in shop.told[0] and "next grid point" in shop.told[0]


def test_the_response_keeps_the_contract(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes", refresh_mode="full")
    built = shop.responses()["totals"]
    held = shop.responses()["totals"]
    assert not isinstance(built, str) and not isinstance(held, str)
    assert held.to_dict() == {
        "_message": "NOT_DUE lag 1m 1s of 10m",
        "code": "NOT_DUE",
        "rows_affected": None,
        "query_id": None,
        "refresh_action": "NOT_DUE",
        "refresh_mode": "full",
        "refresh_trigger": "SCHEDULED",
        "reason_code": "",
        "reason": "",
        "statements": 0,
        "rows_inserted": None,
        "rows_deleted": None,
        "data_timestamp": built.data_timestamp,
    }


def test_a_table_without_lag_is_refreshed_by_every_run(shop: DbtShop) -> None:
    shop.model("totals", TOTALS)
    shop.run()
    assert shop.run() == {"totals": "NO_DATA"}
    shop.spark.write("shop.orders").append((4, 20, 100))
    assert actions(shop.run()) == {"totals": "FULL"}


def test_a_chain_is_refreshed_together_and_at_one_moment(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="downstream")
    shop.model("report", REPORT, target_lag="10 minutes")
    shop.run()
    assert actions(shop.run()) == {"totals": "NOT_DUE", "report": "NOT_DUE"}
    shop.spark.write("shop.orders").append((4, 20, 100))
    found = shop.responses(after=400)
    moments = {r.data_timestamp for r in found.values() if not isinstance(r, str)}
    assert len(moments) == 1
    assert shop.shop.is_right("report")


def test_upstreams_are_found_through_views(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="downstream")
    shop.model("large", "select * from shop.totals where total > 5", materialized="view")
    shop.model("report", "select max(total) as best from shop.large", target_lag="1 hour")
    shop.run()
    # Without the view in between, nobody would read `totals`, and it would never be due.
    shop.spark.write("shop.orders").append((4, 20, 100))
    assert set(actions(shop.run(after=3600)).values()) == {"FULL"}


def test_upstreams_are_found_through_streams(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="downstream")
    shop.model("moves", "select * from shop.totals", materialized="changes_stream")
    # Their names are all that is looked at: the changes of a stream are those of its query.
    shop.model("report", "select count(*) as n from shop.moves", target_lag="1 hour")
    project = Project(shop.manifest())
    assert project.graph.upstreams["shop.report"] == ("shop.totals",)
    assert lag_warnings(project.graph) == []
    before = project.tables["shop.report"].marks.definition
    shop.shop.models["moves"] += " where total > 5"
    assert Project(shop.manifest()).tables["shop.report"].marks.definition != before


def test_everything_that_is_selected_can_be_forced(
    shop: DbtShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    shop.run()
    monkeypatch.setenv("SPARK_DYNAMIC_REFRESH", "all")
    found = shop.responses()["totals"]
    assert not isinstance(found, str)
    assert (found.refresh_action, found.refresh_trigger) == ("NO_DATA", "MANUAL")
    monkeypatch.delenv("SPARK_DYNAMIC_REFRESH")
    assert actions(shop.run(after=1)) == {"totals": "NOT_DUE"}
    shop.variables = {"refresh": "all"}
    assert actions(shop.run(after=1)) == {"totals": "NO_DATA"}
    # The environment is the nearer one.
    monkeypatch.setenv("SPARK_DYNAMIC_REFRESH", "due")
    assert actions(shop.run(after=1)) == {"totals": "NOT_DUE"}


def test_a_wrong_word_in_the_environment_is_refused(
    shop: DbtShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.model("totals", TOTALS)
    monkeypatch.setenv("SPARK_DYNAMIC_REFRESH", "everything")
    with pytest.raises(Exception, match="SPARK_DYNAMIC_REFRESH: 'everything'. Expected 'all'"):
        shop.run()


def test_full_refresh_refreshes_what_is_not_due(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    shop.run()
    shop.flags["FULL_REFRESH"] = True
    assert shop.run() == {"totals": "FULL +2 -2 (REQUESTED)"}


@pytest.mark.parametrize("flag", ["EMPTY", "SAMPLE"])
def test_an_empty_run_is_never_too_early_and_leaves_a_table_that_is_due(
    shop: DbtShop, flag: str
) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    shop.run()
    shop.flags[flag] = True
    assert "EMPTY_RUN" in shop.run()["totals"]
    shop.flags.clear()
    assert "AFTER_EMPTY_RUN" in shop.run()["totals"]
    assert actions(shop.run()) == {"totals": "NOT_DUE"}


def test_an_edited_model_is_due_at_once(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    shop.run()
    shop.shop.models["totals"] = TOTALS.replace("sum(", "max(")
    assert "DEFINITION_CHANGED" in shop.run()["totals"]
    assert actions(shop.run()) == {"totals": "NOT_DUE"}


def test_so_is_one_whose_view_was_edited(shop: DbtShop) -> None:
    shop.model("cheap", "select * from shop.orders where amount < 8", materialized="view")
    shop.model("totals", TOTALS.replace("orders", "cheap"), target_lag="10 minutes")
    shop.run()
    assert actions(shop.run()) == {"totals": "NOT_DUE"}
    shop.shop.models["cheap"] = "select * from shop.orders where amount < 9"
    assert "DEFINITION_CHANGED" in shop.run()["totals"]


def test_so_is_one_whose_text_changed_with_a_variable(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    shop.run()
    shop.suffix = " having sum(amount) > 10"
    assert "DEFINITION_CHANGED" in shop.run()["totals"]
    assert actions(shop.run()) == {"totals": "NOT_DUE"}


def test_a_reconfigured_model_is_due_but_not_for_another_lag(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    shop.run()
    shop.configs["totals"]["target_lag"] = "20 minutes"
    assert shop.run() == {"totals": "NOT_DUE lag 1m 1s of 20m"}
    shop.configs["totals"]["tblproperties"] = {"team": "sales"}
    assert actions(shop.run()) == {"totals": "NO_DATA"}
    assert shop.shop.storage("totals").properties["team"] == "sales"
    assert actions(shop.run()) == {"totals": "NOT_DUE"}


@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize("what", ["shop.totals", "shop.totals__dyn"])
def test_a_table_that_was_dropped_is_due(shop: DbtShop, what: str, is_cached: bool) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    shop.run()
    # --no-populate-cache: then the catalog tells what is missing.
    shop.flags["POPULATE_CACHE"] = is_cached
    assert actions(shop.run()) == {"totals": "NOT_DUE"}
    shop.spark.drop(what)
    shop.run()
    assert shop.shop.is_right("totals")


def test_after_the_state_table_was_lost_everything_is_looked_at(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    shop.run()
    shop.spark.drop("shop.dynamic_table_refreshes")
    assert shop.run() == {"totals": "NO_DATA"}
    assert [row.refresh_action for row in shop.rows] == ["FULL", "FULL", "NO_DATA"]
    assert actions(shop.run()) == {"totals": "NOT_DUE"}


def test_an_upstream_that_is_not_selected_is_waited_for(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    shop.model("report", REPORT, target_lag="10 minutes")
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 100))
    assert shop.run("report", after=400) == {"report": "WAITING for shop.totals"}
    assert set(actions(shop.run(after=1)).values()) == {"FULL"}


def test_it_is_remembered_how_late_runs_come(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    found = [actions(shop.run(after=150))["totals"] for _ in range(10)]
    assert "NOT_DUE" in found
    commits = shop.spark.table("shop.dynamic_table_refreshes").commits
    samples = read_state(commits[-1:]).lateness
    # The first build is due because it is missing, which says nothing about runs.
    assert len(samples) == len(found) - found.count("NOT_DUE") - 1


def test_the_models_that_are_due_can_be_named_before_anything_is_selected(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    shop.model("report", REPORT, target_lag="1 hour")
    shop.model("free", TOTALS)

    def due() -> set[str]:
        found = DynamicTables(shop.adapter()).due_models(shop.manifest())
        return {unique_id.rpartition(".")[2] for unique_id in found}

    assert due() == {"totals", "report", "free"}
    shop.run()
    assert due() == {"free"}
    shop.spark.tick(400)
    assert due() == {"totals", "free"}
    shop.spark.drop("shop.report")
    assert due() == {"totals", "report", "free"}


# Built by schedule


def test_a_first_build_by_schedule_comes_at_the_next_grid_point(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes", initialize="on_schedule")
    assert shop.run(after=84) == {"totals": "NOT_DUE first build in 4m 59s"}
    assert [row.refresh_action for row in shop.rows] == ["NOT_DUE"]
    assert shop.run(after=200)["totals"].startswith("NOT_DUE first build in 1m 3")
    assert len(shop.rows) == 1
    assert shop.run(after=110) == {"totals": "FULL +2 -0 (INITIAL_BUILD)"}


def test_a_first_build_by_schedule_comes_with_a_consumer_that_needs_it(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes", initialize="on_schedule")
    shop.model("report", REPORT, target_lag="10 minutes")
    assert set(actions(shop.run()).values()) == {"FULL"}


def test_without_a_lag_there_is_no_schedule_to_wait_for(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, initialize="on_schedule")
    assert actions(shop.run()) == {"totals": "FULL"}


@pytest.mark.parametrize("lag", ["10 minutes", None])
def test_a_new_table_with_a_young_source_waits_for_one_run_and_not_for_a_period(
    shop: DbtShop, lag: str | None
) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 100))
    shop.spark.create("shop.young", {"customer": "bigint", "name": "string"}, (20, "Ann"))
    both = "select t.total, y.name from shop.totals t join shop.young y on t.customer = y.customer"
    shop.model("named", both, **({"target_lag": lag} if lag else {}))
    # What totals has is older than one of the sources, which nobody knows before it is tried.
    assert shop.run(after=1)["named"] == "WAITING for shop.totals"
    found = actions(shop.run(after=1))
    assert found == {"totals": "FULL", "named": "FULL"}
    assert shop.shop.is_right("named")
    assert shop.rows[-1].data_timestamp == shop.rows[-2].data_timestamp
    assert actions(shop.run("totals", after=1)) == {"totals": "NOT_DUE"}


def test_so_does_an_edited_one(shop: DbtShop) -> None:
    shop.model("totals", TOTALS, target_lag="10 minutes")
    shop.model("report", REPORT, target_lag="10 minutes")
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 100))
    shop.spark.create("shop.young", {"most": "bigint"}, (20,))
    shop.shop.models["report"] = "select total, most from shop.totals, shop.young"
    assert shop.run(after=1)["report"] == "WAITING for shop.totals"
    assert set(actions(shop.run(after=1)).values()) <= {"FULL", "REINITIALIZE"}
    assert shop.shop.is_right("report")
