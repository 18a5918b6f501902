"""A fault in the engine makes a refresh a full one; faults of others stay errors."""

from typing import Any

import pytest
import sqlglot
from fake_shop import SETTINGS, Shop, small_shop

from spark_dynamic.changes import min_delta
from spark_dynamic.changes.points import Asking, position_of
from spark_dynamic.changes.read import ChangeRead, Mode, change_select, position_now
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.refresh import analyse, cost, incremental, maintenance, plan, run
from spark_dynamic.refresh.explain import explain_refresh
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.quiet import quiet
from spark_dynamic.refresh.verify import verify
from spark_dynamic.sql.references import find_references
from spark_dynamic.warehouse import Warehouse

COPY = "select id, amount from shop.orders where amount > 6"
FAULTS = [RecursionError, MemoryError, AssertionError, KeyError, sqlglot.ParseError, TypeError]
# Where it fails: while the query is judged, read, pinned, or compared with what is stored.
PLACES = [
    (analyse, "bind"),
    (analyse, "rendered"),
    (analyse, "resolve"),
    (analyse, "agree"),
    (maintenance, "bind"),
    (maintenance, "with_union_types"),
    (maintenance, "fingerprint"),
    (maintenance, "group_shape"),
    (plan, "judge"),
    (plan, "why_invalid"),
    (plan, "changed_sources"),
    (plan, "pinned"),
    (plan, "intervals"),
    (plan, "cheaper_full"),
]
# Those that only matter for rows that are stored already.
LATER = ("changed_sources", "intervals", "cheaper_full", "why_invalid")


class Planted:
    """Lets a function fail for as long as it is wanted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, error: Any):
        self.is_there = True
        right = getattr(module, name)

        def fails(*arguments: Any, **more: Any) -> Any:
            if self.is_there:
                raise error("planted")
            return right(*arguments, **more)

        monkeypatch.setattr(module, name, fails)


@pytest.fixture
def shop(judged: None, monkeypatch: pytest.MonkeyPatch) -> Shop:
    # Else a table that small is always refreshed in full.
    monkeypatch.setattr(cost, "SMALL", 0)
    monkeypatch.setattr(cost, "LARGE", 1)
    return small_shop(copy=COPY)


def add_order(shop: Shop, number: int) -> None:
    shop.spark.write("shop.orders").append((number, 20, 90))


def forget_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark be asked again, as after an upgrade."""
    monkeypatch.setattr(analyse, "_READING", -1)


