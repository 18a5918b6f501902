"""What the catalog and the state table say, and how it is read."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from fake_records import minute, pin_of, recorded_at
from fake_shop import small_shop
from fake_warehouse import FakeWarehouse

from spark_dynamic.catalog import Catalog, describe_query, describe_relation
from spark_dynamic.clock import stamp
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.state import (
    KnownState,
    StateRow,
    append_rows,
    create_state_table,
    merge,
    read_state,
    row_of,
    state_metadata,
    summarise,
)
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName
from spark_dynamic.sql.references import Unreadable
from spark_dynamic.sql.resolve import resolve
from spark_dynamic.warehouse import Column, Commit, Relation

ORDERS = TableName("shop", "orders")


class Canned:
    """A warehouse with one answer."""

    def __init__(self, *rows: tuple[str, str]) -> None:
        self._rows = rows

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [{"col_name": name, "data_type": kind} for name, kind in self._rows]


def test_a_partitioned_table_is_described_by_its_details() -> None:
    found = describe_relation(
        Canned(  # type: ignore[arg-type]
            ("id", "int"), ("Type", "string"), ("# Partition Information", ""),
            ("# col_name", "data_type"), ("Type", "string"), ("Provider", "string"), ("", ""),
            ("# Detailed Table Information", ""), ("Type", "EXTERNAL"), ("Location", "/x"),
            ("Provider", "DELTA"), ("Table Properties", "[a=b,c=d]"),
        ),
        ORDERS,
    )  # fmt: skip
    assert found == Relation(
        ORDERS, (Column("id", "int"), Column("Type", "string")), "delta", "/x", "[a=b,c=d]"
    )
    assert found.is_delta


class CannedView(Canned):
    """A warehouse with one view."""

    def __init__(self, **facts: Any) -> None:
        super().__init__(("a", "int"), ("", ""), ("Type", "VIEW"))
        self._facts = {"view_text": "select a from t", **facts}

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [{"json": json.dumps(self._facts)}] if "AS JSON" in sql else super().rows(sql)


@pytest.mark.parametrize(
    ("written", "catalog", "schema"),
    [
        ("spark_catalog.shop", "spark_catalog", "shop"),
        ("spark_catalog.`2024_shop`", "spark_catalog", "2024_shop"),
        ("`my-lake`.`a.b``c`", "my-lake", "a.b`c"),
        (None, "", "default"),
    ],
)
def test_the_schema_of_a_view_is_read_without_its_quotes(
    written: str | None, catalog: str, schema: str
) -> None:
    warehouse = CannedView(view_catalog_and_namespace=written, view_query_output_columns=["x"])
    found = describe_relation(warehouse, ORDERS)  # type: ignore[arg-type]
    assert found and found.view
    assert (found.view.catalog, found.view.schema) == (catalog, schema)
    assert found.view.output_columns == ("x",)


def test_a_view_without_its_list_of_columns_has_those_of_its_query() -> None:
    found = describe_relation(CannedView(), ORDERS)  # type: ignore[arg-type]
    assert found and found.view and found.view.output_columns == ("a",)


def test_a_view_of_another_catalog_is_left_to_spark() -> None:
    view = describe_relation(
        CannedView(view_catalog_and_namespace="lake.shop"),  # type: ignore[arg-type]
        ORDERS,
    )
    with pytest.raises(Unreadable, match="created in the catalog lake"):
        resolve("select * from orders", "shop", lambda _: view, {})


def test_a_path_is_a_delta_table() -> None:
    found = describe_relation(Canned(("id", "int"), ("", "")), TableName.of("delta", "/x"))  # type: ignore[arg-type]
    assert found is not None and found.is_delta


def test_a_view_has_a_text_and_no_versions() -> None:
    shop = small_shop()
    shop.spark.create_view("shop.v", "select id from shop.orders", ["number"])
    found = describe_relation(FakeWarehouse(shop.spark), TableName("shop", "v"))
    assert found is not None and found.view is not None and not found.is_delta
    assert found.view.text == "select id from shop.orders"
    assert (found.view.schema, found.view.output_columns) == ("shop", ("id",))
    assert found.columns == (Column("number", "bigint"),)


def test_what_is_missing_is_none_and_other_errors_are_errors() -> None:
    warehouse = FakeWarehouse(small_shop().spark)
    assert describe_relation(warehouse, TableName("shop", "nothing")) is None
    warehouse.fail_at = warehouse.count + 1
    with pytest.raises(WarehouseError, match="failed"):
        describe_relation(warehouse, ORDERS)


@pytest.mark.parametrize(
    ("properties", "has"),
    [
        ("[spark_dynamic.model=m]", True),
        ("[a=b,spark_dynamic.model=m,c=d]", True),
        ("[a=b, spark_dynamic.model=m]", True),
        ("[spark_dynamic.model=m2]", False),
        ("[x.spark_dynamic.model=m]", False),
        ("[]", False),
        ("", False),
    ],
)
def test_a_property_is_known_by_name_and_value(properties: str, has: bool) -> None:
    found = Relation(ORDERS, (), "delta", "", properties)
    assert found.has_property("spark_dynamic.model", "m") is has


def test_columns_of_a_query_come_from_spark() -> None:
    warehouse = FakeWarehouse(small_shop().spark)
    sql = "select id, name as n from shop.customers -- all"
    assert describe_query(warehouse, sql) == (Column("id", "bigint"), Column("n", "string"))


def test_the_catalog_asks_once_until_told_to_forget() -> None:
    shop = small_shop()
    catalog, warehouse = Catalog(), FakeWarehouse(shop.spark)

    def ask() -> None:
        catalog.relation(warehouse, ORDERS)
        catalog.relation(warehouse, TableName("shop", "nothing"))
        catalog.history(warehouse, ORDERS)
        assert catalog.tables(warehouse, ORDERS) == {"orders", "customers"}

    ask()
    asked = len(shop.spark.log)
    ask()
    assert len(shop.spark.log) == asked == 4
    catalog.forget(ORDERS)
    ask()
    assert len(shop.spark.log) == asked + 3


def test_a_schema_that_is_missing_is_empty() -> None:
    class Missing:
        def rows(self, sql: str) -> list[dict[str, Any]]:
            raise WarehouseError("SCHEMA_NOT_FOUND", "no schema")

    assert Catalog().tables(Missing(), ORDERS) == set()  # type: ignore[arg-type]


@pytest.mark.parametrize("since", [-1, 0, 3, 24, 25])
def test_a_history_reaches_back_as_far_as_asked(since: int) -> None:
    shop = small_shop()
    for _ in range(25):
        shop.spark.write("shop.orders").optimize()
    commits = Catalog().history(FakeWarehouse(shop.spark), ORDERS, since)
    assert commits[0].version == 25
    assert commits[-1].version <= (since if since >= 0 else 16)


def test_a_cleaned_history_is_as_long_as_it_is() -> None:
    shop = small_shop()
    for _ in range(5):
        shop.spark.write("shop.orders").optimize()
    shop.spark.table("shop.orders").forget_before(3)
    commits = Catalog().history(FakeWarehouse(shop.spark), ORDERS, 0)
    assert [commit.version for commit in commits] == [5, 4, 3]


@pytest.mark.parametrize("landing", [1, 2, 3, 7])
def test_a_history_reaches_back_while_a_writer_goes_on(landing: int) -> None:
    # Between two looks so many commits land that the second one ends where the first did.
    shop = small_shop()
    for _ in range(12):
        shop.spark.write("shop.orders").optimize()

    class Busy(FakeWarehouse):
        def history(self, table: TableName, limit: int) -> list[Commit]:
            found = super().history(table, limit)
            if self.count <= 2:
                for _ in range(landing):
                    shop.spark.write("shop.orders").optimize()
            return found

    commits = Catalog().history(Busy(shop.spark), ORDERS, 1)
    assert commits[-1].version <= 1


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a.b", ("a", "b", "")),
        ("A.`B c`", ("a", "b c", "")),
        ("spark_catalog.a.b", ("a", "b", "")),
        ("cat.a.`b.c`", ("a", "b.c", "cat")),
        ("a.`b``c`", ("a", "b`c", "")),
        ("delta.`/Data/T`", ("delta", "/Data/T", "")),
        ("parquet.`/Data/v1.2/T`", ("parquet", "/Data/v1.2/T", "")),
        ("CSV.`People.csv`", ("csv", "People.csv", "")),
        ("`my-schema`.T", ("my-schema", "t", "")),
        ("`a.b`.`c``d`", ("a.b", "c`d", "")),
    ],
)
def test_names_are_read_and_written(text: str, parts: tuple[str, str, str]) -> None:
    name = TableName.parse(text)
    assert (name.schema, name.name, name.catalog) == parts
    assert TableName.parse(name.sql) == name
    assert TableName.parse(str(name)) == name
    assert name.is_path is ("/" in text or ".csv" in text)
    assert name.is_other_path is (name.is_path and name.schema != "delta")


def state_row(name: str, at: int, number: int | None, *pins: Any) -> StateRow:
    row = row_of(recorded_at(name, 3, at, *pins), TableName("shop", name))
    return replace(row, refresh_number=number)


def test_a_row_of_the_state_table_is_rebuilt_from_a_commit() -> None:
    recorded = recorded_at("totals", 3, 5, pin_of("orders", 2))
    counted = replace(recorded, commit=replace(recorded.commit, metrics={"numOutputRows": "7"}))
    row = row_of(counted, TableName("shop", "totals"))
    assert (row.relation, row.model_id, row.state) == (
        "shop.totals",
        "model.shop.totals",
        "SUCCEEDED",
    )
    assert (row.data_timestamp, row.version, row.rows_inserted) == (minute(5), 3, 7)
    assert row.guard_verdict == "PASSED"


def test_rows_are_appended_in_one_statement() -> None:
    rows = [state_row("a'b", 1, 1, pin_of("orders", 2)), state_row("c", 2, None)]
    sql = append_rows(TableName("shop", "log"), rows)
    assert sql.startswith("INSERT INTO `shop`.`log` (relation, model_id, incarnation,")
    assert "${" not in sql
    # One literal holds all rows, as JSON.
    text = re.search(r"from_json\('(.*)',\n", sql)
    assert text
    first, second = json.loads(text[1].replace("\\'", "'").replace("\\\\", "\\"))
    assert first["relation"] == "shop.a'b"
    assert first["frontier"] == [{"source": "shop.orders", "log_id": "/orders", "version": 2}]
    assert second["refresh_number"] is None and first["data_timestamp"] == stamp(minute(1))
    columns = sql.split("(")[1].split(")")[0].split(", ")
    created = create_state_table(TableName("shop", "log"))
    assert [line.split()[0] for line in created.splitlines()[1:-1]] == columns


def test_the_summary_is_read_as_it_was_written() -> None:
    rows = [
        state_row("a", 1, 4, pin_of("orders", 2), pin_of("customers", 9)),
        state_row("a", 3, 3, pin_of("orders", 5)),
        state_row("b$", 2, None),
    ]
    known = KnownState(minute(0), {("shop.orders", "/orders"): 1, ("x", "${l}"): 7}, {"z": 1})
    written = state_metadata(known, rows)
    assert "${" not in written
    commit = Commit(4, minute(9), "WRITE", user_metadata=written)
    found = read_state([commit])
    merged = merge(KnownState(exists=True), merge(known, summarise(rows)))
    assert replace(found, tables={}) == replace(merged, version=4)
    assert found.tables.keys() == {"shop.a", "shop.b$"}
    assert found.newest_timestamp == minute(3)
    assert found.refresh_numbers == {"shop.a": 4, "z": 1}
    assert found.pins[("shop.orders", "/orders")] == 5 and found.pins[("x", "${l}")] == 7
    # These versions are younger than their cuts.
    assert found.later == {
        minute(1): {("shop.orders", "/orders"): 2, ("shop.customers", "/customers"): 9},
        minute(3): {("shop.orders", "/orders"): 5},
    }


def test_the_first_of_two_pins_for_one_moment_is_kept() -> None:
    made = [replace(pin_of("orders", version), committed_at=minute(9)) for version in (5, 4, 6)]
    found = [summarise([state_row("a", 1, 1, pin)]) for pin in made]
    merged = merge(merge(found[0], found[1]), found[2])
    assert merged.later == {minute(1): {("shop.orders", "/orders"): 4}}


def test_runs_at_the_same_time_do_not_lose_each_others_summary() -> None:
    commits = [
        Commit(version, minute(9), "WRITE", user_metadata=state_metadata(KnownState(), [row]))
        for version, row in enumerate(
            [state_row("a", 1, 1, pin_of("orders", 2)), state_row("b", 2, 1, pin_of("orders", 1))]
        )
    ]
    for seen in (commits, commits[::-1]):
        found = read_state(seen)
        assert found.refresh_numbers == {"shop.a": 1, "shop.b": 1}
        assert found.pins == {("shop.orders", "/orders"): 2}
        assert found.newest_timestamp == minute(2)


def test_older_summaries_are_read_only_where_runs_overlapped() -> None:
    def commit(version: int, name: str, read: int) -> Commit:
        known = KnownState(version=read)
        written = state_metadata(known, [state_row(name, version, 1)])
        return Commit(version, minute(9), "WRITE", user_metadata=written)

    # The newest run began when the third commit was there; the fourth came meanwhile.
    commits = [
        Commit(6, minute(9), "OPTIMIZE"),
        commit(5, "a", read=3),
        commit(4, "b", read=1),
        commit(3, "c", read=1),
        commit(2, "d", read=1),
    ]
    assert read_state(commits).tables.keys() == {"shop.a", "shop.b"}
    assert read_state(commits[2:]).tables.keys() == {"shop.b", "shop.c", "shop.d"}


def test_a_state_table_without_a_summary_says_nothing() -> None:
    commits = [Commit(0, minute(0), "CREATE TABLE"), Commit(1, minute(1), "OPTIMIZE")]
    assert read_state(commits) == KnownState(exists=True, version=1)


def test_metadata_that_only_mentions_a_summary_is_none() -> None:
    note = json.dumps({"note": "spark_dynamic_state"})
    found = read_state([Commit(0, minute(0), "WRITE", user_metadata=note)])
    assert found == KnownState(exists=True, version=0)


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (None, "NULL"),
        (True, "true"),
        (7, "7"),
        (0.1, "double('0.1')"),
        ("a'b\\c", "'a\\'b\\\\c'"),
        ({"k": 1}, "map('k', 1)"),
        ([], "array()"),
        (minute(0), "timestamp'2026-01-01 00:00:00+00:00'"),
    ],
)
def test_values_are_written_as_sql(value: Any, sql: str) -> None:
    assert literal(value) == sql
