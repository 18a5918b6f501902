"""Two runs at once, and writers who know nothing of refreshes."""

from collections.abc import Callable

import pytest
from fake_delta import Writer
from fake_shop import Shop, said, small_shop
from fake_warehouse import FakeWarehouse

from spark_dynamic.apply.storage import storage_facts
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.frontier.history import records
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.run import Outcome, run_plan

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
BIG = "select customer, total from shop.totals where total > 10"
OVERWRITE = "INSERT OVERWRITE TABLE `shop`.`totals__dyn`"


def built() -> Shop:
    shop = small_shop(totals=TOTALS)
    shop.run()
    return shop


def changed() -> Shop:
    shop = built()
    shop.spark.write("shop.orders").append((4, 20, 90))
    return shop


def another_run(shop: Shop) -> Callable[[], None]:
    """Return what another process does that has its own cycle."""

    def run() -> None:
        session = shop.session
        shop.run()
        shop.session = session

    return run


def conflict(condition: str) -> Callable[[], None]:
    def raise_it() -> None:
        raise WarehouseError(condition, "somebody was faster")

    return raise_it


def test_a_refresh_that_somebody_else_has_just_done_is_not_repeated() -> None:
    """Delta skips the second write of one number and says nothing; only a look shows it."""
    shop = changed()
    shop.spark.meanwhile.append((OVERWRITE, another_run(shop)))
    outcome = shop.refresh("totals")
    assert said(outcome) == "NO_DATA"
    assert outcome.recorded is None and not outcome.rows_inserted
    assert len(records(shop.storage("totals").commits)) == 2
    assert shop.is_right("totals")


def test_a_build_that_finds_the_files_of_another_one_adopts_its_table() -> None:
    shop = small_shop(totals=TOTALS)

    def just_before() -> None:
        another_run(shop)()
        conflict("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION")()

    shop.spark.meanwhile.append(("CREATE TABLE `shop`.`totals__dyn`", just_before))
    assert said(shop.refresh("totals")) == "NO_DATA"
    assert not shop.spark.exists("shop.totals__dyn_2")
    assert shop.is_right("totals")


def test_a_view_that_another_build_has_just_made_is_taken() -> None:
    shop = small_shop(totals=TOTALS)
    shop.spark.meanwhile.append(("CREATE VIEW `shop`.`totals`", another_run(shop)))
    assert said(shop.refresh("totals")) == "FULL/INITIAL_BUILD"
    assert shop.is_right("totals")
    assert shop.run() == {"totals": "NO_DATA"}


def test_a_storage_that_another_refresh_describes_at_the_same_time_is_described_again() -> None:
    shop = changed()
    shop.configs["totals"] = {"tblproperties": {"team": "x"}}
    described = "ALTER TABLE `shop`.`totals__dyn` SET TBLPROPERTIES"
    shop.spark.meanwhile.append((described, conflict("DELTA_METADATA_CHANGED")))
    shop.run()
    assert shop.storage("totals").properties["team"] == "x"
    assert shop.is_right("totals")


def test_a_refresh_at_an_older_cut_is_covered() -> None:
    shop = changed()

    def newer() -> None:
        shop.spark.write("shop.orders").append((5, 20, 900))
        another_run(shop)()

    shop.spark.meanwhile.append((OVERWRITE, newer))
    assert said(shop.refresh("totals")) == "COVERED"
    assert shop.is_right("totals")
    assert len(records(shop.storage("totals").commits)) == 2


def test_a_reader_whose_upstream_a_later_run_has_taken_further_is_covered() -> None:
    shop = small_shop(totals=TOTALS, big=BIG)
    shop.run()
    shop.spark.write("shop.orders").append((4, 20, 90))
    overtaken = shop.open_cycle()
    shop.spark.write("shop.orders").append((5, 20, 900))
    shop.run()
    written = len(shop.storage("big").commits)
    for name in ("totals", "big"):
        assert said(shop.refresh(name, overtaken)) == "COVERED"
    assert len(shop.storage("big").commits) == written
    assert shop.is_right("big")
    # It waits only for what the later run has not brought either.
    shop.spark.write("shop.orders").append((6, 20, 9000))
    assert shop.run("big") == {"big": "WAITING/shop.totals"}


