"""Predicates over change queries: those on input columns reach the scans, others stay above."""

import re

import pytest
from change_reads import Reader, shown
from spark_shop import SparkShop


@pytest.fixture
def owners(shop: SparkShop) -> SparkShop:
    shop.table("people", "id int, name string", "(1, 'Jeff')", "(2, 'Donny')")
    shop.table("items", "id int, oid int, item string", "(11, 1, 'Car')", "(12, 2, 'Ball')")
    return shop


def change(shop: SparkShop) -> None:
    shop.run(
        "UPDATE people SET name = 'Jeffrey' WHERE id = 1",
        "INSERT INTO items VALUES (13, 1, 'Rug')",
        "DELETE FROM items WHERE id = 12",
    )


def filters(shop: SparkShop, sql: str, condition: str, columns: str = "*") -> list[str]:
    """Return the filters of every scan behind a change query under a condition."""
    query = f"SELECT {columns} FROM (\n{sql}\n) WHERE {condition}"
    shop.run("SET spark.sql.maxMetadataStringLength=1000")
    plan = shop.session.sql(f"EXPLAIN {query}").collect()[0][0]
    shop.run("RESET spark.sql.maxMetadataStringLength")
    found: list[str] = re.findall(r"PushedFilters: \[(.*?)\]", plan)
    assert found, plan
    return found


def of_input(found: list[str], column: str) -> list[str]:
    return [one for one in found if re.search(rf"\({column},", one)]


def test_predicates_over_changes(owners: SparkShop) -> None:
    shop = owners
    join = "select p.id, name, item from people p join items i on p.id = i.oid"
    named = Reader(shop, "select id, name from people", unique_key=("id",))
    plain, joined = Reader(shop, "select id, name from people"), Reader(shop, join)
    starts = [reader.now() for reader in (named, plain, joined)]
    change(shop)
    by_key, log, of_join = (
        named.sql(starts[0]),
        plain.sql(starts[1], mode="redo_log"),
        joined.sql(starts[2]),
    )
    # A join: each side gets the predicates on its columns, in every term.
    both = filters(shop, of_join, "name = 'Jeffrey' and item = 'Car'")
    on_people, on_items = of_input(both, "name"), of_input(both, "item")
    assert on_people and on_items and len(on_people) + len(on_items) == len(both), both
    # The log of one table.
    assert all("(id,1)" in one for one in filters(shop, log, "id = 1"))
    # With a key only what all halves of an update share may go down.
    assert all("(id,1)" in one for one in filters(shop, by_key, "id = 1"))
    asked = "name, change_is_update"
    assert of_input(filters(shop, by_key, "name = 'Jeffrey'", asked), "name") == []
    rows = shop.session.sql(f"SELECT * FROM (\n{by_key}\n) WHERE name = 'Jeffrey'").collect()
    assert shown(rows, "name", "change_action", "change_is_update") == [
        ("Jeffrey", "INSERT", True)
    ]
    # Appended columns are computed above the scans, and so are predicates on them.
    for sql in (by_key, log, of_join):
        condition = "change_action = 'INSERT' and change_row_id is not null"
        found = filters(shop, sql, condition)
        assert not any("change_" in one or "INSERT" in one for one in found), found
