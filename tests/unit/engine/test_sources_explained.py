"""What `explain` says of a refresh: its choice, its plan, its sources, its statements."""

import pytest
from fake_shop import Shop, small_shop
from fake_warehouse import FakeWarehouse

from spark_dynamic.refresh import cost, explain
from spark_dynamic.refresh import plan as planning
from spark_dynamic.refresh.explain import explain_refresh
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.shape import MINIMIZE, shape_text
from spark_dynamic.refresh.sources import intervals
from spark_dynamic.support import NONE, NotIncremental

BY_NAME = (
    "select c.name, sum(o.amount) as total from shop.orders o "
    "join shop.customers c on c.id = o.customer group by c.name"
)
COPY = "select id, amount from shop.orders where amount > 1"


@pytest.fixture
def shop(maintained: None) -> Shop:
    """Tables that follow their sources. What is explained is not run."""
    made = small_shop(by_name=BY_NAME, copy=COPY)
    made.configs = {name: {"refresh_mode": "incremental"} for name in made.models}
    for table in ("orders", "customers"):
        made.spark.table(f"shop.{table}").properties["delta.enableChangeDataFeed"] = "true"
    return made


def explained(shop: Shop, name: str) -> dict[str, list[str]]:
    """Return the texts of each part, in the order of the explanation."""
    session, cycle = FakeWarehouse(shop.spark), shop.open_cycle()
    plan = plan_refresh(shop.request(name), cycle, session)
    found: dict[str, list[str]] = {}
    for line in explain_refresh(plan, cycle, session):
        found.setdefault(line.part, []).append(line.text)
    return found


def test_before_the_first_run(shop: Shop) -> None:
    found = explained(shop, "by_name")
    assert list(found) == [
        "table", "mode", "action", "reason", "plan", "unique", "source", "sql", "delta",
    ]  # fmt: skip
    assert found["table"] == ["shop.by_name"]
    assert (found["mode"], found["action"]) == (["incremental"], ["FULL"])
    assert found["reason"] == ["INITIAL_BUILD: The table did not exist yet."]
    assert found["plan"][0] == (
        "groups by name, stored with __dyn_count, __dyn_sum_1, __dyn_count_1: merged by key"
    )
    rules = [line.strip().partition(":")[0] for line in found["plan"][1:]]
    assert rules == ["inner_join", "scan", "scan"]
    assert found["unique"] == ["by name, proven"]
    assert found["source"] == [
        "shop.customers at version 0: read in full",
        "shop.orders at version 0: read in full",
    ]
    [query] = found["sql"]
    assert query.count("VERSION AS OF 0") == 2 and query.endswith("group by c.name")
    # As if both had changed.
    for table in ("orders", "customers"):
        assert f"`shop`.`{table}` /* delta */" in found["delta"][0]
    assert not shop.spark.exists("shop.by_name")


def test_an_unchanged_source_has_no_part_in_the_changes(shop: Shop) -> None:
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    found = explained(shop, "by_name")
    assert (found["action"], found["reason"]) == (["INCREMENTAL"], ["-"])
    assert found["shape"] == ["ADDED_ONLY (shop.orders: inserts only)"]
    assert found["source"] == [
        "shop.customers at version 0: no change",
        "shop.orders at version 1: inserts only since version 0",
    ]
    [delta] = found["delta"]
    assert "`shop`.`orders` /* delta */" in delta and "`shop`.`customers` /* new */" in delta
    assert "`customers` /* delta */" not in delta and "UNION ALL" not in delta
    read, grouped, merged = found["sql"]
    assert read.startswith("CACHE LAZY TABLE __dyn_delta_1 AS\nSELECT `customer`, `amount`, 1 AS")
    assert "table_changes('`shop`.`orders`', 1, 1)" in read
    assert grouped.startswith("CACHE LAZY TABLE __dyn_groups AS\nSELECT ")
    assert "__dyn_delta_1" in grouped and "`customers` VERSION AS OF 0" in grouped
    assert merged.startswith("MERGE INTO `shop`.`by_name__dyn` AS t USING")
    assert "__dyn_groups" in merged and "BETWEEN" not in merged


