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

from spark_dynamic.frontier.refreshes import read_refreshes, refreshes_since
from spark_dynamic.names import TableName
from spark_dynamic.schedule.grid import next_point
from spark_dynamic.schedule.known import Refresh, known_from
from spark_dynamic.schedule.lag_numbers import lag_numbers
from spark_dynamic.sql.dialect import SparkDynamic

MODEL = Path(__file__).parents[2] / "models" / "observability" / "dynamic_table_lag.sql"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEEK = timedelta(days=7)
TARGET, PERIOD = timedelta(minutes=10), timedelta(seconds=384)
ACTIONS = ["FULL", "REINITIALIZE", "INCREMENTAL", "NO_DATA", "COVERED", "WAITING", "NOT_DUE"]
TARGETS = [
    ["shop.a", "600", "384", "5"],
    ["shop.free", None, None, "2"],
    ["shop.lag", "600", "384", "2"],
    ["shop.new", "60", "48", "0"],
]
STATE = TableName("shop", "dynamic_table_refreshes")


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


def asked(sql: str, refreshes: list[tuple[str, Refresh]]) -> list[dict[str, Any]]:
    """Run a query over the state table on DuckDB; `now` is fixed."""
    now = f"timestamp '{NOW:%Y-%m-%d %H:%M:%S}'"
    [text] = sqlglot.transpile(
        sql.replace("current_timestamp()", now), read=SparkDynamic, write="duckdb"
    )
    duck = duckdb.connect()
    duck.sql("set timezone = 'UTC'")
    duck.sql("create macro timestamp_seconds(s) as make_timestamp(cast(s * 1000000 as bigint))")
    duck.sql("create schema shop; use shop")
    duck.sql(
        "create table dynamic_table_refreshes (relation text, state text, refresh_action text, "
        "data_timestamp timestamp, started_at timestamp, ended_at timestamp, error text)"
    )
    rows = [
        (
            name,
            "SUCCEEDED" if r.succeeded else "FAILED",
            r.action,
            *map(plain, (r.data_timestamp, r.started_at, r.ended_at)),
            None if r.succeeded else f"error at {r.ended_at}",
        )
        for name, r in refreshes
    ]
    if rows:
        values = "insert into dynamic_table_refreshes values (?, ?, ?, ?, ?, ?, ?)"
        duck.executemany(values, rows)
    found = duck.sql(text)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def view(refreshes: list[tuple[str, Refresh]], **rendering: Any) -> dict[str, dict[str, Any]]:
    return {row["relation"]: row for row in asked(rendered(**rendering), refreshes)}


def plain(moment: datetime | None) -> datetime | None:
    return moment and moment.replace(tzinfo=None)


