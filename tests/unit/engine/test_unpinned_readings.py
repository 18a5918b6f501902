"""A text that cannot be pinned is read later than its moment: who reads it sees what it saw."""

from fake_shop import Shop, said, small_shop
from fake_warehouse import FakeWarehouse

from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.run import run_plan

PLAIN = "select id from shop.orders where id < 12345"
BOTH = "select id from shop.plain union all select id from shop.orders"


def read_differently(sql: str, text: str) -> str:
    """Answer as a Spark that reads the pinned text of `plain` in another way."""
    is_pinned = "VERSION AS OF" in sql and "12345" in sql
    return text.replace("Project", "Project Distinct") if is_pinned else text


def shop_of(**models: str) -> Shop:
    shop = small_shop(plain=PLAIN, **models)
    shop.spark.explain = read_differently
    return shop


def write(shop: Shop, number: int) -> None:
    shop.spark.write("shop.orders").append((number, 20, 90))


def run_hooked(shop: Shop, cycle: Cycle, number: int) -> None:
    """Refresh `plain`, with a pre-hook that writes to its source after it was planned."""
    session = FakeWarehouse(shop.spark)
    plan = plan_refresh(shop.request("plain"), cycle, session)
    write(shop, number)
    assert run_plan(plan, cycle, session).plan.decision.reason.code in (
        "INITIAL_BUILD",
        "PLANS_DIFFER",
    )


def write_while_read(shop: Shop, number: int) -> None:
    """Let a commit land after the last look at the sources, and before Spark reads them."""
    shop.spark.meanwhile.append(
        (r"(CREATE TABLE|INSERT OVERWRITE TABLE) `shop`.`plain__dyn`", lambda: write(shop, number))
    )


def ids(shop: Shop, name: str) -> list[int]:
    return [id for (id, *_) in shop.spark.read(f"select * from shop.{name}")]


def test_a_reader_sees_the_sources_as_the_table_saw_them() -> None:
    shop = shop_of(both=BOTH)
    cycle = shop.open_cycle()
    run_hooked(shop, cycle, 4)
    shop.refresh("both", cycle)
    assert sorted(ids(shop, "both")) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert shop.record("both").data_timestamp == cycle.data_timestamp


def test_another_invocation_reads_them_so_at_that_moment_too() -> None:
    shop = shop_of(both=BOTH)
    run_hooked(shop, shop.open_cycle(), 4)
    write(shop, 5)
    shop.run("both")
    assert sorted(ids(shop, "both")) == [1, 1, 2, 2, 3, 3, 4, 4]


def test_what_was_pinned_before_is_not_mixed_with_it() -> None:
    shop = shop_of(
        copy="select id from shop.orders where id < 99",
        both="select id from shop.plain union all select id from shop.copy",
    )
    cycle = shop.open_cycle()
    shop.refresh("copy", cycle)
    run_hooked(shop, cycle, 4)
    assert said(shop.refresh("both", cycle)) == "WAITING/shop.copy"
    shop.run()
    assert sorted(ids(shop, "both")) == [1, 1, 2, 2, 3, 3, 4, 4]


def test_a_commit_that_lands_while_it_is_read_makes_readers_of_its_sources_wait() -> None:
    shop = shop_of(both=BOTH)
    write_while_read(shop, 4)
    assert shop.run()["both"] == "WAITING/shop.plain"
    assert set(shop.record("plain").unknown_sources) == {"shop.orders"}
    assert shop.run()["both"] == "FULL/INITIAL_BUILD"
    assert sorted(ids(shop, "both")) == [1, 1, 2, 2, 3, 3, 4, 4]


def test_who_reads_nothing_else_of_its_sources_does_not_wait() -> None:
    shop = shop_of(
        named="select p.id, c.name from shop.plain p join shop.customers c on c.id = 10",
        both="select id from shop.named union all select id from shop.orders",
        late="select id from shop.named",
    )
    write_while_read(shop, 4)
    found = shop.run()
    assert (found["named"], found["late"]) == ("FULL/INITIAL_BUILD", "FULL/INITIAL_BUILD")
    # But what it holds is not known to be what the orders say at any moment.
    assert found["both"] == "WAITING/shop.named"
    assert shop.record("late").unknown_sources == shop.record("plain").unknown_sources
    shop.run()
    assert sorted(ids(shop, "both")) == [1, 1, 2, 2, 3, 3, 4, 4]


def test_a_table_that_mixes_two_instants_itself_claims_none() -> None:
    """The text as it is reads the newest version of everything, right together or not."""
    shop = small_shop(
        copy="select id from shop.orders",
        plain="select o.id from shop.orders o, shop.copy c where o.id < 12345 and c.id > 0",
        both=BOTH,
    )
    shop.spark.explain = read_differently
    shop.run()
    write(shop, 4)
    found = shop.run("plain", "both")
    assert found["both"] == "WAITING/shop.plain"
    shop.run()
    assert len(ids(shop, "both")) == 4 * 4 + 4
