"""A table that says it is up to date equals its query: the ways in which this could fail."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from fake_shop import Shop, small_shop

from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.sql.references import Unreadable, find_references

ORDERS = {"id": "bigint", "customer": "bigint", "amount": "bigint"}
TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
BIG = "select customer, total from shop.totals where total > 10"


def is_right_after_a_run(shop: Shop, name: str) -> bool:
    shop.run()
    return shop.is_right(name)


def with_commits(**models: str) -> Shop:
    """Return a built shop whose orders have a few versions."""
    shop = small_shop(**models)
    for number in range(4, 9):
        shop.spark.write("shop.orders").append((number, 10, 1))
    shop.run()
    return shop


def create_orders_again(shop: Shop) -> None:
    shop.spark.drop("shop.orders")
    shop.spark.create("shop.orders", ORDERS, (1, 10, 1000))


def test_a_source_that_was_dropped_and_created_again_is_read_again() -> None:
    shop = with_commits(totals=TOTALS)
    create_orders_again(shop)
    assert is_right_after_a_run(shop, "totals")
    assert shop.record("totals").reason_code == "SOURCE_REPLACED"


def test_readers_of_a_table_whose_source_was_created_again_are_refreshed_too() -> None:
    shop = with_commits(totals=TOTALS, big=BIG)
    create_orders_again(shop)
    assert is_right_after_a_run(shop, "big")


def test_an_upstream_that_was_dropped_and_built_again_is_read_again() -> None:
    shop = small_shop(totals=TOTALS, big=BIG)
    shop.run()
    for name in ("shop.totals", "shop.totals__dyn"):
        shop.spark.drop(name)
    shop.models["totals"] = TOTALS.replace("sum(amount)", "100 + sum(amount)")
    assert is_right_after_a_run(shop, "big")


def test_a_view_that_swaps_its_columns_is_another_definition() -> None:
    shop = small_shop(names="select a from shop.v")
    text = "select id, customer from shop.orders"
    shop.spark.create_view("shop.v", text, ["a", "b"])
    shop.run()
    shop.spark.create_view("shop.v", text, ["b", "a"])
    assert is_right_after_a_run(shop, "names")


def drop_and_add(shop: Shop) -> None:
    shop.spark.write("shop.orders").drop_column("amount")
    shop.spark.write("shop.orders").add_column("amount", "bigint")


def swap(shop: Shop) -> None:
    for old, new in (("amount", "x"), ("id", "amount"), ("x", "id")):
        shop.spark.write("shop.orders").rename_column(old, new)


@pytest.mark.parametrize("change", [drop_and_add, swap])
def test_columns_that_were_exchanged_are_a_change(change: Callable[[Shop], None]) -> None:
    shop = small_shop(totals=TOTALS)
    shop.run()
    change(shop)
    assert is_right_after_a_run(shop, "totals")


def test_columns_of_the_storage_that_were_exchanged_are_a_foreign_write() -> None:
    shop = small_shop(totals=TOTALS)
    shop.run()
    shop.spark.write("shop.totals__dyn").drop_column("total")
    shop.spark.write("shop.totals__dyn").add_column("total", "bigint")
    assert is_right_after_a_run(shop, "totals")


def test_a_new_column_that_captures_a_name_is_a_change() -> None:
    inner = "select 1 from shop.customers where customers.id = customer"
    shop = small_shop(known=f"select o.id from shop.orders o where exists ({inner})")
    shop.run()
    assert shop.is_right("known")
    # `customer` in the inner query was the outer table's column until now.
    shop.spark.write("shop.customers").add_column("customer", "bigint")
    assert is_right_after_a_run(shop, "known")


def test_a_view_with_a_star_keeps_its_columns_when_the_table_gets_more() -> None:
    shop = small_shop(counted="select count(*) as n from (select distinct * from shop.v) as d")
    shop.spark.create("shop.t", {"a": "bigint"}, (1,), (1,))
    shop.spark.create_view("shop.v", "select * from shop.t")
    shop.run()
    shop.spark.write("shop.t").add_column("b", "bigint")
    shop.spark.write("shop.t").append((1, 2), (1, 3))
    assert is_right_after_a_run(shop, "counted")


@pytest.mark.parametrize(
    "sql",
    [
        "select * from table_changes('shop.orders', 0)",
        "select * from shop.my_table_function(1)",
        "select * from identifier('t') union all select * from t",
    ],
)
def test_a_function_that_may_read_tables_makes_the_text_unreadable(sql: str) -> None:
    with pytest.raises(Unreadable):
        find_references(sql, "shop")


@pytest.mark.parametrize(
    "sql",
    [
        "select id from range(10)",
        "select col from explode(array(1, 2))",
        "select e.* from t lateral view explode(a) e as x",
        "select * from t, lateral explode(t.a)",
        "select * from values (1), (2) v(a)",
    ],
)
def test_functions_that_read_no_table_are_readable(sql: str) -> None:
    assert {str(r.table) for r in find_references(sql, "shop").tables} <= {"shop.t"}


@pytest.mark.parametrize(
    "moment",
    [
        "date'today'",
        "timestamp'now'",
        "cast('yesterday' as date)",
        "cast(' Tomorrow ' as timestamp)",
        # Spark makes a date of it wherever one is expected.
        "to_date('today')",
        "'today'",
    ],
)
def test_a_moment_in_a_literal_is_a_clock(moment: str) -> None:
    shop = small_shop(late=f"select id from shop.orders where '2026-01-01' < {moment}")
    shop.spark.explain = lambda sql, text: text.replace("CAST", "DATE")
    shop.run()
    assert shop.run() == {"late": "FULL/CLOCK_FUNCTION"}


def test_time_travel_to_a_moving_moment_makes_the_text_unreadable() -> None:
    sql = "select * from t union all select * from t timestamp as of now() - interval 1 day"
    with pytest.raises(Unreadable):
        find_references(sql, "shop")


def test_spark_judges_queries_with_a_clock_too() -> None:
    shop = small_shop(copy="select id, current_timestamp() as t from shop.orders")

    def read_differently(sql: str, text: str) -> str:
        return text.replace("Project", "Project Distinct") if "VERSION AS OF" in sql else text

    shop.spark.explain = read_differently
    shop.run()
    assert shop.record("copy").verdict.code == "PLANS_DIFFER"


def test_an_upstream_with_a_clock_is_not_valid_at_another_time() -> None:
    shop = small_shop(
        today="select id, current_date as d from shop.orders", copy="select d from shop.today"
    )
    shop.run()
    assert shop.run("copy") == {"copy": "WAITING/shop.today"}


def test_a_query_about_files_is_volatile() -> None:
    shop = small_shop(files="select id as file_name from shop.orders")
    shop.spark.explain = lambda sql, text: text.replace("Project [", "Project [_metadata#7.a, ")
    shop.run()
    assert shop.run() == {"files": "FULL/VOLATILE_FUNCTION"}


def test_an_older_cut_takes_no_pin_of_a_later_one() -> None:
    shop = small_shop(
        totals=TOTALS,
        named="select c.name from shop.totals t join shop.customers c on c.id = t.customer",
        people="select name from shop.customers",
    )
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    shop.run("totals")
    moment = shop.record("totals").data_timestamp
    shop.spark.write("shop.orders").append((5, 20, 90))
    shop.spark.write("shop.customers").append((10, "new"))
    shop.run("people")
    shop.run("named")
    record = shop.record("named")
    assert record.data_timestamp == moment
    pin = record.pin_of(TableName("shop", "customers"))
    assert pin is not None and pin.version == 0


def test_an_older_cut_is_one_moment() -> None:
    shop = small_shop(
        totals=TOTALS,
        people="select name from shop.customers",
        both="select p.name, t.total from shop.people p join shop.totals t on t.total > 0",
    )
    shop.run()
    before = shop.record("both").data_timestamp
    shop.spark.write("shop.customers").append((30, "c"))
    shop.spark.write("shop.orders").append((4, 20, 90))
    shop.run("totals")
    # `people` is right for the first cut only, `totals` for the second only.
    shop.spark.write("shop.orders").append((5, 20, 90))
    assert shop.run("both") == {"both": "WAITING/shop.people, shop.totals"}
    assert shop.record("both").data_timestamp == before


@pytest.mark.parametrize("is_requested", [True, False])
def test_a_rebuild_does_not_wait_for_upstreams_that_were_not_selected(is_requested: bool) -> None:
    shop = small_shop(totals=TOTALS, big=BIG)
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    if not is_requested:
        shop.models["big"] = BIG.replace("10", "11")
    found = shop.run("big", full_refresh=is_requested)["big"]
    assert found == ("FULL/REQUESTED" if is_requested else "REINITIALIZE/DEFINITION_CHANGED")


def test_a_table_that_is_younger_than_the_cut_is_not_read_at_its_first_version() -> None:
    shop = small_shop(totals=TOTALS)
    now = shop.spark.clock
    shop.spark.create("shop.orders", ORDERS)
    shop.spark.write("shop.orders").append((1, 10, 5))
    cycle = Cycle("i", now, KnownState())
    cycle.note_written(TableName("shop", "orders"), now)
    shop.refresh("totals", cycle)
    assert shop.is_right("totals")


def test_a_table_written_in_this_invocation_is_read_though_somebody_looked_before() -> None:
    shop = small_shop(totals=TOTALS, big=BIG, copy="select id from shop.orders")
    shop.run()
    cycle = shop.open_cycle()
    shop.refresh("big", cycle)
    shop.spark.write("shop.orders").append((4, 20, 90))
    cycle.note_written(TableName("shop", "orders"), shop.spark.clock + timedelta(seconds=1))
    shop.refresh("copy", cycle)
    assert shop.is_right("copy")


def test_a_table_that_is_not_ours_is_never_dropped() -> None:
    shop = small_shop(totals=TOTALS)
    shop.run()
    for number in (1, 2):
        shop.models["totals"] = TOTALS.replace("as total", f"as total_{number}")
        shop.run()
    shop.spark.drop("shop.totals__dyn_2")
    shop.spark.create("shop.totals__dyn_2", {"precious": "bigint"}, (1,))
    shop.models["totals"] = TOTALS
    shop.run()
    assert shop.spark.exists("shop.totals__dyn_2")


def test_an_old_generation_with_much_maintenance_stays_for_its_retention() -> None:
    shop = small_shop(totals=TOTALS)
    shop.run()
    shop.models["totals"] = TOTALS.replace("as total", "as other")
    shop.run()
    for _ in range(12):
        shop.spark.write("shop.totals__dyn").optimize()
    shop.models["totals"] = TOTALS
    shop.run()
    assert shop.spark.exists("shop.totals__dyn")


def test_other_columns_do_not_rebuild_what_must_not_be_rebuilt() -> None:
    shop = small_shop(copy="select * from shop.orders")
    shop.configs["copy"] = {"refresh_mode": "full"}
    shop.run()
    shop.spark.write("shop.orders").add_column("note", "string")
    with pytest.raises(Exception, match="COLUMNS_CHANGED"):
        shop.run(full_refresh_forbidden=True)


@pytest.mark.parametrize("is_view", [True, False])
def test_a_name_that_is_taken_by_something_else_is_said_to_be(is_view: bool) -> None:
    shop = small_shop(totals=TOTALS)
    if is_view:
        shop.spark.create_view("shop.totals__dyn", "select 1 as a")
    else:
        shop.spark.create_parquet("shop.totals__dyn", {"a": "bigint"})
    with pytest.raises(Exception, match="NAME_TAKEN"):
        shop.run()


def test_a_rebuild_at_its_own_cut_reads_what_that_cut_read() -> None:
    """A node of that invocation wrote the table after the cut's moment, and it was read."""
    shop = small_shop(
        totals=TOTALS,
        named="select c.name, t.total from shop.totals t join shop.customers c on c.id > 0",
    )
    cycle = shop.open_cycle()
    shop.spark.write("shop.customers").append((30, "c"))
    cycle.note_written(TableName("shop", "customers"), shop.spark.clock)
    for name in shop.models:
        shop.refresh(name, cycle)
    shop.spark.write("shop.orders").append((4, 20, 90))
    shop.models["named"] = shop.models["named"].replace("> 0", "> 1")
    assert shop.run("named") == {"named": "REINITIALIZE/DEFINITION_CHANGED"}
    assert len(shop.spark.read("select * from shop.named")) == 6


def test_a_table_younger_than_the_older_cut_makes_the_model_wait() -> None:
    shop = small_shop(totals=TOTALS)
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    shop.spark.create("shop.young", {"id": "bigint"}, (1,))
    shop.models["both"] = "select t.total from shop.totals t join shop.young y on y.id > 0"
    assert shop.run("both") == {"both": "WAITING/shop.totals"}
