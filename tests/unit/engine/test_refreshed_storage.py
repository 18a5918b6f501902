"""What becomes of the storage and the view: config changes, generations, foreign writes."""

from typing import Any

import pytest
from fake_query import StoredView
from fake_shop import Shop, said, small_shop

from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"


def totals_shop(**raw: Any) -> Shop:
    """Return a shop with one table that is built."""
    shop = small_shop(totals=TOTALS)
    shop.configs["totals"] = raw
    shop.run()
    return shop


def test_other_columns_need_a_new_generation() -> None:
    shop = totals_shop()
    shop.models["totals"] = TOTALS.replace("as total", "as `the total`")
    assert shop.run() == {"totals": "REINITIALIZE/DEFINITION_CHANGED"}
    assert shop.is_right("totals")
    assert str(shop.storage("totals").name) == "shop.totals__dyn_2"
    assert [c.name for c in shop.storage("totals").newest.columns] == [
        "customer",
        "__dyn_column_2",
    ]
    assert shop.spark.exists("shop.totals__dyn")
    assert shop.run() == {"totals": "NO_DATA"}


def test_somebody_elses_write_to_the_storage_is_undone() -> None:
    shop = totals_shop()
    shop.spark.write("shop.totals__dyn").append((99, 99))
    assert shop.run() == {"totals": "REINITIALIZE/FOREIGN_COMMIT"}
    assert shop.is_right("totals")
    shop.spark.write("shop.totals__dyn").restore(0)
    assert shop.run() == {"totals": "REINITIALIZE/FOREIGN_COMMIT"}
    assert shop.is_right("totals")


def test_maintenance_of_the_storage_is_no_foreign_write() -> None:
    shop = totals_shop()
    for _ in range(12):
        shop.spark.write("shop.totals__dyn").optimize()
    assert shop.run() == {"totals": "NO_DATA"}
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert shop.run() == {"totals": "FULL/LIMIT"}


def test_auto_compaction_after_the_write_changes_nothing() -> None:
    shop = totals_shop()
    table = shop.storage("totals")
    metadata = table.commits[0].user_metadata or ""
    key = "spark.databricks.delta.commitInfo.userMetadata"
    shop.spark.write("shop.totals__dyn", {key: metadata}).optimize()
    assert shop.run() == {"totals": "NO_DATA"}
    assert shop.recorded("totals").commit.version == 0


def test_a_lost_record_is_built_beside() -> None:
    shop = totals_shop()
    shop.spark.write("shop.totals__dyn").optimize()
    shop.storage("totals").forget_before(1)
    assert shop.run() == {"totals": "REINITIALIZE/RECORD_LOST"}
    assert shop.is_right("totals")
    assert str(shop.storage("totals").name) == "shop.totals__dyn_2"
    assert not shop.spark.exists("shop.totals__dyn")


@pytest.mark.parametrize("more", [{}, {"full_refresh_forbidden": True}])
def test_an_empty_run_leaves_no_state(more: dict[str, bool]) -> None:
    shop = totals_shop()
    empty = f"select * from ({TOTALS}) as t where false"
    assert shop.run(sql=empty, leaves_no_state=True, **more) == {"totals": "FULL/EMPTY_RUN"}
    assert shop.spark.read("select * from shop.totals") == []
    assert shop.run(**more) == {"totals": "REINITIALIZE/AFTER_EMPTY_RUN"}
    assert shop.is_right("totals")


def test_an_empty_run_has_no_data_timestamp() -> None:
    shop = totals_shop()
    empty = f"select * from ({TOTALS}) as t where false"
    assert shop.refresh("totals", sql=empty, leaves_no_state=True).data_timestamp is None
    assert shop.refresh("totals").data_timestamp == shop.record("totals").data_timestamp


def test_a_first_run_that_is_empty_is_followed_by_a_build() -> None:
    shop = small_shop(totals=TOTALS)
    empty = f"select * from ({TOTALS}) as t where false"
    assert shop.run(sql=empty, leaves_no_state=True) == {"totals": "FULL/EMPTY_RUN"}
    assert shop.run() == {"totals": "REINITIALIZE/AFTER_EMPTY_RUN"}
    assert shop.is_right("totals")
    assert shop.run() == {"totals": "NO_DATA"}


def test_an_empty_run_with_other_columns_does_not_touch_the_rows() -> None:
    shop = totals_shop()
    empty = "select 1 as other where false"
    shop.run(sql=empty, leaves_no_state=True)
    assert len(shop.spark.table("shop.totals__dyn").newest.rows) == 2
    assert shop.run()["totals"] in ("NO_DATA", "REINITIALIZE/AFTER_EMPTY_RUN")
    assert shop.is_right("totals")