def random_refreshes(seed: int, days: float, until: timedelta) -> list[Refresh]:
    """Refreshes and other events from so many days ago on, up to so much time ago."""
    rng = random.Random(seed)
    refreshes = []
    moment = NOW - timedelta(days=days)
    while moment < NOW - until - timedelta(minutes=30):
        # A long life has fewer refreshes a day: DuckDB is slow at many of them.
        moment += timedelta(seconds=rng.randint(60, 1500) * max(1, days // 2))
        end = moment + timedelta(seconds=rng.randint(1, 90))
        older = moment - timedelta(minutes=40) if rng.random() < 0.1 else moment
        stamp = None if rng.random() < 0.1 else older
        refreshes.append(Refresh(rng.choice(ACTIONS), moment, end, stamp, rng.random() < 0.9))
    return refreshes


NAMES = ("shop.a", "shop.free", "shop.foreign")
# For how many days the table has been there, and for how long nothing has happened to it.
LIVES = [(1, 0), (8, 0), (20, 0), (20, 6), (20, 8), (20, 13)]


@pytest.mark.parametrize("life", LIVES)
def test_it_says_what_the_engine_says(life: tuple[int, int]) -> None:
    days, quiet = life
    refreshes = random_refreshes(days, days, timedelta(days=quiet))
    found = view([(name, refresh) for name in NAMES for refresh in refreshes])
    expected = lag_numbers(refreshes, TARGET, NOW - WEEK, NOW)
    assert expected is not None and expected.share_within_target is not None
    assert found.keys() == {"shop.a", "shop.free", "shop.lag", "shop.new"}
    row = found["shop.a"]
    assert row["peak_lag_seconds"] == expected.peak.total_seconds()
    assert row["trough_lag_seconds"] == expected.trough.total_seconds()
    assert row["share_within_target"] == pytest.approx(expected.share_within_target)
    assert (row["refreshes"] > 0) == (quiet < 7)
    moment = row["data_timestamp"].replace(tzinfo=UTC)
    assert row["lag_seconds"] == (NOW - moment).total_seconds()
    errors = known_from(refreshes).errors_in_a_row
    assert row["next_due"].replace(tzinfo=UTC) == (NOW if errors else next_point(moment, PERIOD))
    assert row["errors_in_a_row"] == errors
    free = found["shop.free"]
    assert free["share_within_target"] is None
    assert free["peak_lag_seconds"] == row["peak_lag_seconds"]


@pytest.mark.parametrize("life", LIVES)
def test_a_week_is_known_without_reading_all_that_was_before(life: tuple[int, int]) -> None:
    days, quiet = life
    refreshes = random_refreshes(days, days, timedelta(days=quiet))
    rows = asked(
        refreshes_since(STATE, NOW - WEEK), [(name, r) for name in NAMES for r in refreshes]
    )
    found = read_refreshes(rows)
    assert found.keys() == set(NAMES)
    earlier = [r for r in found["shop.a"] if r.ended_at < NOW - WEEK]
    assert len(earlier) == (days > 7)
    expected = lag_numbers(refreshes, TARGET, NOW - WEEK, NOW)
    assert lag_numbers(found["shop.a"], TARGET, NOW - WEEK, NOW) == expected


def events(*actions: str) -> list[Refresh]:
    """What happened to a table, a minute each; what ends with "!" is a failed try."""
    found = []
    for number, action in enumerate(actions):
        at = NOW - timedelta(days=8) + timedelta(minutes=number)
        moment = at if action == "FULL" else None
        found.append(Refresh(action.strip("!"), at, at, moment, not action.endswith("!")))
    return found


@pytest.mark.parametrize(
    ("actions", "state", "errors", "next_due"),
    [
        (["FULL"], "SUCCEEDED", 0, "next point"),
        (["FULL", "WAITING"], "SUCCEEDED", 0, "next point"),
        (["!", "FULL", "!"], "FAILED", 1, "now"),
        (["FULL", "!", "!"], "SUSPENDED_BY_ERRORS", 2, None),
        (["FULL", "!", "!", "RESUMED"], "SUCCEEDED", 0, "next point"),
        (["FULL", "!", "!", "RESUMED", "!"], "FAILED", 1, "now"),
        # The refresh was done, its post-hooks were not.
        (["FULL", "FULL!"], "FAILED", 1, "now"),
        (["FULL", "SUSPENDED"], "SUSPENDED_BY_A_PERSON", 0, None),
        (["FULL", "SUSPENDED", "RESUMED", "SUSPENDED"], "SUSPENDED_BY_A_PERSON", 0, None),
        (["SUSPENDED", "RESUMED"], "MISSING", 0, "now"),
        (["!"], "FAILED", 1, "now"),
        # To be built by the schedule.
        (["NOT_DUE"], "MISSING", 0, "next point"),
    ],
)
def test_it_shows_who_fails_who_is_suspended_and_who_is_due(
    actions: list[str], state: str, errors: int, next_due: str | None
) -> None:
    happened = events(*actions)
    found = view([(name, refresh) for name in ("shop.free", "shop.lag") for refresh in happened])
    row = found["shop.lag"]
    assert (row["state"], row["errors_in_a_row"]) == (state, errors)
    points = {"now": NOW, "next point": next_point(happened[0].ended_at, PERIOD), None: None}
    assert plain(row["next_due"]) == plain(points[next_due])
    # Without a period there is no next point.
    free = NOW if next_due == "now" or state == "MISSING" else None
    assert plain(found["shop.free"]["next_due"]) == plain(free)
    failures = [f"error at {r.ended_at}" for r in happened if not r.succeeded]
    assert row["last_error"] == (failures[-1] if errors else None)


def test_errors_alone_suspend_nobody_who_is_never_to_be_suspended() -> None:
    failed = [("shop.new", refresh) for refresh in events(*"!!!!!!")]
    assert view(failed)["shop.new"]["state"] == "FAILED"


def test_a_table_that_was_never_refreshed_has_a_row() -> None:
    row = view([])["shop.new"]
    assert (row["target_lag_seconds"], row["refreshes"], row["lag_seconds"]) == (60, 0, None)
    assert (row["state"], row["errors_in_a_row"]) == ("MISSING", 0)
    assert plain(row["next_due"]) == plain(NOW)


def test_before_there_is_anything_there_is_no_row() -> None:
    assert view([], has_state=False, targets=[]) == {}
    # While dbt parses, the adapter is not to be asked at all.
    assert view([], execute=False) == {}


def test_every_column_is_described() -> None:
    _, described = yaml.safe_load((MODEL.parent / "schema.yml").read_text())["models"]
    query = sqlglot.parse_one(rendered(), dialect=SparkDynamic)
    assert described["name"] == MODEL.stem
    assert [c["name"] for c in described["columns"]] == query.named_selects
    assert all(column["description"] for column in described["columns"])