@pytest.mark.parametrize(
    "condition",
    ["DELTA_CONCURRENT_APPEND.WITHOUT_HINT", "DELTA_CONCURRENT_TRANSACTION",
     "DELTA_CONCURRENT_DELETE_READ", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED"],
)  # fmt: skip
def test_a_conflict_is_planned_again(condition: str) -> None:
    shop = changed()
    shop.spark.meanwhile.append((OVERWRITE, conflict(condition)))
    outcome = shop.refresh("totals")
    assert said(outcome) == "FULL/LIMIT"
    assert shop.is_right("totals")
    assert shop.session.settings == {}


def test_a_writer_that_is_always_faster_ends_in_an_error_and_changes_nothing() -> None:
    shop = changed()
    for _ in range(5):
        shop.spark.meanwhile.append((OVERWRITE, conflict("DELTA_CONCURRENT_APPEND")))
    version = shop.storage("totals").version
    with pytest.raises(EngineError, match=r"CONFLICT: .* shop\.totals 5 times"):
        shop.refresh("totals")
    assert shop.storage("totals").version == version
    assert shop.run() == {"totals": "FULL/LIMIT"}


def test_another_error_is_not_tried_again() -> None:
    shop = changed()
    shop.spark.meanwhile.append((OVERWRITE, conflict("DIVIDE_BY_ZERO")))
    with pytest.raises(WarehouseError, match="somebody"):
        shop.refresh("totals")
    assert len([sql for sql in shop.spark.log if sql.startswith(OVERWRITE)]) == 0
    assert shop.session.settings == {}


def test_two_first_builds_make_one_table() -> None:
    shop = small_shop(totals=TOTALS)
    shop.spark.meanwhile.append(("CREATE TABLE", another_run(shop)))
    outcome = shop.refresh("totals")
    assert said(outcome) == "NO_DATA"
    assert len(records(shop.storage("totals").commits)) == 1
    assert shop.is_right("totals")
    assert not shop.spark.exists("shop.totals__dyn_2")


def test_two_builders_of_the_next_generation_make_one() -> None:
    shop = built()
    shop.models["totals"] = TOTALS.replace("as total", "as sum_of_all")
    shop.spark.meanwhile.append((r"CREATE TABLE `shop`.`totals__dyn_2`", another_run(shop)))
    assert said(shop.refresh("totals")) == "NO_DATA"
    assert not shop.spark.exists("shop.totals__dyn_3")
    assert shop.is_right("totals")


def test_a_table_that_another_run_has_built_meanwhile_stays_in_use() -> None:
    shop = small_shop(totals=TOTALS, copy="select id from shop.orders")
    shop.run()
    cycle = shop.open_cycle()
    # From here on the cycle knows which tables there are.
    shop.refresh("copy", cycle)
    shop.models["totals"] = TOTALS.replace("as total", "as sum_of_all")
    shop.run("totals")
    shop.models["totals"] = TOTALS
    assert said(shop.refresh("totals", cycle)) == "NO_DATA"
    assert shop.storage("totals").name.name == "totals__dyn_2"


def test_a_plan_made_before_a_rebuild_never_lands_on_it() -> None:
    """The number belongs to the incarnation that the plan was based on."""
    shop = changed()
    cycle, session = shop.open_cycle(), FakeWarehouse(shop.spark)
    plan = plan_refresh(shop.request("totals"), cycle, session)
    shop.models["totals"] = TOTALS.replace("sum", "max")
    shop.run()
    rebuilt = shop.record("totals")
    run_plan(plan, cycle, session)
    first_attempt = [r.record for r in records(shop.storage("totals").commits)]
    assert rebuilt in first_attempt
    numbers = [record.refresh_number for record in first_attempt]
    assert numbers == sorted(set(numbers), reverse=True)


def test_commits_without_rows_between_plan_and_write_do_no_harm() -> None:
    shop = changed()
    shop.spark.meanwhile.append((OVERWRITE, shop.spark.write("shop.totals__dyn").optimize))
    assert said(shop.refresh("totals")) == "FULL/LIMIT"
    assert shop.run() == {"totals": "NO_DATA"}
    assert shop.is_right("totals")


def test_a_foreign_write_just_before_a_rebuild_is_overwritten() -> None:
    shop = changed()
    foreign = shop.spark.write("shop.totals__dyn")
    shop.spark.meanwhile.append((OVERWRITE, lambda: foreign.append((99, 99))))
    shop.refresh("totals")
    assert shop.is_right("totals")


def test_a_source_that_moves_on_while_it_is_read_is_read_at_its_pin() -> None:
    shop = changed()
    orders = shop.spark.write("shop.orders")
    shop.spark.meanwhile.append((OVERWRITE, lambda: orders.append((5, 20, 900))))
    shop.refresh("totals")
    assert shop.spark.read("select * from shop.totals") == [(10, 12), (20, 99)]
    assert shop.run() == {"totals": "FULL/LIMIT"}
    assert shop.is_right("totals")


def moving(shop: Shop, foreign: Callable[[], None]) -> Outcome:
    """Let `big` move its record while somebody else writes to its storage."""
    write = shop.spark.write("shop.orders")
    write.delete((1, 10, 5))
    write.append((7, 10, 5))
    shop.run("totals")
    shop.spark.meanwhile.append((r"INSERT INTO `shop`.`big__dyn`", foreign))
    return shop.refresh("big")


def test_a_foreign_write_under_a_moved_record_is_found_by_the_next_run() -> None:
    shop = small_shop(totals=TOTALS, big="select customer from shop.totals where total > 10")
    shop.run()
    moving(shop, lambda: shop.spark.write("shop.big__dyn").append((99,)))
    shop.run()
    assert shop.is_right("big")


def test_a_foreign_write_under_a_moved_record_is_found_at_once() -> None:
    shop = small_shop(totals=TOTALS, big="select customer from shop.totals where total > 10")
    shop.run()
    moving(shop, lambda: shop.spark.write("shop.big__dyn").append((99,)))
    assert shop.is_right("big")


def test_a_foreign_write_under_a_moved_record_is_found_behind_much_maintenance() -> None:
    shop = small_shop(totals=TOTALS, big="select customer from shop.totals where total > 10")
    shop.run()
    moving(shop, lambda: shop.spark.write("shop.big__dyn").append((99,)))
    for _ in range(9):
        shop.spark.write("shop.big__dyn").optimize()
    shop.run()
    assert shop.is_right("big")


def test_a_requested_refresh_never_puts_older_rows_back() -> None:
    shop = changed()

    def newer() -> None:
        shop.spark.write("shop.orders").append((5, 20, 900))
        another_run(shop)()

    shop.spark.meanwhile.append((OVERWRITE, newer))
    shop.refresh("totals", full_refresh=True)
    assert shop.is_right("totals")


def test_an_attempt_that_came_to_nothing_deleted_nothing() -> None:
    shop = changed()
    shop.spark.meanwhile.append((OVERWRITE, another_run(shop)))
    assert not shop.refresh("totals").rows_deleted


def test_a_newer_generation_that_somebody_built_meanwhile_is_used() -> None:
    shop = changed()
    old = shop.models["totals"]

    def rebuild() -> None:
        shop.models["totals"] = TOTALS.replace("as total", "as other")
        another_run(shop)()
        shop.models["totals"] = old

    cycle, session = shop.open_cycle(), FakeWarehouse(shop.spark)
    plan = plan_refresh(shop.request("totals"), cycle, session)
    rebuild()
    run_plan(plan, cycle, session)
    assert shop.record("totals").generation >= 2
    assert shop.is_right("totals")


@pytest.mark.parametrize(
    ("alter", "code"),
    [
        (lambda writer: writer.add_column("note", "string"), "STORAGE_ALTERED"),
        (lambda writer: writer.drop_column("total"), "FOREIGN_COMMIT"),
        (lambda writer: writer.rename_column("total", "sum"), "FOREIGN_COMMIT"),
    ],
)
def test_storage_with_other_columns_is_replaced(
    alter: Callable[[Writer], None], code: str
) -> None:
    shop = built()
    alter(shop.spark.write("shop.totals__dyn"))
    outcome = shop.refresh("totals")
    assert (outcome.plan.decision.reason.code, outcome.plan.generation) == (code, 2)
    assert shop.is_right("totals")
    assert said(shop.refresh("totals")) == "NO_DATA"


def test_other_columns_that_came_while_a_refresh_ran_are_seen_by_the_next_run() -> None:
    shop = changed()
    storage = shop.spark.write("shop.totals__dyn")
    shop.spark.meanwhile.append((OVERWRITE, lambda: storage.add_column("note", "string")))
    shop.refresh("totals")
    assert said(shop.refresh("totals")).startswith("REINITIALIZE")
    assert shop.is_right("totals")


def test_a_comment_is_no_other_column() -> None:
    shop = built()
    shop.spark.write("shop.totals__dyn").comment_column("total", "all of it")
    assert said(shop.refresh("totals")) == "NO_DATA"


def test_a_constraint_of_somebody_else_is_dropped() -> None:
    shop = built()
    alter = "ALTER TABLE `shop`.`totals__dyn` ADD CONSTRAINT `small` CHECK (total < 50)"
    FakeWarehouse(shop.spark).execute(alter)
    shop.spark.write("shop.orders").append((4, 20, 90))
    shop.refresh("totals")
    assert shop.is_right("totals")
    assert not [key for key in shop.storage("totals").properties if "small" in key]


def test_storage_that_an_older_version_gave_lengths_to_is_replaced_by_a_rebuild() -> None:
    shop = small_shop(names="select id, name from shop.customers")
    with pytest.MonkeyPatch.context() as older:
        older.setattr("spark_dynamic.refresh.new_record.built_facts", storage_facts)
        shop.run()
    shop.spark.write("shop.customers").append((30, "a longer name"))
    assert shop.refresh("names").plan.generation == 2
    shop.spark.write("shop.customers").append((40, "another one"))
    assert shop.refresh("names").plan.generation == 2
    assert shop.is_right("names")
