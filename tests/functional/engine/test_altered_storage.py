"""Storage whose columns or constraints somebody changed is put right by the next refresh."""

import pytest
from spark_shop import SparkShop

COPY = "select id, name, amount from t"
COUNTED = (
    "select name, count(*) as n, max(amount) as most from t group by name having count(*) > 0"
)
MAPPED = "alter table {0}__dyn set tblproperties ('delta.columnMapping.mode' = 'name')"
ALTERATIONS = {
    "added": ["alter table {0}__dyn add column note string"],
    "added and named like ours": ["alter table {0}__dyn add column __dyn_note int"],
    "dropped": [MAPPED, "alter table {0}__dyn drop column name"],
    "hidden and dropped": [MAPPED, "alter table {0}__dyn drop column {1}"],
    "renamed": [MAPPED, "alter table {0}__dyn rename column name to title"],
    "retyped": [
        "alter table {0}__dyn set tblproperties ('delta.enableTypeWidening' = 'true')",
        "alter table {0}__dyn alter column {2} type bigint",
    ],
}


ROWS, GROUPS = (COPY, "__dyn_row", "amount"), (COUNTED, "__dyn_count", "most")


@pytest.mark.parametrize(
    ("what", "query", "hidden", "number"),
    [
        *((what, *ROWS) for what in ALTERATIONS),
        *((what, *GROUPS) for what in ("added", "hidden and dropped", "retyped")),
    ],
)
def test_columns_that_somebody_changed_make_a_new_generation(
    shop: SparkShop, what: str, query: str, hidden: str, number: str
) -> None:
    shop.table("t", "id int, name string, amount int", "(1, 'a', 10)", "(2, 'b', 20)")
    shop.model("m", query)
    shop.check("m", "FULL")
    shop.run(*(sql.format("m", hidden, number) for sql in ALTERATIONS[what]))
    outcome = shop.check("m", "REINITIALIZE")
    code = outcome.plan.decision.reason.code
    assert code in ("STORAGE_ALTERED", "FOREIGN_COMMIT") and outcome.plan.generation == 2
    shop.run("insert into t values (3, 'a', 5)")
    shop.check("m")
    shop.check("m", "NO_DATA")


def test_so_does_a_full_refresh_that_was_asked_for(shop: SparkShop) -> None:
    shop.table("t", "id int, name string, amount int", "(1, 'a', 10)")
    shop.model("m", COPY, refresh_mode="full")
    shop.check("m", "FULL")
    shop.run("alter table m__dyn add column note string")
    assert shop.refresh("m", full_refresh=True).plan.generation == 2
    assert shop.difference("m") == []


def test_a_constraint_that_is_not_in_the_contract_is_dropped(shop: SparkShop) -> None:
    shop.table("t", "id int, name string, amount int", "(1, 'a', 10)")
    shop.model("m", COPY)
    shop.check("m", "FULL")
    shop.run("alter table m__dyn add constraint small check (amount < 15)")
    shop.run("insert into t values (2, 'b', 20)")
    assert shop.check("m").plan.generation == 1
    shop.run("insert into t values (3, 'c', 30)")
    shop.check("m")


def test_a_comment_is_no_other_column(shop: SparkShop) -> None:
    shop.table("t", "id int, name string, amount int", "(1, 'a', 10)")
    shop.model("m", COPY)
    shop.check("m", "FULL")
    shop.run("alter table m__dyn alter column name comment 'what it is called'")
    shop.check("m", "NO_DATA")
    assert not [sql for sql in shop.statements if sql == "DESCRIBE TABLE EXTENDED `m__dyn`"]
