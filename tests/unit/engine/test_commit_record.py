import json
from dataclasses import fields, replace

import pytest
from fake_delta import APPLICATION, METADATA, TRANSACTION
from fake_records import minute, pin_of, record_of
from fake_shop import small_shop
from fake_warehouse import FakeWarehouse

from spark_dynamic.apply.commit import carrying
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.record import (
    Pin,
    Record,
    StoredColumn,
    Verdict,
    empty_run_mark,
    is_empty_run,
    read_record,
    write_record,
)
from spark_dynamic.names import TableName
from spark_dynamic.settings import set_statement
from spark_dynamic.warehouse import Commit

ODD = "a`b ${env:HOME} $1 \\ \" ' ;\n\tü 𝄞 {x}"
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def commit(metadata: str | None) -> Commit:
    return Commit(0, minute(0), "WRITE", user_metadata=metadata)


def full_record() -> Record:
    """Return a record in which every field differs from its default."""
    pin = Pin(TableName("s", ODD, "cat"), "s3://b/$p", 2**40, minute(7).replace(microsecond=1))
    return replace(
        record_of("totals", 5, pin, pin_of("orders", 3)),
        based_on=0,
        upstreams={"shop.up__dyn": "attempt"},
        settings={"k": ODD},
        verdict=Verdict("key", "columns", "PLANS_DIFFER", ODD, ("rand", "now"), ODD),
        columns=(StoredColumn(ODD, "__dyn_column_1", "struct<a:int>"),),
        storage={"partition_by": ["a"], "location_root": ODD},
        reason=ODD,
        clock=minute(3),
        clock_until=minute(4),
        pinned_by=minute(2),
        unknown_sources={"shop.orders": "attempt"},
        by_commit=True,
        fingerprint="f",
        state={"kind": "rows"},
        streams={"s": [1, 2]},
        window={"start": [], "keys": {"shop.kept": ["id"]}},
        distrusted="fingerprint",
        has_empty_delta=True,
        rows={f"s.{ODD}": (7, 100)},
        names_all_settings=True,
    )


def test_a_record_is_read_as_it_was_written() -> None:
    record = full_record()
    assert read_record(commit(write_record(record))) == record


def test_the_full_record_leaves_no_field_at_its_default() -> None:
    record = full_record()
    empty = {field.name for field in fields(Record) if not getattr(record, field.name)}
    assert empty == {"based_on"}


def test_a_record_survives_the_setting_that_carries_it() -> None:
    written = write_record(full_record())
    assert "${" not in written and "\n" not in written and written.isascii()
    warehouse = FakeWarehouse(small_shop().spark)
    with carrying(warehouse, written, ("app", 3)):
        assert warehouse.settings[METADATA] == written


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        "",
        "theirs",
        "{}",
        '{"spark_dynamic_record":1}',
        '{"spark_dynamic_record":1,"data_timestamp":"yesterday"}',
        "spark_dynamic_record is not JSON",
        '[1, "spark_dynamic_record"]',
        json.dumps({"note": "spark_dynamic_record"}),
    ],
)
def test_what_is_not_ours_is_no_record(metadata: str | None) -> None:
    assert read_record(commit(metadata)) is None
    assert not is_empty_run(commit(metadata))


@pytest.mark.parametrize(
    "change", [{"spark_dynamic_record": 2}, {"unknown": 1}, {"frontier": [{"source": ["a"]}]}]
)
def test_a_record_of_another_format_is_not_guessed_at(change: dict[str, object]) -> None:
    body = json.loads(write_record(full_record())) | change
    assert read_record(commit(json.dumps(body))) is None


def test_an_empty_run_is_marked_and_is_no_record() -> None:
    marked = commit(empty_run_mark())
    assert is_empty_run(marked)
    assert read_record(marked) is None


def test_the_pin_of_a_table_is_found() -> None:
    record = full_record()
    assert record.pin_of(TableName("shop", "orders")) == pin_of("orders", 3)
    assert record.pin_of(TableName("shop", "other")) is None


def test_a_setting_arrives_unchanged_or_not_at_all() -> None:
    assert set_statement("a.b", "x`y;z") == "SET `a.b`=`x``y;z`"
    with pytest.raises(ValueError, match="cannot contain"):
        set_statement("a.b", "${x}")


def test_settings_are_there_in_the_block_only() -> None:
    warehouse = FakeWarehouse(small_shop().spark)
    with carrying(warehouse, "m", ("app", 3)):
        assert warehouse.settings[METADATA] == "m"
        assert warehouse.settings[APPLICATION] == "app"
        assert warehouse.settings[TRANSACTION] == "3"
    assert warehouse.settings == {}
    with carrying(warehouse, "m"):
        assert APPLICATION not in warehouse.settings


def test_settings_go_after_an_error_too() -> None:
    warehouse = FakeWarehouse(small_shop().spark)
    with pytest.raises(WarehouseError), carrying(warehouse, "m", ("app", 3)):
        raise WarehouseError("X", "failed")
    assert warehouse.settings == {}


@pytest.mark.parametrize("number", range(1, 9))
def test_settings_go_whichever_statement_fails(number: int) -> None:
    """Only a setting whose own RESET failed may stay behind."""
    warehouse = FakeWarehouse(small_shop().spark)
    warehouse.settings[OVERWRITE_MODE] = "DYNAMIC"
    warehouse.fail_at = number
    with pytest.raises(WarehouseError) as error, carrying(warehouse, "m", ("app", 3)):
        pass
    ours = {METADATA, APPLICATION, TRANSACTION} & warehouse.settings.keys()
    assert {key for key in ours if f"RESET `{key}`" not in str(error.value)} == set()


@pytest.mark.parametrize("chosen", ["DYNAMIC", "dynamic", "STATIC"])
def test_an_overwrite_replaces_the_whole_table_whatever_the_profile_says(chosen: str) -> None:
    warehouse = FakeWarehouse(small_shop().spark)
    warehouse.settings[OVERWRITE_MODE] = chosen
    with carrying(warehouse, "m"):
        assert warehouse.settings[OVERWRITE_MODE] == "STATIC"
    assert warehouse.settings == {OVERWRITE_MODE: chosen}
