"""Every function of Spark was looked at; what is not Spark's own is not trusted unasked."""

import os
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from spark_shop import SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.sql import spark_functions
from spark_dynamic.sql.guard import explain
from spark_dynamic.sql.spark_functions import BUILT_IN, CLOCK, VOLATILE

_EXAMPLE = re.compile(r"^\s*> (SELECT .*?);\s*$", re.MULTILINE)
# They are called by no name of their own: an operator, and a column of a file.
NO_FUNCTIONS = {"sample", "_metadata"}


def test_every_function_of_spark_is_named(shop: SparkShop) -> None:
    rows = shop.session.sql("SHOW SYSTEM FUNCTIONS").collect()
    found = {name for [name] in rows if re.fullmatch(r"\w+", name)}
    assert len(found) > 500
    if os.environ.get("REWRITE"):
        place = Path(spark_functions.__file__)
        head, begin, _ = place.read_text().partition('_NAMES: Final = """\n')
        names = textwrap.fill(" ".join(sorted(found)), 98, initial_indent="    ",
                              subsequent_indent="    ")  # fmt: skip
        place.write_text(
            f'{head}{begin}{names}\n"""\nBUILT_IN: Final = frozenset(_NAMES.split())\n'
        )
        return
    # A new one is to be reviewed: is its value another one while no table changes?
    assert found == BUILT_IN
    assert (CLOCK | VOLATILE) - NO_FUNCTIONS <= BUILT_IN


@pytest.mark.nightly
def test_what_spark_calls_not_deterministic_is_volatile(shop: SparkShop) -> None:
    """By the examples in Spark's own documentation; they also show that no call is overlooked."""
    warehouse = SparkWarehouse(shop.session)
    found, examples = set(), 0
    for name in sorted(BUILT_IN):
        rows = shop.session.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect()
        for example in _EXAMPLE.findall("\n".join(text for [text] in rows))[:4]:
            try:
                plan = shop.session.sql(example)._jdf.queryExecution().analyzed()  # type: ignore
            except Exception:
                # Some show an error.
                continue
            examples += 1
            if not _is_deterministic(plan):
                found.add(name)
            unknown = explain(warehouse, example).calls - BUILT_IN if examples % 9 == 0 else set()
            assert not unknown, (example, unknown)
    assert examples > 600
    assert {"rand", "uuid"} <= found <= VOLATILE


def _is_deterministic(plan: Any) -> bool:
    expressions, children = plan.expressions().iterator(), plan.children().iterator()
    while expressions.hasNext():
        if not expressions.next().deterministic():
            return False
    while children.hasNext():
        if not _is_deterministic(children.next()):
            return False
    return True


KEY = "'0000111122223333'"


@pytest.mark.parametrize(
    ("call", "is_volatile"),
    [
        (f"aes_encrypt(s, {KEY})", True),
        (f"aes_encrypt(s, {KEY}, 'CBC')", True),
        (f"aes_encrypt(s, {KEY}, 'GCM', 'DEFAULT', '')", True),
        (f"aes_encrypt(s, {KEY}, 'ECB')", False),
        (f"aes_encrypt(s, {KEY}, 'CBC', 'DEFAULT', unhex('{'00' * 16}'))", False),
    ],
)
def test_encryption_with_a_vector_made_up_by_spark_is_volatile(
    shop: SparkShop, call: str, is_volatile: bool
) -> None:
    shop.table("t", "a int, s string", "(1, 'x')")
    shop.model("m", f"select a, hex({call}) as e from t", refresh_mode="auto")
    shop.refresh("m")
    decision = shop.refresh("m").plan.decision
    assert decision.action == ("FULL" if is_volatile else "NO_DATA")
    if is_volatile:
        assert "VOLATILE_FUNCTION: The query calls aes_encrypt()" in str(decision.reason)


@pytest.mark.parametrize(
    ("made", "call", "named", "declared"),
    [
        ("CREATE TEMPORARY FUNCTION grown(x INT) RETURNS INT RETURN x + 1", "grown(a)", "grown()",
         "grown"),
        ("DECLARE OR REPLACE VARIABLE chosen INT DEFAULT 5", "a + chosen",
         "the session variable chosen", ""),
    ],
)  # fmt: skip
def test_what_lives_in_the_session_is_volatile(
    shop: SparkShop, made: str, call: str, named: str, declared: str
) -> None:
    shop.table("t", "a int", "(1)")
    shop.run(made)
    shop.model("m", f"select {call} as b from t", refresh_mode="auto")
    shop.check("m", "FULL")
    assert f"VOLATILE_FUNCTION: The query calls {named}," in str(
        shop.check("m", "FULL").plan.decision.reason
    )
    if declared:
        sql = shop.models["m"][0]
        shop.model("m", sql, immutable_functions=[declared])
        shop.refresh("m")
        shop.check("m", "NO_DATA")


