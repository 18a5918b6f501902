"""A Thrift server with one session for all is refused, and asked once."""

from typing import Any

import pytest
from dbt.adapters.contracts.connection import Connection, ConnectionState
from dbt.adapters.spark.connections import SparkConnectionManager
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.spark_dynamic.connections import (
    SparkDynamicConnectionManager,
    SparkDynamicCredentials,
)

QUESTION = "SET spark.sql.hive.thriftServer.singleSession"


class Server:
    """A handle of dbt-spark, and what it was told."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.statements: list[str] = []
        self.is_closed = False

    def cursor(self) -> "Server":
        return self

    def execute(self, sql: str) -> None:
        self.statements.append(sql)

    def fetchall(self) -> list[tuple[str, str]]:
        return [("spark.sql.hive.thriftServer.singleSession", self.answer)]

    def close(self) -> None:
        self.is_closed = True


def opened(server: Server, monkeypatch: pytest.MonkeyPatch) -> Connection:
    def open_one(connection: Any) -> Any:
        connection.handle, connection.state = server, ConnectionState.OPEN
        return connection

    monkeypatch.setattr(SparkConnectionManager, "open", open_one)
    given = {"schema": "s", "host": "h", "method": "thrift", "poll_interval": 1}
    credentials = SparkDynamicCredentials.from_dict(given)
    connection = Connection("spark_dynamic", "one", credentials)
    SparkDynamicConnectionManager.open(connection)
    return connection


@pytest.fixture(autouse=True)
def not_asked_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkDynamicConnectionManager, "_with_own_sessions", set())


@pytest.mark.parametrize("answer", ["false", "<undefined>"])
def test_a_server_is_asked_once(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(answer)
    for _ in range(3):
        assert opened(server, monkeypatch).state == ConnectionState.OPEN
    assert server.statements.count(QUESTION) == 1


def test_one_session_for_all_is_refused_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("true")
    for _ in range(2):
        with pytest.raises(DbtConfigError, match="SESSION_SHARED"):
            opened(server, monkeypatch)
    assert server.statements == [QUESTION] * 2 and server.is_closed
