"""append_only over one interval, and over the same time in several: run by DuckDB.

A row counts once within an interval. What happened before its start is not looked at, so an
interval that begins later may show a row that an earlier one has shown.
"""

from datetime import datetime, timedelta
from typing import Any

import pytest
from fuzz.changes import spark_agrees
from fuzz.history import BEGIN, SCHEMA, DuckWarehouse, Event, Log
from fuzz.schemas import Table

from spark_dynamic.changes.read import ChangeRead, Mode, Position, change_select
from spark_dynamic.frontier.record import Pin
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle

PEOPLE = TableName(SCHEMA, "people")
OLD, NEW = (1, "Walter"), (2, "Maude")


class History:
    """One table, and what its commits did: versions 1 to 5."""

    def __init__(self) -> None:
        log = Log(Table({"id": "int", "name": "string"}, (OLD,)), has_feed=True)
        self.log = log
        log.commit(BEGIN, "CREATE TABLE AS SELECT", [("insert", OLD)])
        self.append([("insert", NEW)])
        self.delete([("delete", NEW)])
        self.append([("insert", NEW)])
        self.delete([("delete", OLD)])
        self.append([("insert", OLD)])
        self.duck = DuckWarehouse()
        self.duck.load_history({"people": log})
        self.cycle = Cycle("invocation", self.duck.now(), KnownState())

    def append(self, events: list[Event]) -> None:
        metrics = {"numOutputRows": str(len(events))}
        self.log.commit(
            self.later(), "WRITE", events, parameters={"mode": "Append"}, metrics=metrics
        )

    def delete(self, events: list[Event]) -> None:
        self.log.commit(self.later(), "DELETE", events, metrics={"numDeletedRows": "1"})

    def later(self) -> datetime:
        return self.log.commits[-1].timestamp + timedelta(minutes=1)

    def position(self, version: int) -> Position:
        return {PEOPLE: Pin(PEOPLE, "people", version, self.log.commits[version].timestamp)}

    def appended(self, start: int, end: int, **keys: Any) -> list[str]:
        read = ChangeRead("SELECT * FROM people", SCHEMA, {}, Mode.APPEND_ONLY, **keys)
        between = self.position(start), self.position(end)
        with spark_agrees():
            sql = change_select(read, *between, self.cycle, self.duck)
        return sorted(row[1] for row in self.duck.answer(sql))


@pytest.fixture(scope="module")
def history() -> History:
    return History()


@pytest.mark.parametrize("keys", [{}, {"row_keys": {PEOPLE: ("id",)}}])
def test_within_an_interval_a_row_counts_once(history: History, keys: dict[str, Any]) -> None:
    # Inserted, deleted and inserted again; and one that was there, went and came back.
    assert history.appended(0, 5, **keys) == ["Maude"]
    assert history.appended(0, 3, **keys) == ["Maude"]
    assert history.appended(3, 5, **keys) == []


@pytest.mark.parametrize("keys", [{}, {"row_keys": {PEOPLE: ("id",)}}])
def test_an_interval_knows_nothing_of_those_before_it(
    history: History, keys: dict[str, Any]
) -> None:
    """So do the batches of a stream: a row that was deleted in an earlier one is new again."""
    assert [history.appended(n, n + 1, **keys) for n in range(5)] == [
        ["Maude"], [], ["Maude"], [], ["Walter"],
    ]  # fmt: skip
    # Deleted and inserted again in one and the same interval, it is not.
    assert history.appended(1, 3, **keys) == []
