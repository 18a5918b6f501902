"""Over thrift, the maps of a history are texts, and its moments are wall clocks."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from dbt.adapters.spark_dynamic.thrift_maps import read_map
from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.changes.interval import turns_feed
from spark_dynamic.clock import ZONE_SETTING, zone_of
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.history import Effect, effect
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Commit

FEED = "delta.enableChangeDataFeed"


def as_thrift_writes(values: dict[str, str | None]) -> str:
    """Spark's HiveResult: texts in quotes, whatever is in them."""
    written = (f'"{k}":null' if v is None else f'"{k}":"{v}"' for k, v in values.items())
    return "{" + ",".join(written) + "}"


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"mode": "Append", "partitionBy": "[]"},
        {"properties": json.dumps({FEED: "false"})},
        {"properties": json.dumps({FEED: "true", "a.b": 'it "is" a {x}, "y":"z"}'})},
        {"properties": json.dumps([FEED]), "ifExists": "true"},
        {"partitionBy": '["a","b"]', "description": None, "isManaged": "true"},
        {"description": 'says "hello", twice', "properties": "{}"},
        {"matchedPredicates": json.dumps([{"predicate": 'a = "b"', "actionType": "delete"}])},
        {"mode": "Overwrite", "predicate": "d = 'x' AND e = \"y\""},
        {"predicate": '["(name#1 = },{)"]', "notMatchedPredicates": "[]"},
        {"predicate": "[not JSON", "auto": "false"},
        {"expr": 'a <> "}"', "name": "c"},
        {"version": "2", "timestamp": None},
        {"timestamp": None, "version": "2"},
        {"name": "", "expr": "two\nlines"},
    ],
)
def test_a_map_is_read_as_it_was(values: dict[str, str | None]) -> None:
    assert read_map(as_thrift_writes(values)) == values


@pytest.mark.parametrize(
    "values",
    [
        {"predicate": 'a = ","mode":"Append"', "mode": "Overwrite"},
        {"mode": "Overwrite", "predicate": 'a = ","mode":"Append"'},
    ],
)
def test_what_can_be_read_in_two_ways_is_not_read(values: dict[str, str | None]) -> None:
    found = read_map(as_thrift_writes(values))
    assert found.keys() == {"unreadable"}
    commit = Commit(1, datetime.now(UTC), "WRITE", found, {"numOutputRows": "1"})
    assert effect(commit) is Effect.REWRITTEN


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({FEED: "false"}, True),
        ({"x": "y", FEED: "true"}, True),
        ([FEED], True),
        ({"x": "y"}, False),
    ],
)
def test_a_feed_that_was_switched_is_seen(properties: Any, expected: bool) -> None:
    written = read_map(as_thrift_writes({"properties": json.dumps(properties)}))
    for operation in ("SET TBLPROPERTIES", "UNSET TBLPROPERTIES"):
        assert turns_feed(Commit(1, datetime.now(UTC), operation, written)) is expected


def test_properties_that_cannot_be_read_may_have_switched_it() -> None:
    for parameters in ({"unreadable": "…"}, {}):
        assert turns_feed(Commit(1, datetime.now(UTC), "SET TBLPROPERTIES", parameters))


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("Z", 0), ("UTC", 0), ("GMT", 0), ("UT", 0), ("+00:00", 0), ("+1", 60), ("+01", 60),
        ("+01:00", 60), ("+1:00", 60), ("+0100", 60), ("-08:30", -510), ("-8:30", -510),
        ("+05:30:00", 330), ("+10:5", 605), ("UTC+01:00", 60), ("GMT+1", 60), ("UT-8", -480),
        ("Asia/Tokyo", 540), ("Etc/GMT+5", -300),
    ],
)  # fmt: skip
def test_a_zone_may_be_an_offset(name: str, offset: int) -> None:
    assert zone_of(name).utcoffset(datetime(2026, 1, 1)) == timedelta(minutes=offset)


def test_a_region_has_its_own_rules() -> None:
    assert zone_of("Europe/Berlin") == ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("name", ["PST", "Nowhere/Land", "../etc", "", "+1:00:0"])
def test_a_zone_that_is_not_known_is_named(name: str) -> None:
    with pytest.raises(EngineError, match=f"SETTING_NOT_SUPPORTED: {ZONE_SETTING} is '"):
        zone_of(name)


@pytest.mark.parametrize("zone", ["+01:00", "GMT+1", "Africa/Algiers"])
def test_a_history_is_read_in_the_zone_of_the_session(zone: str) -> None:
    row = {
        "version": 3,
        "timestamp": "2026-11-18 12:00:00.123",
        "operation": "SET TBLPROPERTIES",
        "operationParameters": as_thrift_writes({"properties": json.dumps({FEED: "true"})}),
        "operationMetrics": None,
        "userMetadata": None,
        "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0",
    }
    cursor = SimpleNamespace(
        description=[(name,) for name in row], fetchall=lambda: [tuple(row.values())]
    )
    credentials = SimpleNamespace(server_side_parameters={ZONE_SETTING: zone})
    adapter: Any = SimpleNamespace(
        config=SimpleNamespace(credentials=credentials),
        connections=SimpleNamespace(add_query=lambda *_, **__: (None, cursor)),
    )
    [commit] = DbtWarehouse(adapter).history(TableName("shop", "t"), 1)
    assert commit.timestamp == datetime(2026, 11, 18, 11, 0, 0, 123000, UTC)
    assert turns_feed(commit) and commit.writer.endswith("Delta-Lake/4.4.0")