def test_a_requested_refresh_writes_though_nothing_changed() -> None:
    shop = totals_shop()
    assert shop.run(full_refresh=True) == {"totals": "FULL/REQUESTED"}
    record = shop.record("totals")
    assert (record.trigger, record.refresh_number) == ("MANUAL", 2)
    assert shop.is_right("totals")


def test_mode_full_says_so_and_still_does_nothing_for_nothing() -> None:
    shop = totals_shop(refresh_mode="full")
    assert shop.run() == {"totals": "NO_DATA"}
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert shop.run() == {"totals": "FULL/CONFIGURED_FULL"}


def test_mode_incremental_is_refused_and_nothing_is_built() -> None:
    shop = small_shop(totals=TOTALS)
    shop.configs["totals"] = {"refresh_mode": "incremental"}
    with pytest.raises(EngineError, match="LIMIT"):
        shop.run()
    assert not shop.spark.exists("shop.totals__dyn")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda shop: shop.spark.write("shop.orders").append((4, 1, 1)), "LIMIT"),
        (
            lambda shop: shop.models.update(totals=TOTALS.replace("sum", "max")),
            "DEFINITION_CHANGED",
        ),
        (lambda shop: shop.spark.write("shop.totals__dyn").append((9, 9)), "FOREIGN_COMMIT"),
        (lambda shop: shop.configs.update(totals={"partition_by": "customer"}), "CONFIG_CHANGED"),
    ],
)
def test_a_table_that_must_not_be_rebuilt_is_left_as_it_was(change: Any, code: str) -> None:
    shop = totals_shop()
    change(shop)
    version = shop.storage("totals").version
    with pytest.raises(EngineError, match=f"{code}.*full_refresh: false"):
        shop.run(full_refresh_forbidden=True)
    assert shop.storage("totals").version == version


def test_other_partitions_are_applied_with_a_new_generation() -> None:
    shop = totals_shop()
    shop.configs["totals"] = {"partition_by": "customer"}
    assert shop.run() == {"totals": "REINITIALIZE/CONFIG_CHANGED"}
    assert shop.storage("totals").partition_by == ("customer",)
    assert shop.record("totals").generation == 2
    assert shop.run() == {"totals": "NO_DATA"}


def test_other_partitions_can_wait() -> None:
    shop = totals_shop()
    shop.configs["totals"] = {"partition_by": "customer", "on_configuration_change": "continue"}
    outcome = shop.refresh("totals")
    assert said(outcome) == "NO_DATA"
    assert "partition_by was unset and is ['customer']" in outcome.plan.decision.warning
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert said(shop.refresh("totals")) == "FULL/LIMIT"
    assert shop.record("totals").generation == 1
    # What was not applied is still known, and is applied when it may be.
    assert shop.run(full_refresh=True) == {"totals": "FULL/REQUESTED"}
    assert shop.storage("totals").partition_by == ("customer",)


def test_other_partitions_can_fail() -> None:
    shop = totals_shop()
    shop.configs["totals"] = {"partition_by": "customer", "on_configuration_change": "fail"}
    with pytest.raises(EngineError, match="CONFIG_CHANGED"):
        shop.run()
    assert shop.record("totals").generation == 1


def test_clustering_properties_and_comments_come_without_a_rebuild() -> None:
    shop = totals_shop()
    shop.configs["totals"] = {"clustered_by": "customer", "tblproperties": {"team": "x"}}
    docs = {"comment": "Per customer", "column_comments": {"total": "The sum"}}
    assert shop.run(**docs) == {"totals": "NO_DATA"}
    table = shop.storage("totals")
    assert table.cluster_by == ("customer",)
    assert table.properties["team"] == "x"
    assert table.comments == {"total": "The sum"}
    assert shop.spark.view("shop.totals").properties["comment"] == "Per customer"
    shop.spark.log.clear()
    assert shop.refresh("totals", **docs).statements == []


def test_somebody_elses_table_of_that_name_is_not_touched() -> None:
    shop = small_shop(totals=TOTALS)
    shop.spark.create("shop.totals__dyn", {"a": "bigint"}, (1,))
    with pytest.raises(EngineError, match=r"NAME_TAKEN: shop\.totals__dyn exists"):
        shop.run()
    assert shop.spark.table("shop.totals__dyn").version == 0


def test_a_table_becomes_a_dynamic_table() -> None:
    shop = small_shop(totals=TOTALS)
    shop.spark.create("shop.totals", {"customer": "bigint"}, (1,))
    assert shop.run() == {"totals": "FULL/INITIAL_BUILD"}
    assert isinstance(shop.spark.entries[TableName("shop", "totals")], StoredView)
    assert shop.is_right("totals")


