"""Which settings a table is compared by: all that are not known to be harmless."""

from dataclasses import replace

import pytest
from fake_shop import SETTINGS, Shop, small_shop

from spark_dynamic.frontier.history import read_record
from spark_dynamic.frontier.record import write_record
from spark_dynamic.harmless_settings import is_harmless
from spark_dynamic.row_settings import DEFAULTS
from spark_dynamic.settings import counted

NULLS = "spark.sql.jsonGenerator.ignoreNullFields"
REBUILT = {"copy": "REINITIALIZE/SETTINGS_CHANGED"}
KEPT = {"copy": "NO_DATA"}


def built(sql: str = "select id from shop.orders", **settings: str) -> Shop:
    shop = small_shop(copy=sql)
    shop.settings |= settings
    shop.run()
    assert shop.run() == KEPT
    return shop


def forget_settings(shop: Shop, **named: str) -> None:
    """Let the newest record be one of an older engine, which named fewer settings."""
    table = shop.storage("copy")
    record = read_record(table.commits[-1])
    assert record is not None
    older = replace(record, settings={**SETTINGS, **named}, names_all_settings=False)
    table.commits[-1] = replace(table.commits[-1], user_metadata=write_record(older))


def test_what_the_profile_sets_counts_unless_it_is_harmless() -> None:
    profile = {NULLS: "false", "spark.sql.new.in.later.versions": "1", "shop_region": "eu"}
    harmless = {
        "spark.sql.shuffle.partitions": "7", "spark.driver.memory": "4g", "spark.jars": "/x.jar",
        "spark.sql.warehouse.dir": "/tmp/1", "spark.hadoop.fs.s3a.endpoint": "e",
        "spark.databricks.delta.snapshotPartitions": "2", "spark.sql.catalog.lake.uri": "u",
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
    }  # fmt: skip
    found = counted(profile | harmless, {})
    assert found == {NULLS: "false", "spark.sql.new.in.later.versions": "1"}


def test_what_a_server_sets_by_itself_counts_if_it_is_known_to_change_rows() -> None:
    server = {
        NULLS: "false", "spark.app.id": "local-17", "spark.app.startTime": "17",
        "spark.driver.port": "4711", "spark.sql.some.vendor.sessionId": "4711",
        "spark.sql.warehouse.dir": "/tmp/17", "spark.sql.ansi.enabled": "false",
    }  # fmt: skip
    found = counted({"spark.sql.ansi.enabled": "true"}, server)
    assert found == {NULLS: "false", "spark.sql.ansi.enabled": "true"}


def test_no_setting_is_in_both_lists() -> None:
    assert not [key for key in DEFAULTS if is_harmless(key)]


def test_another_value_rebuilds_and_the_default_is_no_other_value() -> None:
    shop = built()
    shop.settings[NULLS] = "TRUE"
    assert shop.run() == KEPT
    shop.settings[NULLS] = "false"
    assert shop.run() == REBUILT
    assert f"{NULLS} was true and is false" in shop.record("copy").reason
    del shop.settings[NULLS]
    assert shop.run() == REBUILT
    assert f"{NULLS} was false and is true" in shop.record("copy").reason


def test_a_record_of_an_older_engine_is_compared_by_what_it_names() -> None:
    """What it does not name is taken for unchanged, and written down for the next comparison."""
    shop = built(**{NULLS: "false"})
    forget_settings(shop)
    assert shop.run() == KEPT
    assert shop.record("copy").settings[NULLS] == "false"
    assert shop.record("copy").names_all_settings
    shop.settings[NULLS] = "true"
    assert shop.run() == REBUILT


def test_what_a_record_of_an_older_engine_names_still_counts() -> None:
    policy = "spark.sql.legacy.timeParserPolicy"
    shop = built()
    forget_settings(shop, **{policy: "LEGACY"})
    assert shop.run() == REBUILT
    forget_settings(shop)
    shop.settings["spark.sql.caseSensitive"] = "true"
    assert shop.run() == REBUILT


@pytest.mark.parametrize(
    ("of_view", "of_session", "is_read"),
    [
        ({}, {}, True),
        ({NULLS: "true"}, {}, True),
        ({}, {NULLS: "true"}, True),
        ({NULLS: "false"}, {NULLS: "false"}, True),
        # Inside the view the setting has its default, whatever the session says.
        ({}, {NULLS: "false"}, False),
        ({NULLS: "false"}, {}, False),
        ({"spark.sql.shuffle.partitions": "7"}, {}, True),
    ],
)
def test_a_view_is_written_out_if_it_was_made_under_the_same_settings(
    of_view: dict[str, str], of_session: dict[str, str], is_read: bool
) -> None:
    shop = small_shop(copy="select id from shop.v")
    shop.settings |= of_session
    shop.spark.create_view("shop.v", "select id from shop.orders", **of_view)
    outcome = shop.refresh("copy")
    assert outcome.plan.verdict.passed is is_read


@pytest.mark.parametrize("variable", ["${env:HOME}", "${system:user.name}", "${spark.app.id}"])
def test_a_text_with_values_that_only_the_server_knows_runs_as_it_is(variable: str) -> None:
    shop = small_shop(copy=f"select id, '{variable}' as x from shop.orders")
    shop.run()
    assert shop.run() == {"copy": "FULL/TEXT_NOT_READABLE"}
    assert variable in shop.record("copy").reason
