"""Changelogs by key in dynamic tables: the last row of each key follows new events."""

import pytest
from spark_shop import SparkShop

from spark_dynamic.changes.integrate import latest
from spark_dynamic.warehouse import Column

EVENTS = {
    "id": "int", "sent_at": "timestamp", "kind": "string", "balance": "decimal(10,2)",
    "rate": "double", "tags": "array<string>", "place": "struct<x:int,y:double>",
}  # fmt: skip
DELETES = "kind = 'closed'"


def event(id: int | None, sent_at: int | None, kind: str, balance: float, more: str = "") -> str:
    at = "NULL" if sent_at is None else f"timestamp'2026-01-01 00:00:{sent_at:02d}'"
    rest = more or "1.5, array('a'), named_struct('x', 1, 'y', 0.5)"
    return f"({'NULL' if id is None else id}, {at}, '{kind}', {balance}, {rest})"


@pytest.fixture
def events(shop: SparkShop) -> SparkShop:
    columns = ", ".join(f"{name} {type}" for name, type in EVENTS.items())
    shop.table(
        "events", columns,
        event(1, 1, "open", 10), event(2, 1, "open", 20), event(3, 1, "open", 30),
        event(None, 1, "open", 5),
    )  # fmt: skip
    log = [Column(*pair) for pair in EVENTS.items()]
    sql = latest("events", log, ["id"], ["sent_at"], DELETES, log)
    shop.model("accounts", f"select * from (\n{sql}\n)")
    few = latest("events", [log[0], log[3]], ["id"], ["sent_at"], DELETES, log)
    shop.model(
        "rich", f"select a.id, a.balance * 2 as twice from (\n{few}\n) a where a.balance > 15"
    )
    return shop


def balances(shop: SparkShop) -> dict[int, float]:
    found = shop.session.sql("SELECT id, balance FROM accounts").collect()
    return {row[0]: float(row[1]) for row in found}


@pytest.mark.nightly
def test_events_by_key(events: SparkShop) -> None:
    events.check("accounts", "FULL")
    events.check("rich", "FULL")
    events.run(
        "INSERT INTO events VALUES "
        + ", ".join(
            [
                event(1, 5, "deposit", 15), event(2, 6, "closed", 0), event(4, 2, "open", 40),
                # Too late: it changes nothing. No time at all is before all others.
                event(3, 0, "late", 99), event(3, None, "never", 98),
            ]
        )
    )  # fmt: skip
    events.check("accounts")
    assert balances(events) == {None: 5, 1: 15, 3: 30, 4: 40}
    # What is only inserted never needs the old events.
    assert not any("__dyn_again" in statement for statement in events.statements)
    events.check("rich")
    # Opened again, at the same moment in two ways, and with values that are merely equal.
    zero = "{}, array(), NULL"
    events.run(
        "INSERT INTO events VALUES "
        + ", ".join(
            [
                event(2, 9, "open", 7, zero.format("-0.0D")),
                event(2, 9, "open", 7, zero.format("0.0D")),
                event(4, 9, "closed", 0), event(4, 9, "open", 41), event(None, 3, "deposit", 6),
            ]
        )
    )  # fmt: skip
    events.check("accounts")
    assert balances(events) == {None: 6, 1: 15, 2: 7, 3: 30}
    events.check("rich")
    # A changelog may lose events, too: then the one before is the last again.
    events.run("DELETE FROM events WHERE id = 2 AND sent_at >= timestamp'2026-01-01 00:00:06'",
               "DELETE FROM events WHERE id = 3")  # fmt: skip
    events.check("accounts")
    assert balances(events) == {None: 6, 1: 15, 2: 20}
    events.check("rich")
    events.check("accounts", "NO_DATA")


def test_a_changelog_in_append_mode(events: SparkShop) -> None:
    events.model("log", "select id, kind, balance from events where kind <> 'late'")
    events.check("log", "FULL")
    events.run(f"INSERT INTO events VALUES {event(1, 5, 'deposit', 15)}")
    events.check("log")
    assert not any("MERGE" in statement for statement in events.statements)


def test_of_values_without_an_order_the_same_one_wins_however_they_are_read(
    shop: SparkShop,
) -> None:
    log = [Column("id", "int"), Column("at", "int"), Column("m", "map<string,int>")]
    log.append(Column("f", "array<double>"))
    values = [f"(1, 1, map('a', {n}), array({f}))" for n in (1, 2) for f in ("0.0D", "-0.0D")]
    found = set()
    for turn in range(len(values)):
        turned = ", ".join(values[turn:] + values[:turn])
        rows = f"(SELECT * FROM VALUES {turned} AS log(id, at, m, f))"
        sql = latest(rows, log, ["id"], ["at"], "", log)
        [row] = shop.session.sql(sql).collect()
        found.add(str(row))
    assert len(found) == 1
