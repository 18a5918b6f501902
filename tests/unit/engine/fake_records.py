"""Records for tests that are not about how they come to be."""

from datetime import UTC, datetime, timedelta

from spark_dynamic.frontier.record import Pin, Record, Recorded, StoredColumn, Verdict
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Commit

START = datetime(2026, 1, 1, tzinfo=UTC)


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


def pin_of(table: str, version: int, log: str = "") -> Pin:
    """Return a pin; a version is committed at the minute of its number."""
    name = TableName.parse(table) if "." in table else TableName("shop", table)
    return Pin(name, log or f"/{name.name}", version, minute(version))


def record_of(name: str, at: int = 0, *frontier: Pin) -> Record:
    return Record(
        model=f"model.shop.{name}",
        engine="0.test",
        incarnation="incarnation",
        generation=1,
        refresh_number=1,
        attempt=f"{name}-{at}",
        cycle="cycle",
        data_timestamp=minute(at),
        based_on=None,
        frontier=frontier,
        upstreams={},
        settings={"spark.sql.ansi.enabled": "true"},
        text_hash="hash",
        verdict=Verdict("key"),
        columns=(StoredColumn("id", "id", "bigint"),),
        storage={"partition_by": [], "location_root": ""},
        action="FULL",
        reason_code="INITIAL_BUILD",
        reason="INITIAL_BUILD: The table did not exist yet.",
        mode="auto",
        trigger="CREATION",
    )


def recorded_at(name: str, version: int, at: int, *frontier: Pin) -> Recorded:
    return Recorded(record_of(name, at, *frontier), Commit(version, minute(version), "WRITE"))
