"""Spark's verdict on a text: what it keeps from being maintained, and when it is asked for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fake_shop import Shop, small_shop

from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.plan.nodes import Query
from spark_dynamic.refresh import maintenance

pytestmark = pytest.mark.usefixtures("judged")

COPY = "select id, amount from shop.orders where amount > 6 and id > 0"
# The same in other words. sqlglot writes WITH in capitals.
EDITED = (
    "with o as (select * from shop.orders)\n"
    "select x.id, x.amount from o x where 0 < x.id and 6 < x.amount -- both"
)
NEW_ROW = (4, 20, 90)

Explain = Callable[[str, str], str]


def asked(shop: Shop) -> list[str]:
    """Return the texts that Spark was asked about since the last time."""
    found = [sql for sql in shop.spark.log if sql.startswith("EXPLAIN ")]
    shop.spark.log.clear()
    return [sql.removeprefix("EXPLAIN EXTENDED ") for sql in found]


def built() -> Shop:
    shop = small_shop(copy=COPY)
    assert shop.run() == {"copy": "FULL/INITIAL_BUILD"}
    return shop


def is_rendered(sql: str) -> bool:
    """Tell whether a text is the one that sqlglot wrote."""
    return sql.startswith(("SELECT", "WITH"))


# When the verdict is asked for


def test_a_text_is_judged_once() -> None:
    shop = built()
    original, pinned, rendered = asked(shop)
    assert original == COPY
    assert pinned == COPY.replace("shop.orders", "`shop`.`orders` VERSION AS OF 0")
    assert rendered.startswith("SELECT id, amount FROM `shop`.`orders` VERSION AS OF 0")
    assert shop.run() == {"copy": "NO_DATA"}
    shop.spark.write("shop.orders").append(NEW_ROW)
    assert shop.run() == {"copy": "FULL/CHEAPER"}
    assert shop.run(full_refresh=True) == {"copy": "FULL/REQUESTED"}
    assert asked(shop) == []


def test_a_cosmetic_edit_is_judged_and_carried_on() -> None:
    """The fingerprint is the same, but it comes from the reading that is on trial."""
    shop = built()
    before = shop.record("copy")
    asked(shop)
    shop.models["copy"] = EDITED
    assert shop.run() == {"copy": "NO_DATA"}
    assert len(asked(shop)) == 3
    after = shop.record("copy")
    assert after.fingerprint == before.fingerprint != ""
    assert after.incarnation == before.incarnation
    assert after.verdict.key != before.verdict.key
    assert shop.run() == {"copy": "NO_DATA"}
    assert asked(shop) == []


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("spark.sql.ansi.enabled", "false", "REINITIALIZE/SETTINGS_CHANGED"),
        ("spark.sql.session.timeZone", "Europe/Berlin", "REINITIALIZE/SETTINGS_CHANGED"),
        # What Spark does without it, too: the rows stay, the question is another one.
        ("spark.sql.caseSensitive", "false", "NO_DATA"),
    ],
)
def test_another_setting_is_judged_anew(key: str, value: str, expected: str) -> None:
    shop = built()
    asked(shop)
    shop.settings[key] = value
    assert shop.run() == {"copy": expected}
    assert len(asked(shop)) == 3


def test_another_column_of_a_source_is_judged_anew() -> None:
    shop = small_shop(copy=COPY)
    shop.configs["copy"] = {"refresh_mode": "full"}
    shop.run()
    asked(shop)
    shop.spark.write("shop.orders").add_column("note", "string")
    assert shop.run() == {"copy": "FULL/CONFIGURED_FULL"}
    assert len(asked(shop)) == 3
    assert shop.run() == {"copy": "NO_DATA"}
    assert asked(shop) == []


def test_another_text_of_a_view_is_judged_anew() -> None:
    shop = small_shop(copy="select id from shop.v")
    shop.spark.create_view("shop.v", COPY)
    shop.run()
    asked(shop)
    shop.spark.create_view("shop.v", EDITED)
    assert shop.run() == {"copy": "NO_DATA"}
    assert len(asked(shop)) == 3


def test_an_edit_with_another_meaning_is_built_anew() -> None:
    shop = built()
    shop.models["copy"] = COPY.replace("6", "5")
    assert shop.run() == {"copy": "REINITIALIZE/DEFINITION_CHANGED"}
    assert shop.is_right("copy")


@pytest.mark.parametrize(
    ("is_doubted", "code"),
    [
        (is_rendered, "OPERATORS_DIFFER"),
        (lambda sql: "VERSION AS OF" in sql and not is_rendered(sql), "PLANS_DIFFER"),
    ],
)
def test_an_equal_fingerprint_alone_carries_nothing_on(
    is_doubted: Callable[[str], bool], code: str
) -> None:
    shop = built()
    shop.models["copy"] = EDITED
    shop.spark.explain = lambda sql, text: (
        text.replace("Project [", "Project [doubtful, ") if is_doubted(sql) else text
    )
    assert shop.run() == {"copy": "REINITIALIZE/DEFINITION_CHANGED"}
    assert shop.record("copy").fingerprint == ""
    shop.spark.write("shop.orders").append(NEW_ROW)
    assert shop.run() == {"copy": f"FULL/{code}"}
    assert shop.is_right("copy")


# What it keeps from being maintained


def of_rendered(change: Explain) -> Explain:
    """Let Spark explain what sqlglot wrote in another way."""
    return lambda sql, text: change(sql, text) if is_rendered(sql) else text


def refused(sql: str, text: str) -> str:
    raise WarehouseError("PARSE_SYNTAX_ERROR", "no such word\nand more about it")


def with_operator(operator: str) -> Explain:
    below = f"\n:  +- {operator} [id#1]\n\n== Optimized"
    return lambda sql, text: text.replace("\n\n== Optimized", below)


@pytest.mark.parametrize(
    ("explain", "detail"),
    [
        (
            of_rendered(lambda sql, text: text.replace("amount#", "customer#")),
            "the text is rendered with another meaning",
        ),
        (
            of_rendered(lambda sql, text: text.replace("id: bigint", "id: int")),
            "the text is rendered with another meaning",
        ),
        (of_rendered(refused), "no such word"),
        (with_operator("Generate"), "Generate"),
        (with_operator("Join LeftOuter,"), "Join LeftOuter"),
        (with_operator("Aggregate"), "1 aggregations instead of 0"),
    ],
)
def test_a_text_that_was_misread_is_not_maintained(explain: Explain, detail: str) -> None:
    shop = small_shop(copy=COPY)
    shop.spark.explain = explain
    assert shop.run() == {"copy": "FULL/INITIAL_BUILD"}
    assert shop.record("copy").fingerprint == ""
    shop.spark.write("shop.orders").append(NEW_ROW)
    assert shop.run() == {"copy": "FULL/OPERATORS_DIFFER"}
    assert shop.record("copy").reason.endswith(f" from its text: {detail}.")
    shop.spark.write("shop.orders").append(NEW_ROW)
    shop.configs["copy"] = {"refresh_mode": "incremental"}
    with pytest.raises(EngineError, match=f"OPERATORS_DIFFER: The query cannot be.*: {detail}"):
        shop.run()


def swapped(query: Query) -> Query:
    return replace(query, columns=query.columns[::-1])


def cut_short(query: Query) -> Query:
    return replace(query, columns=query.columns[:1], names=query.names[:1])


@pytest.mark.parametrize(
    ("misread", "detail"),
    [
        (lambda query: replace(query, names=("name", "id")), "columns name, id"),
        (cut_short, "columns id"),
        (swapped, r"types \['string', 'bigint'\]"),
    ],
)
def test_a_plan_with_another_result_is_not_maintained(
    misread: Callable[[Query], Query], detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind: Any = maintenance.bind
    monkeypatch.setattr(maintenance, "bind", lambda *arguments: misread(bind(*arguments)))
    shop = small_shop(named="select id, name from shop.customers")
    shop.run()
    shop.spark.write("shop.customers").append((30, "c"))
    assert shop.run() == {"named": "FULL/OPERATORS_DIFFER"}
    shop.spark.write("shop.customers").append((40, "d"))
    shop.configs["named"] = {"refresh_mode": "incremental"}
    with pytest.raises(EngineError, match=f"OPERATORS_DIFFER: .*: {detail}"):
        shop.run()