@pytest.mark.parametrize(
    ("module", "name"), PLACES, ids=lambda part: getattr(part, "__name__", part)
)
def test_a_fault_makes_a_refresh_a_full_one(
    module: Any, name: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name != "pinned":
        # What is refreshed incrementally does not need it.
        shop.run()
    add_order(shop, 4)
    forget_verdict(monkeypatch)
    planted = Planted(monkeypatch, module, name, AssertionError)
    [said] = shop.run().values()
    action, _, code = said.partition("/")
    assert action in ("FULL", "REINITIALIZE") and code == "PLANNING_FAILED"
    assert shop.is_right("copy")
    assert "AssertionError: planted" in shop.record("copy").reason
    # What was recorded claims no more than is true: later changes are seen, with the fault or not.
    add_order(shop, 5)
    shop.run()
    assert shop.is_right("copy")
    planted.is_there = False
    add_order(shop, 6)
    # The fake knows no incremental refresh.
    shop.run(full_refresh=True)
    assert shop.is_right("copy")
    assert shop.run() == {"copy": "NO_DATA"}


@pytest.mark.parametrize("error", FAULTS)
def test_every_kind_of_fault_does(
    error: type[Exception], shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    Planted(monkeypatch, maintenance, "fingerprint", error)
    assert shop.run() == {"copy": "FULL/PLANNING_FAILED"}
    assert shop.is_right("copy")
    assert shop.run() == {"copy": "NO_DATA"}
    add_order(shop, 4)
    assert shop.run() == {"copy": "FULL/PLANNING_FAILED"}
    assert shop.is_right("copy")


@pytest.mark.parametrize("error", FAULTS)
def test_a_text_that_nothing_could_be_read_from_runs_as_it_is(
    error: type[Exception], shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = Planted(monkeypatch, analyse, "resolve", error)
    assert shop.run() == {"copy": "FULL/PLANNING_FAILED"}
    record = shop.record("copy")
    # No cut is claimed, and no verdict kept.
    assert record.frontier == () and record.clock == record.data_timestamp
    assert record.verdict.key == "" and record.fingerprint == "" and record.state == {}
    assert shop.run() == {"copy": "FULL/PLANNING_FAILED"}
    planted.is_there = False
    [said] = shop.run().values()
    assert said.startswith("REINITIALIZE/") and shop.is_right("copy")
    assert shop.record("copy").frontier != ()
    assert shop.run() == {"copy": "NO_DATA"}


def test_the_first_build_says_so_too(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    Planted(monkeypatch, maintenance, "bind", KeyError)
    reason = shop.refresh("copy").plan.decision.reason
    assert reason.code == "PLANNING_FAILED" and "report it" in reason.remedy


@pytest.mark.parametrize(
    ("module", "name"), [place for place in PLACES if place[1] not in LATER],
    ids=lambda part: getattr(part, "__name__", part),
)  # fmt: skip
def test_mode_incremental_says_what_failed(
    module: Any, name: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.configs["copy"] = {"refresh_mode": "incremental"}
    Planted(monkeypatch, module, name, RecursionError)
    with pytest.raises(EngineError, match=r"^PLANNING_FAILED: .*RecursionError: planted"):
        shop.run()


def test_mode_full_needs_no_plan(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.configs["copy"] = {"refresh_mode": "full"}
    Planted(monkeypatch, analyse, "resolve", RecursionError)
    shop.run()
    add_order(shop, 4)
    assert shop.run() == {"copy": "FULL/CONFIGURED_FULL"}
    assert shop.is_right("copy")


def test_a_table_that_may_not_be_rebuilt_is_left_as_it_is(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run()
    add_order(shop, 4)
    before = len(shop.storage("copy").commits)
    Planted(monkeypatch, maintenance, "bind", KeyError)
    with pytest.raises(EngineError, match="^PLANNING_FAILED: .* full_refresh: false forbids"):
        shop.run(full_refresh_forbidden=True)
    assert len(shop.storage("copy").commits) == before


@pytest.mark.parametrize(
    ("module", "name"),
    [(incremental, "differentiate"), (incremental, "Writer"), (run, "work_of")],
    ids=["differentiate", "Writer", "work_of"],
)
def test_a_fault_while_changes_are_written_down_does_as_well(
    module: Any, name: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run()
    add_order(shop, 4)
    Planted(monkeypatch, module, name, RecursionError)
    assert shop.run() == {"copy": "REINITIALIZE/PLANNING_FAILED"}
    assert shop.is_right("copy") and shop.record("copy").frontier != ()
    assert shop.run() == {"copy": "NO_DATA"}


def test_even_if_the_text_cannot_be_pinned_then(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run()
    add_order(shop, 4)
    Planted(monkeypatch, incremental, "differentiate", RecursionError)
    Planted(monkeypatch, plan, "pinned", MemoryError)
    [said] = shop.run().values()
    assert said.endswith("/PLANNING_FAILED")
    assert shop.is_right("copy") and shop.record("copy").frontier == ()


def test_mode_incremental_says_what_failed_then_and_writes_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.configs["copy"] = {"refresh_mode": "incremental"}
    shop.run()
    add_order(shop, 4)
    before = len(shop.storage("copy").commits)
    Planted(monkeypatch, incremental, "differentiate", KeyError)
    with pytest.raises(EngineError, match=r"^PLANNING_FAILED: The query cannot be refreshed"):
        shop.run()
    assert len(shop.storage("copy").commits) == before


def test_what_the_warehouse_raises_stays_what_it_is(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in (ConnectionResetError("gone"), WarehouseError("", "refused"), KeyError("a row")):

        def lost(_: str, error: Exception = error) -> Any:
            raise error

        session = shop.session
        monkeypatch.setattr(session, "rows", lost)
        with pytest.raises(type(error)) as raised:
            plan_refresh(shop.request("copy"), shop.open_cycle(), session)
        assert raised.value is error
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("sql", "code"),
    [("select * from shop.copy", "READS_ITSELF"), ("select * from shop.gone", "SOURCE_MISSING")],
)
def test_what_the_user_is_at_fault_for_stays_what_it_is(shop: Shop, sql: str, code: str) -> None:
    shop.run()
    shop.models["copy"] = sql
    with pytest.raises(EngineError, match=f"^{code}: "):
        shop.run()


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_stays_what_it_is(
    interrupt: type[BaseException], shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    Planted(monkeypatch, maintenance, "bind", interrupt)
    with pytest.raises(interrupt):
        shop.run()


def test_a_record_that_cannot_be_found_is_no_reason_to_build_another(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run()
    Planted(monkeypatch, plan, "find_stored", KeyError)
    with pytest.raises(EngineError, match="^PLANNING_FAILED: .*KeyError"):
        shop.run()


def test_explain_says_what_fails(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.run()
    add_order(shop, 4)
    planned = plan_refresh(shop.request("copy"), cycle := shop.open_cycle(), shop.session)
    Planted(monkeypatch, incremental, "differentiate", RecursionError)
    lines = explain_refresh(planned, cycle, shop.session)
    [sql] = [line.text for line in lines if line.part == "sql"]
    assert sql.startswith("PLANNING_FAILED: ") and "RecursionError: planted" in sql
    Planted(monkeypatch, maintenance, "bind", KeyError)
    planned = plan_refresh(shop.request("copy"), cycle := shop.open_cycle(), shop.session)
    texts = [line.text for line in explain_refresh(planned, cycle, shop.session)]
    assert any(text.startswith("not incremental: PLANNING_FAILED: ") for text in texts)


def test_verify_says_what_fails(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.run()
    Planted(monkeypatch, analyse, "resolve", RecursionError)
    with pytest.raises(EngineError, match="^PLANNING_FAILED: .*RecursionError"):
        verify(shop.request("copy"), shop.open_cycle(), shop.session)


def test_a_look_that_fails_is_followed_by_a_plan(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def __getattr__(self, _: str) -> Any:
            raise AssertionError

    cycle: Any = Broken()
    warehouse: Warehouse = shop.session
    assert quiet(shop.request("copy"), cycle, warehouse) is None


def test_a_text_that_is_nested_too_deeply_may_be_read_another_time() -> None:
    """It is no verdict about the text, which would be kept."""
    text = f"select {'abs(' * 90}a{')' * 90} as a from t"
    with pytest.raises(RecursionError):
        find_references(text, "shop")


def read_changes(shop: Shop) -> str:
    read = ChangeRead(COPY, "shop", dict(SETTINGS), Mode("min_delta"))
    cycle = shop.open_cycle()
    start = position_of(Asking("since", 0), read, cycle, shop.session)
    return change_select(read, start, position_now(read, cycle, shop.session), cycle, shop.session)


def test_a_change_query_whose_plan_fails_compares_both_versions(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_order(shop, 4)
    assert "DIFFERENCE" not in read_changes(shop)
    Planted(monkeypatch, maintenance, "fingerprint", KeyError)
    assert "DIFFERENCE" in read_changes(shop)


def test_a_change_query_that_cannot_be_written_says_what_failed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_order(shop, 4)
    Planted(monkeypatch, min_delta, "differentiate", RecursionError)
    with pytest.raises(EngineError, match="^PLANNING_FAILED: .*RecursionError: planted"):
        read_changes(shop)
