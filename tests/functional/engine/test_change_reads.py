"""The listings of the paper on change queries, row for row."""

from typing import Any

import pytest
from change_reads import Reader, shown
from spark_shop import SparkShop

from spark_dynamic.errors import EngineError

ACTIONS = ("id", "name", "change_action", "change_is_update")


@pytest.fixture
def people(shop: SparkShop) -> SparkShop:
    """Listing 1."""
    shop.table("people", "id int, name string", "(1, 'Jeff')", "(2, 'Donny')")
    return shop


def mutate(shop: SparkShop) -> None:
    """Listing 2."""
    shop.run(
        "INSERT INTO people VALUES (3, 'Walter'), (4, 'Maud'), (5, 'Uli')",
        "UPDATE people SET name = 'Jeffrey' WHERE id = 1",
        "UPDATE people SET name = 'Maude' WHERE id = 4",
        "DELETE FROM people WHERE id IN (2, 5)",
    )


def pairs(rows: list[Any]) -> dict[Any, set[Any]]:
    """Return the ids of rows by the user's key."""
    found: dict[Any, set[Any]] = {}
    for row in rows:
        found.setdefault(row["id"], set()).add(row["change_row_id"])
    return found


@pytest.mark.parametrize(
    "key", ["unique_key", pytest.param("row_keys", marks=pytest.mark.nightly)]
)
def test_listings_1_to_5(people: SparkShop, key: str) -> None:
    keys = {"unique_key": ("id",)} if key == "unique_key" else {"row_keys": {"people": ("id",)}}
    reader = Reader(people, "select * from people", **keys)
    noon = reader.now()
    mutate(people)

    log = reader.rows(noon, mode="redo_log")
    ordered = sorted(log, key=lambda row: (row["change_version"], row["id"], row["change_diff"]))
    assert [tuple(row[column] for column in (*ACTIONS, "change_diff")) for row in ordered] == [
        (3, "Walter", "INSERT", False, 1),
        (4, "Maud", "INSERT", False, 1),
        (5, "Uli", "INSERT", False, 1),
        (1, "Jeff", "DELETE", True, -1),
        (1, "Jeffrey", "INSERT", True, 1),
        (4, "Maud", "DELETE", True, -1),
        (4, "Maude", "INSERT", True, 1),
        (2, "Donny", "DELETE", False, -1),
        (5, "Uli", "DELETE", False, -1),
    ]
    assert len({row["change_timestamp"] for row in log}) == 4
    ids = pairs(log)
    assert all(len(found) == 1 for found in ids.values())
    assert len({id for found in ids.values() for id in found}) == 5

    appended = reader.rows(noon, mode="append_only")
    assert shown(appended, *ACTIONS) == [
        (3, "Walter", "INSERT", False),
        (4, "Maud", "INSERT", False),
        (5, "Uli", "INSERT", False),
    ]
    assert pairs(appended) == {n: ids[n] for n in (3, 4, 5)}

    net = reader.rows(noon)
    assert shown(net, *ACTIONS) == [
        (1, "Jeff", "DELETE", True),
        (1, "Jeffrey", "INSERT", True),
        (2, "Donny", "DELETE", False),
        (3, "Walter", "INSERT", False),
        (4, "Maude", "INSERT", False),
    ]
    assert pairs(net) == {n: ids[n] for n in (1, 2, 3, 4)}