FUNCTIONS = (
    "CREATE FUNCTION g(x INT) RETURNS INT RETURN x + 1",
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN {schema}.g(x) * 2",
    "CREATE FUNCTION h(x INT) RETURNS INT RETURN g(x) * 3",
    "CREATE VIEW one AS SELECT 1 AS n",
    "CREATE FUNCTION through_view(x INT) RETURNS INT RETURN x + (SELECT max(n) FROM {schema}.one)",
    "CREATE FUNCTION rows_of(x INT) RETURNS TABLE(n INT) RETURN SELECT {schema}.f(x) AS n",
)


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("f", "select f(a) as b from t"),
        ("h", "select h(a) as b from t"),
        ("rows_of", "select r.n as b from t, lateral rows_of(t.a) r"),
    ],
)
def test_a_function_below_a_declared_one_counts(shop: SparkShop, name: str, sql: str) -> None:
    shop.table("t", "a int", "(1), (2)")
    shop.run(*(statement.format(schema=shop.schema) for statement in FUNCTIONS))
    declared = [f"{shop.schema}.f", f"{shop.schema}.{name}"]
    shop.model("m", sql, refresh_mode="auto", immutable_functions=declared)
    shop.check("m", "FULL")
    shop.check("m", "NO_DATA")
    # Made again as it was, it is the same.
    shop.run("CREATE OR REPLACE FUNCTION g(x INT) RETURNS INT RETURN x + 1")
    shop.check("m", "NO_DATA")
    shop.run("CREATE OR REPLACE FUNCTION g(x INT) RETURNS INT RETURN x + 100")
    shop.check("m", "REINITIALIZE")


def test_a_function_declared_by_its_name_alone_is_found_in_its_schema(shop: SparkShop) -> None:
    shop.table("t", "a int", "(1)")
    shop.run("CREATE SCHEMA IF NOT EXISTS tools")
    grown = "CREATE OR REPLACE FUNCTION tools.grown(x INT) RETURNS INT RETURN x + "
    shop.run(f"{grown} 1")
    shop.model("m", "select tools.grown(a) as b from t", immutable_functions=["grown"])
    shop.check("m", "FULL")
    shop.check("m", "NO_DATA")
    shop.run(f"{grown} 10")
    shop.check("m", "REINITIALIZE")


def test_a_view_below_a_declared_function_counts(shop: SparkShop) -> None:
    shop.table("t", "a int", "(1), (2)")
    shop.run(*(statement.format(schema=shop.schema) for statement in FUNCTIONS))
    sql, declared = "select through_view(a) as b from t", ["through_view"]
    shop.model("m", sql, refresh_mode="auto", immutable_functions=declared)
    shop.check("m", "FULL")
    shop.check("m", "NO_DATA")
    shop.run("ALTER VIEW one AS SELECT 100 AS n")
    shop.check("m", "REINITIALIZE")
    # Spark shows what a view calls, so that it has to be declared.
    shop.run(f"ALTER VIEW one AS SELECT {shop.schema}.g(1) AS n")
    assert shop.check("m", "REINITIALIZE").plan.decision.reason.code == "DEFINITION_CHANGED"
    assert shop.check("m", "FULL").plan.decision.reason.code == "VOLATILE_FUNCTION"


def test_a_table_function_that_is_not_declared_is_volatile(shop: SparkShop) -> None:
    shop.table("t", "a int", "(1)")
    shop.run(*(statement.format(schema=shop.schema) for statement in FUNCTIONS))
    shop.model("m", "select r.n from t, lateral rows_of(t.a) r", refresh_mode="auto")
    shop.check("m", "FULL")
    shop.run("CREATE OR REPLACE FUNCTION g(x INT) RETURNS INT RETURN x + 100")
    assert shop.check("m", "FULL").plan.decision.reason.code == "VOLATILE_FUNCTION"
