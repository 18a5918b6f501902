"""Constraints of a contract: rows that break one are never shown, whatever a run does."""

from typing import Any

import pytest
from fake_shop import Shop, said, small_shop
from fake_warehouse import FakeWarehouse, Killed

from spark_dynamic.apply.constraints import (
    Constraint,
    check,
    conditions_in_storage,
    constraint_statements,
    not_null,
)
from spark_dynamic.apply.storage import stored_columns
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.run import run_plan
from spark_dynamic.warehouse import Column

COPY = "select id, amount from shop.orders"
POSITIVE = (check("amount > 0"),)
GOOD = [(1, 5), (2, 7), (3, 9)]


def run(shop: Shop, *constraints: Constraint, **more: Any) -> str:
    return said(shop.refresh("copy", constraints=constraints, **more))


def refused(shop: Shop, *constraints: Constraint, times: int = 2) -> None:
    """Require that every run fails, and not only the first."""
    for _ in range(times):
        with pytest.raises(EngineError, match=r"^CONSTRAINT_VIOLATED: Rows of shop\.copy break"):
            run(shop, *constraints)


def rows(shop: Shop) -> list[Any]:
    return shop.spark.read("select * from shop.copy")


def generations(shop: Shop) -> list[str]:
    return sorted(name.name for name in shop.spark.entries if "__dyn" in name.name)


def test_a_first_build_with_bad_rows_fails_on_every_run_and_leaves_nothing() -> None:
    shop = small_shop(copy=COPY)
    shop.spark.write("shop.orders").append((4, 10, -1))
    refused(shop, *POSITIVE, times=3)
    assert not shop.spark.exists("shop.copy") and generations(shop) == []
    shop.spark.write("shop.orders").delete((4, 10, -1))
    assert run(shop, *POSITIVE) == "FULL/INITIAL_BUILD"
    assert rows(shop) == GOOD


def test_bad_rows_never_replace_good_ones() -> None:
    shop = small_shop(copy=COPY)
    run(shop, *POSITIVE)
    shop.spark.write("shop.orders").append((4, 10, -1))
    refused(shop, *POSITIVE)
    assert rows(shop) == GOOD and generations(shop) == ["copy__dyn"]
    shop.spark.write("shop.orders").delete((4, 10, -1))
    assert run(shop, *POSITIVE) == "NO_DATA"
    shop.spark.write("shop.orders").append((4, 10, 1))
    assert run(shop, *POSITIVE) == "FULL/LIMIT"
    assert generations(shop) == ["copy__dyn"]


def test_an_edit_that_brings_bad_rows_leaves_the_former_definition() -> None:
    shop = small_shop(copy=COPY)
    run(shop, *POSITIVE)
    shop.models["copy"] = "select id, 5 - amount as amount, customer from shop.orders"
    refused(shop, *POSITIVE)
    assert rows(shop) == GOOD and generations(shop) == ["copy__dyn"]


def test_a_constraint_that_is_added_later_is_applied_without_a_refresh() -> None:
    shop = small_shop(copy=COPY)
    run(shop)
    assert run(shop, *POSITIVE) == "NO_DATA"
    before = len(shop.spark.log)
    assert run(shop, *POSITIVE) == "NO_DATA"
    assert not [sql for sql in shop.spark.log[before:] if "CONSTRAINT" in sql]
    shop.spark.write("shop.orders").append((4, 10, -1))
    refused(shop, *POSITIVE)


def test_a_constraint_that_is_added_later_is_checked_on_the_rows_that_are_there() -> None:
    shop = small_shop(copy=COPY)
    run(shop)
    refused(shop, check("amount > 6"))
    assert rows(shop) == GOOD
    shop.spark.write("shop.orders").delete((1, 10, 5))
    assert run(shop, check("amount > 6")) == "FULL/LIMIT"
    assert rows(shop) == GOOD[1:]
    # The old rows could not meet it, so the new ones are in a table of their own.
    assert generations(shop) == ["copy__dyn", "copy__dyn_2"]


def test_a_constraint_that_is_gone_is_dropped_before_it_is_in_the_way() -> None:
    shop = small_shop(copy=COPY)
    run(shop, *POSITIVE, check("id < 100", "Small"))
    assert run(shop, check("id < 100", "Small")) == "NO_DATA"
    found = [key for key in shop.storage("copy").properties if "constraints" in key]
    assert found == ["delta.constraints.small"]
    shop.spark.write("shop.orders").append((400, 10, -1))
    assert run(shop) == "FULL/LIMIT"
    assert (400, -1) in rows(shop)


def test_a_kill_before_the_check_is_made_up_for() -> None:
    shop = small_shop(copy=COPY)
    run(shop, *POSITIVE)
    shop.models["copy"] = "select id, 5 - amount as amount, customer from shop.orders"
    session, cycle = FakeWarehouse(shop.spark), shop.open_cycle()

    def die() -> None:
        raise Killed

    shop.spark.meanwhile.append(("SHOW TBLPROPERTIES", die))
    plan = plan_refresh(shop.request("copy", constraints=POSITIVE), cycle, session)
    with pytest.raises(Killed):
        run_plan(plan, cycle, session)
    assert generations(shop) == ["copy__dyn", "copy__dyn_2"]
    refused(shop, *POSITIVE, times=1)
    assert rows(shop) == GOOD and generations(shop) == ["copy__dyn"]
    refused(shop, *POSITIVE)