def test_what_is_only_added_is_appended(shop: Shop) -> None:
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    found = explained(shop, "copy")
    [append] = found["sql"]
    assert append.startswith("INSERT INTO `shop`.`copy__dyn` BY NAME\nSELECT ")
    assert "table_changes('`shop`.`orders`', 1, 1)" in append
    shop.spark.write("shop.orders").delete((1, 10, 5))
    *_, merge = explained(shop, "copy")["sql"]
    assert merge.startswith("MERGE INTO `shop`.`copy__dyn` AS t USING")


def test_nothing_is_run_to_find_out_about_statements(shop: Shop) -> None:
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    begin = len(shop.spark.log)
    explained(shop, "by_name")
    asked = {statement.split()[0] for statement in shop.spark.log[begin:]}
    assert asked <= {"SHOW", "DESCRIBE", "EXPLAIN"}


def test_a_table_that_is_up_to_date_has_a_plan_and_no_statement(shop: Shop) -> None:
    shop.run()
    found = explained(shop, "by_name")
    assert found["action"] == ["NO_DATA"] and found["plan"]
    assert "sql" not in found and "shape" not in found
    assert {text.rpartition(": ")[2] for text in found["source"]} == {"no change"}


def test_changes_that_cannot_be_written_down_are_said_to_be_none(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(work: object) -> list[str]:
        raise NotIncremental("DELTA_TOO_LARGE", "300,000")

    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    monkeypatch.setattr(explain, "expected_statements", refuse)
    [text] = explained(shop, "by_name")["sql"]
    assert text.startswith("not incremental: DELTA_TOO_LARGE: ")


def test_auto_gives_its_numbers_and_asks_nothing_for_them(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.configs = {}
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    found = explained(shop, "by_name")
    assert (found["mode"], found["action"]) == (["auto"], ["FULL"])
    assert found["reason"] == [
        "CHEAPER: A full refresh is expected to be faster: the changed sources have only 4 rows."
    ]
    monkeypatch.setattr(cost, "SMALL", 4)
    begin = len(shop.spark.log)
    found = explained(shop, "by_name")
    asked = len(shop.spark.log) - begin
    assert found["action"] == ["INCREMENTAL"]
    assert found["reason"] == [
        "CHANGES_CHEAPER: Applying the changes is expected to be faster than a full refresh: "
        "1 of 4 rows of shop.orders changed."
    ]
    monkeypatch.setattr(planning, "cheaper_changes", lambda *_: NONE)
    assert explained(shop, "by_name")["reason"] == ["-"]
    assert len(shop.spark.log) - begin == 2 * asked
    monkeypatch.setattr(planning, "cheaper_changes", cost.cheaper_changes)
    shop.spark.table("shop.orders").properties.clear()
    [why] = explained(shop, "by_name")["reason"]
    assert why.endswith(": shop.orders, with 4 rows, has no change feed.")


@pytest.mark.parametrize(
    ("feed", "source", "shape"),
    [
        ("true", "inserts only since version 0", "inserts only"),
        ("false", "delta.enableChangeDataFeed", "no change feed"),
    ],
)
def test_a_source_without_a_change_feed_is_said_to_have_none(
    feed: str, source: str, shape: str
) -> None:
    shop = small_shop(copy="select id from shop.orders")
    shop.spark.table("shop.orders").properties["delta.enableChangeDataFeed"] = feed
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    session, cycle = FakeWarehouse(shop.spark), shop.open_cycle()
    plan = plan_refresh(shop.request("copy"), cycle, session)
    said = {line.part: line.text for line in explain_refresh(plan, cycle, session)}
    assert source in said["source"] and "a rewrite" not in said["source"]
    assert plan.record and plan.cut
    found = intervals(plan.record, plan.cut, plan.analysis, cycle, session)
    assert shape_text(MINIMIZE, found) == f"MINIMIZE (shop.orders: {shape})"
