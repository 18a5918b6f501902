"""The package's view of lags says the same as the engine: both are computed from one history."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import jinja2
import pytest
import sqlglot
import yaml

from spark_dynamic.schedule.grid import next_point
from spark_dynamic.schedule.known import Refresh
from spark_dynamic.schedule.lag_numbers import lag_numbers
from spark_dynamic.sql.dialect import SparkDynamic

MODEL = Path(__file__).parents[2] / "models" / "observability" / "dynamic_table_lag.sql"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TARGET, PERIOD = timedelta(minutes=10), timedelta(seconds=384)
ACTIONS = ["FULL", "REINITIALIZE", "INCREMENTAL", "NO_DATA", "COVERED", "WAITING", "NOT_DUE"]
TARGETS = [["shop.a", "600", "384"], ["shop.free", None, None], ["shop.new", "60", "48"]]


class Adapter:
    """An adapter whose warehouse has the state table, or has not."""

    def __init__(self, has_state: bool, targets: list[Any]) -> None:
        self._has_state, self._targets = has_state, targets

    def get_relation(self, database: None, schema: str, identifier: str) -> str | None:
        return "dynamic_table_refreshes" if self._has_state else None

    def dynamic_table_targets(self) -> Any:
        return SimpleNamespace(rows=self._targets)


def rendered(has_state: bool = True, targets: list[Any] = TARGETS, execute: bool = True) -> str:
    return jinja2.Template(MODEL.read_text()).render(
        adapter=Adapter(has_state, targets),
        config=lambda **options: "",
        execute=execute,
        target=SimpleNamespace(schema="shop", state_schema=None),
    )


def asked(sql: str, refreshes: list[tuple[str, Refresh]]) -> dict[str, dict[str, Any]]:
    """Run the view's query on DuckDB; `now` is fixed."""
    now = f"timestamp '{NOW:%Y-%m-%d %H:%M:%S}'"
    [text] = sqlglot.transpile(
        sql.replace("current_timestamp()", now), read=SparkDynamic, write="duckdb"
    )
    duck = duckdb.connect()
    duck.sql("set timezone = 'UTC'")
    duck.sql("create macro timestamp_seconds(s) as make_timestamp(cast(s * 1000000 as bigint))")
    duck.sql(
        "create table dynamic_table_refreshes (relation text, state text, refresh_action text, "
        "data_timestamp timestamp, ended_at timestamp)"
    )
    states = {True: "SUCCEEDED", False: "FAILED"}
    rows = [
        (name, states[r.succeeded], r.action, plain(r.data_timestamp), plain(r.ended_at))
        for name, r in refreshes
    ]
    if rows:
        duck.executemany("insert into dynamic_table_refreshes values (?, ?, ?, ?, ?)", rows)
    found = duck.sql(text)
    return {row[0]: dict(zip(found.columns, row, strict=True)) for row in found.fetchall()}


def plain(moment: datetime | None) -> datetime | None:
    return moment and moment.replace(tzinfo=None)


def random_refreshes(seed: int) -> list[Refresh]:
    rng = random.Random(seed)
    refreshes = []
    moment = NOW - timedelta(days=1)
    while moment < NOW - timedelta(minutes=30):
        moment += timedelta(seconds=rng.randint(60, 1500))
        end = moment + timedelta(seconds=rng.randint(1, 90))
        older = moment - timedelta(minutes=40) if rng.random() < 0.1 else moment
        stamp = None if rng.random() < 0.1 else older
        refreshes.append(Refresh(rng.choice(ACTIONS), moment, end, stamp, rng.random() < 0.9))
    return refreshes


@pytest.mark.parametrize("seed", range(5))
def test_it_says_what_the_engine_says(seed: int) -> None:
    refreshes = random_refreshes(seed)
    names = ("shop.a", "shop.free", "shop.foreign")
    found = asked(rendered(), [(name, refresh) for name in names for refresh in refreshes])
    expected = lag_numbers(refreshes, TARGET, NOW - timedelta(days=7), NOW)
    assert expected is not None and expected.share_within_target is not None
    assert found.keys() == {"shop.a", "shop.free", "shop.new"}
    row = found["shop.a"]
    assert row["peak_lag_seconds"] == expected.peak.total_seconds()
    assert row["trough_lag_seconds"] == expected.trough.total_seconds()
    assert row["share_within_target"] == pytest.approx(expected.share_within_target)
    moment = row["data_timestamp"].replace(tzinfo=UTC)
    assert row["lag_seconds"] == (NOW - moment).total_seconds()
    assert row["next_due"].replace(tzinfo=UTC) == next_point(moment, PERIOD)
    free = found["shop.free"]
    assert free["share_within_target"] is None and free["next_due"] is None
    assert free["peak_lag_seconds"] == row["peak_lag_seconds"]


def test_a_table_that_was_never_refreshed_has_a_row() -> None:
    row = asked(rendered(), [])["shop.new"]
    assert (row["target_lag_seconds"], row["refreshes"], row["lag_seconds"]) == (60, 0, None)


def test_before_there_is_anything_there_is_no_row() -> None:
    assert asked(rendered(has_state=False, targets=[]), []) == {}
    # While dbt parses, the adapter is not to be asked at all.
    assert asked(rendered(execute=False), []) == {}


def test_every_column_is_described() -> None:
    _, described = yaml.safe_load((MODEL.parent / "schema.yml").read_text())["models"]
    query = sqlglot.parse_one(rendered(), dialect=SparkDynamic)
    assert described["name"] == MODEL.stem
    assert [c["name"] for c in described["columns"]] == query.named_selects
    assert all(column["description"] for column in described["columns"])
