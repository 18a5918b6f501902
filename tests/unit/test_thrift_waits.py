"""Over thrift, a short statement is not waited for as long as a long one."""

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.spark import connections as dbt_spark

from dbt.adapters.spark_dynamic.connections import SparkDynamicCredentials, ThriftHandle


class SlowCursor:
    """A PyHive cursor whose statement is done at the n-th poll."""

    def __init__(self, polls: int) -> None:
        self.polls = self.left = polls

    def execute(self, *args: Any, **kwargs: Any) -> None:
        self.left = self.polls

    def poll(self) -> Any:
        self.left -= 1
        states = dbt_spark.ThriftState
        state = states.RUNNING_STATE if self.left > 0 else states.FINISHED_STATE
        return SimpleNamespace(operationState=state, errorMessage=None)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr(dbt_spark.time, "sleep", waits.append)
    return waits


def test_waits_start_short_grow_and_start_again_with_the_next_statement(
    slept: list[float],
) -> None:
    handle = ThriftHandle(SimpleNamespace(cursor=lambda: SlowCursor(9)))
    handle.cursor().execute("select 1")
    assert slept == [0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5, 0.5]
    handle.cursor().execute("select 2")
    assert slept[8:] == slept[:8]


def test_a_statement_that_is_done_at_once_is_not_waited_for(slept: list[float]) -> None:
    ThriftHandle(SimpleNamespace(cursor=lambda: SlowCursor(1))).cursor().execute("select 1")
    assert slept == []


def test_the_interval_is_ours_unless_the_profile_names_one() -> None:
    given = {"schema": "s", "host": "h", "method": "thrift"}
    plain = SparkDynamicCredentials.from_dict(given)
    assert plain.poll_interval == 0
    chosen = SparkDynamicCredentials.from_dict({**given, "poll_interval": 2})
    assert chosen.poll_interval == 2
