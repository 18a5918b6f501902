"""However often a query names a table, a refresh reads its changes once."""

import re
from typing import Any

import pytest
from fuzz.applied import Applied, Applying
from fuzz.batches import Batch
from fuzz.case import Case
from fuzz.duck import duck_sql
from fuzz.schemas import Table

from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import State

TABLES = {
    "orders": Table({"k": "int", "v": "int"}, ((1, 10), (2, 20), (2, 20), (3, 30))),
    "lines": Table({"k": "int", "w": "int"}, ((1, 1), (2, 2), (3, 3), (3, 4))),
}
BATCHES = {
    "orders": Batch(((-1, (3, 30)), (1, (1, 11)), (1, (4, 40)))),
    "lines": Batch(((-1, (3, 4)), (1, (4, 5)), (1, (1, 9)))),
}
JOINED = "SELECT a.k, a.v, w FROM orders AS a JOIN lines AS l ON a.k = l.k"
TWICE = "SELECT k, v FROM orders WHERE v > 5 UNION ALL SELECT v AS k, k AS v FROM orders"


class Watched(Applying):
    """Remembers every statement."""

    def __init__(self) -> None:
        super().__init__()
        self.run: list[str] = []

    def execute(self, sql: str) -> None:
        self.run.append(sql)
        super().execute(sql)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        self.run.append(sql)
        return super().rows(sql)


class FromFeeds(Applied):
    """All changes come from change feeds, and old versions can be read."""

    def _intervals(self) -> dict[TableName, Interval]:
        return {t: Interval(t, 0, 1, Kind.CHANGES, location=t.name) for t in self._old}

    def _beyond_travel(self) -> frozenset[TableName]:
        return frozenset()


@pytest.mark.parametrize(
    "sql",
    [
        JOINED,
        TWICE,
        "SELECT a.k, b.v FROM orders AS a JOIN orders AS b ON a.k = b.k",
        f"SELECT k, max(v) AS v, sum(w) AS w FROM ({JOINED}) AS j GROUP BY k",
        f"SELECT k, min(v) AS v, count(*) AS n FROM ({TWICE}) AS u GROUP BY k",
        "SELECT l.k, w, n FROM lines AS l JOIN "
        "(SELECT k, count(*) AS n FROM orders GROUP BY k) AS o ON o.k = l.k",
    ],
)
def test_every_change_feed_stands_in_one_statement_once(sql: str) -> None:
    case, duck = Case(1, TABLES, BATCHES, sql), Watched()
    duck.load(case)
    result, _ = duck.text(duck_sql(sql), State.NEW)
    applied = FromFeeds(case, duck)
    assert applied.difference(result) == ""
    read = re.findall(r"table_changes\w*\('(\w+)'", "\n".join(duck.run))
    assert sorted(read) == sorted(name for name in TABLES if name in sql)