def test_listings_6_to_8(shop: SparkShop) -> None:
    shop.table(
        "people", "id int, name string",
        "(1, 'Jeffrey')", "(2, 'Donny')", "(3, 'Walter')", "(4, 'Maude')",
    )  # fmt: skip
    shop.table(
        "items", "id int, oid int, item string, desc string",
        "(11, 2, 'Ball', 'Bowling')", "(12, 2, 'Surfboard', 'Yater')", "(13, 1, 'Car', '1973')",
        "(14, 1, 'Rug', 'Classic')", "(15, 4, 'Autobahn LP', '')",
    )  # fmt: skip
    shop.run(
        "CREATE VIEW owner_and_items AS SELECT name, item FROM people JOIN items "
        "ON people.id = oid"
    )
    reader = Reader(
        shop,
        "select * from owner_and_items",
        row_keys={"people": ("id",), "items": ("id",)},
    )
    plain = Reader(shop, "select * from owner_and_items")
    then = reader.now()
    shop.run(
        "UPDATE items SET item = 'Ford' WHERE id = 13",
        "UPDATE items SET oid = 4 WHERE id = 14",
        "UPDATE items SET desc = 'Techno' WHERE id = 15",
        "DELETE FROM people WHERE id = 2",
    )
    rows = reader.rows(then)
    assert shown(rows, "name", "item", "change_action", "change_is_update") == [
        ("Donny", "Ball", "DELETE", False),
        ("Donny", "Surfboard", "DELETE", False),
        ("Jeffrey", "Car", "DELETE", True),
        ("Jeffrey", "Ford", "INSERT", True),
        ("Jeffrey", "Rug", "DELETE", False),
        ("Maude", "Rug", "INSERT", False),
    ]
    ids = {row["item"] + row["name"]: row["change_row_id"] for row in rows}
    assert ids["CarJeffrey"] == ids["FordJeffrey"]
    assert len(set(ids.values())) == 5

    by_content = plain.rows(then)
    assert len(by_content) == 6
    assert not any(row["change_is_update"] for row in by_content)
    assert len({row["change_row_id"] for row in by_content}) == 6


@pytest.mark.nightly
def test_a_key_that_names_no_row_raises(people: SparkShop) -> None:
    reader = Reader(people, "select * from people", unique_key=("name",))
    start = reader.now()
    people.run("INSERT INTO people VALUES (8, 'Same'), (9, 'Same')")
    # Of rows that were only added nobody asks.
    assert len(reader.rows(start)) == 2
    people.run("DELETE FROM people WHERE id = 1")
    with pytest.raises(Exception, match="ROW_KEY_NOT_UNIQUE.*unique_key \\(name\\)"):
        reader.rows(start)


def test_append_only_names_what_is_not_monotonic(people: SparkShop) -> None:
    for sql, word in (
        ("select count(*) as n from people", "GROUP BY"),
        ("select * from people a left join people b on a.id = b.id + 1", "LEFT JOIN"),
    ):
        reader = Reader(people, sql.replace("*", "a.id") if "join" in sql else sql)
        with pytest.raises(EngineError, match=f"NOT_MONOTONIC.*{word}"):
            reader.rows(reader.now(), mode="append_only")


def test_columns_that_nobody_uses_come_go_and_grow(people: SparkShop) -> None:
    """Delta reads no feed across a column that was dropped or got another type."""
    people.run("ALTER TABLE people ADD COLUMNS (age int, note string)")
    named = Reader(people, "select id, name from people", unique_key=("id",))
    start = named.now()
    features = "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true'"
    people.run(
        "ALTER TABLE people ADD COLUMNS (born date)",
        "INSERT INTO people VALUES (10, 'new', 1, null, null)",
    )
    assert "table_changes" in named.sql(start)
    assert shown(named.rows(start), *ACTIONS) == [(10, "new", "INSERT", False)]
    with pytest.raises(EngineError, match="COLUMNS_CHANGED"):
        Reader(people, "select * from people").rows(start)
    people.run(
        f"ALTER TABLE people SET TBLPROPERTIES ({features})",
        "INSERT INTO people VALUES (11, 'new', 2, null, null)",
        "ALTER TABLE people ALTER COLUMN age TYPE bigint",
        "INSERT INTO people VALUES (12, 'new', 3, null, null)",
        "ALTER TABLE people DROP COLUMN note",
        "INSERT INTO people VALUES (13, 'new', 4, null)",
    )
    added = [(number, "new", "INSERT", False) for number in (10, 11, 12, 13)]
    for mode in ("min_delta", "redo_log", "append_only"):
        assert shown(named.rows(start, mode=mode), *ACTIONS) == added
    distinct = Reader(people, "select distinct name from people")
    assert shown(distinct.rows(start), "name", "change_action") == [("new", "INSERT")]
