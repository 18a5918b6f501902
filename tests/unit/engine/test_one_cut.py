"""All that a table reads belongs to one cut, also what cannot be pinned and what others pinned."""

from datetime import timedelta

import pytest
from fake_shop import Shop, said, small_shop

from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"


def read_differently(sql: str, text: str) -> str:
    """Answer as a Spark that reads the pinned text of `plain` in another way."""
    is_pinned = "VERSION AS OF" in sql and "12345" in sql
    return text.replace("Project", "Project Distinct") if is_pinned else text


def with_plain(text: str) -> Shop:
    shop = small_shop(
        plain=text,
        both="select id from shop.plain union all select id from shop.orders",
    )
    shop.spark.explain = read_differently
    shop.spark.create_parquet("shop.files", {"id": "bigint"}, (1,))
    return shop


READ_DIFFERENTLY = "select id from shop.orders where id < 12345"
NOT_DELTA = "select id from shop.orders union all select id from shop.files"


@pytest.mark.parametrize("text", [READ_DIFFERENTLY, NOT_DELTA])
def test_a_table_that_cannot_be_pinned_is_right_at_its_own_moment_only(text: str) -> None:
    shop = with_plain(text)
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    assert shop.run("both") == {"both": "WAITING/shop.plain"}
    shop.run()
    assert shop.is_right("both")
    assert shop.record("both").data_timestamp == shop.record("plain").data_timestamp


def test_a_reader_of_a_table_that_cannot_be_pinned_has_nothing_to_do_if_nothing_changed() -> None:
    shop = with_plain(READ_DIFFERENTLY)
    shop.run()
    assert shop.run() == {"plain": "FULL/PLANS_DIFFER", "both": "NO_DATA"}
    # What reads `both` finds it right at the new moment.
    assert shop.record("both").clock == shop.record("plain").data_timestamp


def test_a_table_without_versions_is_not_said_to_show_an_older_moment() -> None:
    shop = small_shop(
        totals=TOTALS, mixed="select total as id from shop.totals union all select id from shop.f"
    )
    shop.spark.create_parquet("shop.f", {"id": "bigint"}, (1,))
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    shop.run("totals")
    shop.spark.write("shop.orders").append((5, 20, 90))
    assert shop.run("mixed") == {"mixed": "WAITING/shop.totals"}


def test_another_invocation_reuses_the_pins_that_were_made_for_a_moment() -> None:
    """A node wrote the orders after the moment of the cut; times alone would name older ones."""
    shop = small_shop(
        people="select name from shop.customers",
        copy="select id from shop.orders",
        named="select p.name, o.id from shop.people p join shop.orders o on o.id > 0",
        both="select n.id from shop.named n join shop.copy c on c.id = n.id",
    )
    cycle = shop.open_cycle()
    shop.spark.write("shop.orders").append((4, 20, 90))
    cycle.note_written(TableName("shop", "orders"), shop.spark.clock)
    for name in ("people", "copy"):
        shop.refresh(name, cycle)
    for table, row in (("orders", (5, 20, 90)), ("customers", (30, "c"))):
        shop.spark.write(f"shop.{table}").append(row)
    assert shop.run("named", "both") == {
        "named": "FULL/INITIAL_BUILD",
        "both": "FULL/INITIAL_BUILD",
    }
    moments = {shop.record(name).data_timestamp for name in shop.models}
    assert moments == {cycle.data_timestamp}
    assert {id for (id,) in shop.spark.read("select * from shop.both")} == {1, 2, 3, 4}


def test_a_moment_that_is_still_to_come_is_read_as_of_now() -> None:
    shop = small_shop(
        totals=TOTALS,
        pairs="select t.total, c.name from shop.totals t join shop.customers c "
        "on c.id = t.customer",
    )

    def write(number: int) -> None:
        """Commit a number to the orders, then to the customers."""
        shop.spark.write("shop.orders").append((100 + number, 10, 1))
        shop.spark.tick(5)
        shop.spark.write("shop.customers").append((10, f"n{number}"))
        shop.spark.tick(5)

    # A run from a machine whose clock is minutes ahead; data timestamps do not go back for that.
    shop.spark.tick(60)
    ahead = Cycle("invocation", shop.spark.clock + timedelta(minutes=4), shop.known())
    for name in shop.models:
        shop.refresh(name, ahead)
    write(1)
    cycle = shop.open_cycle()
    assert cycle.data_timestamp > shop.spark.clock
    shop.refresh("totals", cycle)
    # Within one cycle, whatever is committed after it has begun is not seen by anybody.
    write(2)
    shop.refresh("pairs", cycle)
    versions = {pin.table.name: pin.version for pin in shop.record("pairs").frontier}
    assert versions == {"orders": 1, "customers": 1}
    # Neither is it by another one that reads at the same moment, because `totals` is behind.
    write(3)
    shop.run("pairs", full_refresh=True)
    assert shop.record("pairs").data_timestamp == shop.record("totals").data_timestamp
    versions = {pin.table.name: pin.version for pin in shop.record("pairs").frontier}
    assert versions == {"orders": 1, "customers": 1}


PAIRS = "select t.total, c.name from shop.totals t join shop.customers c on c.id = t.customer"


def test_a_moment_after_the_cycle_began_is_no_cut_of_it() -> None:
    """Another run has refreshed the upstream since; this one does not know what else there was."""
    shop = small_shop(totals=TOTALS, pairs=PAIRS)
    shop.run()
    cycle = shop.open_cycle()
    shop.spark.write("shop.orders").append((4, 20, 90))
    shop.spark.write("shop.customers").append((20, "c"))
    shop.run("totals")
    assert said(shop.refresh("pairs", cycle)) == "WAITING/shop.totals"
    shop.run("pairs")
    assert shop.is_right("pairs")


def test_a_replaced_source_is_not_read_at_a_moment_before_it() -> None:
    shop = small_shop(totals=TOTALS, pairs=PAIRS)
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    shop.spark.drop("shop.customers")
    shop.spark.create("shop.customers", {"id": "bigint", "name": "string"}, (10, "x"))
    assert shop.run("pairs") == {"pairs": "WAITING/shop.totals"}
    assert shop.run()["pairs"] == "REINITIALIZE/SOURCE_REPLACED"
    assert shop.is_right("pairs")