def test_a_plain_view_becomes_a_dynamic_table() -> None:
    shop = small_shop(totals=TOTALS)
    shop.spark.create_view("shop.totals", "select 1 as a")
    shop.run()
    assert shop.is_right("totals")
    assert shop.spark.view("shop.totals").properties["spark_dynamic.model"] == "model.shop.totals"


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_view_that_disagrees_is_repaired(is_gone: bool) -> None:
    shop = totals_shop()
    shop.spark.drop("shop.totals")
    if not is_gone:
        shop.spark.create_view("shop.totals", "select 1 as customer, 2 as total")
    assert shop.run() == {"totals": "NO_DATA"}
    assert shop.is_right("totals")


def test_old_generations_stay_for_their_readers_and_go_with_their_retention() -> None:
    shop = totals_shop(history_retention="1 day")
    for number in range(2):
        shop.spark.tick(10)
        shop.models["totals"] = TOTALS.replace("as total", f"as total_{number}")
        shop.run()
    assert shop.spark.exists("shop.totals__dyn") and shop.spark.exists("shop.totals__dyn_2")
    shop.spark.tick(2 * 24 * 3600)
    shop.models["totals"] = TOTALS
    shop.run()
    assert not shop.spark.exists("shop.totals__dyn_2")
    assert str(shop.storage("totals").name) == "shop.totals__dyn_4"
    assert shop.is_right("totals")


def test_the_statements_of_a_run_are_kept() -> None:
    shop = small_shop(totals=TOTALS)
    outcome = shop.refresh("totals")
    assert any(sql.startswith("CREATE TABLE `shop`.`totals__dyn`") for sql in outcome.statements)
    assert any(sql.startswith("CREATE VIEW `shop`.`totals`") for sql in outcome.statements)
    assert shop.session.settings == {}


def test_a_refresh_after_an_empty_run_with_other_columns_says_what_it_did() -> None:
    shop = totals_shop()
    shop.run(sql="select 1 as other where false", leaves_no_state=True)
    shop.spark.write("shop.orders").append((4, 20, 1))
    outcome = shop.refresh("totals")
    assert said(outcome) == "FULL/LIMIT"
    assert outcome.rows_inserted == 2


def test_a_record_is_renewed_before_it_ages_out() -> None:
    shop = totals_shop(history_retention="10 days")
    version = shop.storage("totals").version
    shop.spark.tick(4 * 24 * 3600)
    assert shop.run() == {"totals": "NO_DATA"}
    assert shop.storage("totals").version == version
    shop.spark.tick(2 * 24 * 3600)
    assert shop.run() == {"totals": "NO_DATA"}
    assert shop.storage("totals").version == version + 1
    record = shop.record("totals")
    assert (record.action, record.refresh_number) == ("NO_DATA", 2)
    assert shop.run() == {"totals": "NO_DATA"}
    assert shop.storage("totals").version == version + 1


def test_a_record_is_renewed_before_the_files_of_its_sources_go() -> None:
    shop = totals_shop()
    shop.spark.write("shop.orders").optimize()
    version = shop.storage("totals").version
    shop.spark.tick(5 * 24 * 3600)
    assert shop.run() == {"totals": "NO_DATA"}
    assert shop.storage("totals").version == version + 1
    assert shop.record("totals").frontier[0].version == 1


@pytest.mark.parametrize(
    ("properties", "days", "is_renewed"),
    [
        ({"delta.deletedFileRetentionDuration": "interval 20 days"}, 5, False),
        ({"delta.deletedFileRetentionDuration": "interval 20 days"}, 11, True),
        ({"delta.deletedFileRetentionDuration": "interval 2 days"}, 2, True),
        ({"delta.logRetentionDuration": "interval 48 hours"}, 2, True),
        ({}, 2, False),
    ],
)
def test_each_source_says_how_long_it_keeps_what_was_replaced(
    properties: dict[str, str], days: int, is_renewed: bool
) -> None:
    shop = totals_shop()
    shop.spark.table("shop.orders").properties |= properties
    shop.spark.write("shop.orders").optimize()
    version = shop.storage("totals").version
    shop.spark.tick(days * 24 * 3600)
    assert shop.run() == {"totals": "NO_DATA"}
    assert shop.storage("totals").version == version + is_renewed


@pytest.mark.parametrize("key", ["clustered_by", "partition_by", "unique_key"])
def test_a_column_that_the_query_does_not_return_is_refused_before_anything_is_written(
    key: str,
) -> None:
    shop = totals_shop()
    shop.spark.write("shop.orders").append((4, 20, 1))
    shop.configs["totals"] = {key: "nope"}
    version = shop.storage("totals").version
    with pytest.raises(EngineError, match=f"COLUMN_UNKNOWN: {key} names nope"):
        shop.run()
    assert shop.storage("totals").version == version
