"""What is only added often has keys that are new, too: then no old version is read."""

import pytest
from fuzz.applied import Applied, Watched
from fuzz.batches import Batch
from fuzz.case import Case
from fuzz.duck import duck_sql
from fuzz.schemas import Row, Table

from spark_dynamic.plan.nodes import State

SEED = 4
JOINED = "SELECT o.k, l.v FROM orders AS o JOIN lines AS l ON o.k = l.k"


def added(*rows: Row) -> Batch:
    return Batch(tuple((1, row) for row in rows), True, ("k",))


def refreshed(orders: tuple[Row, ...], lines: tuple[Row, ...]) -> str:
    """Add rows to both tables and refresh; the statement, after its result was compared."""
    tables = {
        "orders": Table({"k": "int"}, ((1,), (2,), (None,))),
        "lines": Table({"k": "int", "v": "int"}, ((1, 10), (2, 20), (2, 20), (7, 70))),
    }
    batches = {"orders": added(*orders), "lines": added(*lines)}
    # With this seed changes are no rewrites, and old versions can be read.
    case, duck = Case(SEED, tables, batches, JOINED), Watched()
    duck.load(case)
    result, _ = duck.text(duck_sql(JOINED), State.NEW)
    applied = Applied(case, duck)
    assert applied.difference(result) == ""
    assert applied.shape.startswith("ADDED_ONLY")
    [statement] = [sql for sql in duck.written if sql.startswith("INSERT")]
    return statement


@pytest.mark.parametrize(
    ("orders", "lines", "reads_old"),
    [
        # Orders arrive together with their lines.
        (((8,), (9,)), ((8, 80), (9, 90), (9, 90)), False),
        # A line without an order, in between.
        (((8,), (9,)), ((8, 80), (11, 1), (9, 90)), False),
        # An order for a line that was waiting for it.
        (((7,), (9,)), ((9, 90),), True),
        # A line of an order that was there: that order is read as it is now.
        (((9,),), ((2, 21), (9, 90)), False),
    ],
)
def test_old_versions_are_read_only_where_they_have_rows(
    orders: tuple[Row, ...], lines: tuple[Row, ...], reads_old: bool
) -> None:
    assert ("VERSION AS OF 0" in refreshed(orders, lines)) is reads_old