def test_a_kill_after_a_good_build_is_made_up_for() -> None:
    shop = small_shop(copy=COPY)
    run(shop, *POSITIVE)
    shop.models["copy"] = "select id, amount, customer from shop.orders"
    session, cycle = FakeWarehouse(shop.spark), shop.open_cycle()

    def die() -> None:
        raise Killed

    shop.spark.meanwhile.append(("SHOW TBLPROPERTIES", die))
    plan = plan_refresh(shop.request("copy", constraints=POSITIVE), cycle, session)
    with pytest.raises(Killed):
        run_plan(plan, cycle, session)
    assert run(shop, *POSITIVE) == "NO_DATA"
    assert shop.storage("copy").name.name == "copy__dyn_2"
    assert [key for key in shop.storage("copy").properties if "constraints" in key]


def test_a_build_that_another_run_has_adopted_meanwhile_is_left_to_it() -> None:
    shop = small_shop(copy=COPY)

    def another_run() -> None:
        session = shop.session
        assert run(shop, *POSITIVE) == "NO_DATA"
        shop.session = session
        name = "DELTA_CONSTRAINT_ALREADY_EXISTS"
        raise WarehouseError(name, f"[{name}] Constraint 'positive' already exists.")

    shop.spark.meanwhile.append(("ADD CONSTRAINT", another_run))
    assert run(shop, *POSITIVE) == "FULL/INITIAL_BUILD"
    assert rows(shop) == GOOD and generations(shop) == ["copy__dyn"]
    assert run(shop, *POSITIVE) == "NO_DATA"


def test_a_wrong_condition_fails_before_anything_is_shown() -> None:
    shop = small_shop(copy=COPY)
    for _ in range(2):
        with pytest.raises(Exception, match="nope"):
            run(shop, check("nope > 0"))
    assert not shop.spark.exists("shop.copy") and generations(shop) == []


def test_an_empty_run_meets_the_same_constraints() -> None:
    shop = small_shop(copy=COPY)
    run(shop)
    with pytest.raises(EngineError, match="CONSTRAINT_VIOLATED"):
        run(shop, check("amount > 6"), leaves_no_state=True)
    assert rows(shop) == GOOD


def test_a_table_is_not_dropped_because_an_empty_one_is_shown() -> None:
    shop = small_shop(copy=COPY)
    run(shop)
    empty = {"sql": f"{COPY} where false", "leaves_no_state": True}
    assert run(shop, check("amount > 6"), **empty) == "FULL/EMPTY_RUN"
    assert rows(shop) == []
    refused(shop, check("amount > 6"))
    assert "copy__dyn" in generations(shop)
    assert run(shop) == "NO_DATA"
    assert rows(shop) == GOOD
    # The mark of the empty one is not taken for that of this one.
    refused(shop, check("amount > 6"))


def test_conditions_are_written_in_the_names_of_storage() -> None:
    columns = stored_columns([Column("a b", "int"), Column("x`y", "int"), Column("(z)", "int")])
    given = [not_null("a b"), check("`A B` > 1 or x = '`a b`' or `x``y` < `(z)`.n", "Odd")]
    assert list(conditions_in_storage(given, columns).values()) == [
        "`__dyn_column_1` IS NOT NULL",
        "`__dyn_column_1` > 1 or x = '`a b`' or `__dyn_column_2` < `__dyn_column_3`.n",
    ]


def test_nothing_is_required_of_rows_that_the_view_leaves_out() -> None:
    [condition] = conditions_in_storage([check("n > 1")], (), "__dyn_visible").values()
    assert condition == "NOT __dyn_visible OR (n > 1)"


def test_two_constraints_of_one_name_are_refused_before_anything_is_written() -> None:
    shop = small_shop(copy=COPY)
    with pytest.raises(EngineError, match="CONSTRAINT_NAME_TWICE: Two .* are named SMALL"):
        run(shop, check("id < 10", "small"), check("id < 20", "SMALL"))
    assert generations(shop) == []
    assert run(shop, check("id < 10", "s"), check("id < 10", "s")) == "FULL/INITIAL_BUILD"


def test_only_what_differs_is_altered() -> None:
    wanted = {"a": "x\n  > 1", "b": "y > 1"}
    found = {"a": "x > 1", "b": "y > 2", "c": "z > 1"}
    assert constraint_statements(TableName("s", "t"), wanted, found) == [
        "ALTER TABLE `s`.`t` DROP CONSTRAINT `b`",
        "ALTER TABLE `s`.`t` DROP CONSTRAINT `c`",
        "ALTER TABLE `s`.`t` ADD CONSTRAINT `b` CHECK (y > 1)",
    ]
