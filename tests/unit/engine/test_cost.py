"""What `auto` learns from the table's own refreshes."""

import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import pytest
from fake_shop import small_shop
from fake_warehouse import FakeWarehouse

from spark_dynamic.refresh import cost, run
from spark_dynamic.refresh.cost import PATIENCE, cheaper_changes, slower_so_far
from spark_dynamic.refresh.decide import Decision
from spark_dynamic.refresh.incremental import IncrementalRefresh
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.schedule.known import Known, Refresh, known_from, noted
from spark_dynamic.schedule.remembered import Remembered, read_remembered, write_remembered

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIGURES = Path(__file__).parents[3] / "docs" / "benchmarks" / "tpch_1.json"
# The seconds that the benchmark recorded of each model, by the kind of change, round by round.
RECORDED: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
for figure in json.loads(FIGURES.read_text())["rounds"]:
    RECORDED[figure["model"]][figure["workload"]].append(figure["seconds"])


def took(seconds: float, action: str) -> Refresh:
    is_insert, action = action == "INSERTS", action.replace("INSERTS", "INCREMENTAL")
    ended = NOON + timedelta(seconds=seconds)
    return Refresh(action, NOON, ended, NOON, inserts_only=is_insert)


def refreshed(*refreshes: tuple[float, str]) -> Known:
    return known_from(took(*refresh) for refresh in refreshes)


def test_what_was_slower_is_not_done_again_until_it_is_tried_again() -> None:
    known = refreshed((20, "FULL"), (30, "INCREMENTAL"))
    assert slower_so_far(known, False) is None
    known = noted(known, took(12, "INCREMENTAL"))
    why = slower_so_far(known, False)
    assert why is not None and why.code == "CHEAPER"
    # The first build, which also made the table, counts half.
    assert "took 12.0 s, the last full ones 10.0 s" in why.sentence
    for _ in range(PATIENCE - 1):
        assert slower_so_far(known, False) is not None
        known = noted(known, took(8, "FULL"))
    known = noted(known, took(8, "FULL"))
    assert slower_so_far(known, False) is None
    assert slower_so_far(noted(known, took(7, "INCREMENTAL")), False) is None


def test_what_a_build_took_counts_until_there_were_two_full_refreshes() -> None:
    known = refreshed((4, "FULL"), (3, "INCREMENTAL"), (3, "INCREMENTAL"))
    assert slower_so_far(known, False) is not None
    known = noted(known, took(5, "FULL"))
    assert slower_so_far(known, False) is not None
    assert slower_so_far(noted(known, took(5, "FULL")), False) is None


def test_refreshes_of_other_changes_are_forgotten() -> None:
    known = refreshed((20, "FULL"), *[(4, "INCREMENTAL")] * 5, (15, "INCREMENTAL"))
    assert slower_so_far(known, False) is None
    known = noted(known, took(16, "INCREMENTAL"))
    assert slower_so_far(known, False) is not None
    known = noted(noted(known, took(25, "FULL")), took(24, "FULL"))
    assert slower_so_far(known, False) is None


def test_inserts_say_nothing_about_other_changes() -> None:
    known = refreshed((8, "FULL"), (1, "INSERTS"), *[(9, "INCREMENTAL")] * 2, (1, "INSERTS"))
    why = slower_so_far(known, False)
    assert why is not None and "refreshes took 9.0 s" in why.sentence
    assert slower_so_far(known, True) is None
    known = refreshed((2, "FULL"), *[(9, "INSERTS")] * 2)
    why = slower_so_far(known, True)
    assert why is not None and "refreshes of inserts took 9.0 s" in why.sentence
    assert slower_so_far(known, False) is None


def test_one_kind_alone_tells_nothing() -> None:
    assert slower_so_far(Known(), False) is None
    assert slower_so_far(refreshed((1, "FULL"), (1, "FULL")), False) is None
    assert slower_so_far(refreshed((9, "FULL"), (1, "NO_DATA")), False) is None


def test_a_slow_start_is_forgiven_and_a_new_query_begins_anew() -> None:
    slow_start = refreshed((8, "FULL"), (30, "INCREMENTAL"), (4, "INCREMENTAL"))
    assert slower_so_far(slow_start, False) is None
    edited = refreshed((8, "FULL"), *[(9, "INCREMENTAL")] * 2, (2, "REINITIALIZE"))
    assert slower_so_far(edited, False) is None


def test_it_is_remembered() -> None:
    known = refreshed((20, "FULL"), (12, "INCREMENTAL"), (3, "INSERTS"), (5, "FULL"))
    tables = {"shop.t": Remembered(known)}
    assert read_remembered(write_remembered(tables)) == tables


def why_changes(known: Known) -> str:
    """Return what is said of changes that are applied, of which no source has any."""
    shop = small_shop()
    return str(cheaper_changes({}, known, shop.open_cycle(), FakeWarehouse(shop.spark)))


def test_the_choice_of_changes_has_its_numbers_too() -> None:
    expected = "CHANGES_CHEAPER: Applying the changes is expected to be faster than a full refresh"
    assert why_changes(Known()) == f"{expected}: no row of the sources changed."
    known = refreshed((20, "FULL"), *[(12, "INSERTS")] * 2, (9, "INSERTS"))
    assert slower_so_far(known, True) is None
    took_so_far = "the last incremental refreshes of inserts took 9.0 s, the last full ones"
    assert why_changes(known) == f"{expected}: {took_so_far} 10.0 s."
    known = refreshed((20, "FULL"), *[(9, "INSERTS")] * 3, *[(2, "FULL")] * PATIENCE)
    assert why_changes(known) == (
        f"{expected}: {took_so_far} 2.0 s; after 10 full ones in a row it is tried again."
    )


def test_changes_that_cancel_out_leave_no_reason(
    maintained: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = small_shop(totals="select customer, count(*) as n from shop.orders group by customer")
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    monkeypatch.setattr(cost, "SMALL", 1)
    cycle, session = shop.open_cycle(), FakeWarehouse(shop.spark)
    plan = plan_refresh(shop.request("totals"), cycle, session)
    assert (plan.decision.action, plan.decision.reason.code) == ("INCREMENTAL", "CHANGES_CHEAPER")
    monkeypatch.setattr(IncrementalRefresh, "statement", lambda _: None)
    foreseen, prepared = run.foresee(plan, cycle, session, [])
    assert foreseen.decision == Decision("NO_DATA") and prepared is None


@pytest.mark.parametrize("query", sorted({model.split("__")[0] for model in RECORDED}))
def test_recorded_changes_cost_at_most_a_quarter_more_than_in_the_better_mode(query: str) -> None:
    full, incremental = RECORDED[f"{query}__full"], RECORDED[f"{query}__incremental"]
    # A build takes about twice as long as a rebuild.
    known = refreshed((2 * min(full["inserts, recent"]), "FULL"))
    for workload in full:
        kind = "INSERTS" if workload.startswith("inserts") else "INCREMENTAL"
        chosen = []
        for rebuild, changes in zip(full[workload], incremental[workload], strict=True):
            is_full = slower_so_far(known, kind == "INSERTS") is not None
            chosen.append(rebuild if is_full else changes)
            known = noted(known, took(chosen[-1], "FULL" if is_full else kind))
        better = min(median(full[workload]), median(incremental[workload]))
        assert median(chosen) <= 1.25 * better, workload
