"""Runs and writers whose clocks jump ahead, from the manifest to the state table."""

import random
from collections.abc import Iterator
from datetime import timedelta

import pytest
from fake_dbt import DbtShop, dbt_shop

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
PAIRS = "select t.total, c.name from shop.totals t join shop.customers c on c.id = t.customer"
MONTH = timedelta(days=30)
MINUTE, HOUR = 60, 3600


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[DbtShop]:
    with dbt_shop(monkeypatch) as made:
        made.model("totals", TOTALS, target_lag="10 minutes")
        made.model("pairs", PAIRS, target_lag="30 minutes")
        yield made


def run_ahead(shop: DbtShop, ahead: timedelta, *names: str) -> dict[str, str]:
    """Run on a machine whose clock is ahead, and so is that of its storage."""
    now = shop.spark.clock
    shop.spark.clock += ahead
    found = shop.run(*names)
    shop.spark.clock = now + timedelta(minutes=1)
    return found


def write(shop: DbtShop, number: int, ahead: timedelta = timedelta()) -> None:
    now = shop.spark.clock
    shop.spark.clock += ahead
    shop.spark.write("shop.orders").append((number, 20, number))
    shop.spark.clock = now


def about_clocks(shop: DbtShop) -> list[str]:
    return [text for text in shop.warnings if "ahead of this machine's clock" in text]


def actions(found: dict[str, str]) -> dict[str, str]:
    return {name: line.split()[0] for name, line in found.items()}


def test_after_a_run_a_month_ahead_tables_are_due_when_they_would_have_been(shop: DbtShop) -> None:
    shop.run()
    run_ahead(shop, MONTH)
    write(shop, 4)
    shop.run(after=HOUR)
    assert shop.shop.is_right("totals") and shop.shop.is_right("pairs")
    [warning] = about_clocks(shop)
    assert warning.startswith("The newest data timestamp is 2026-01-31")
    # It is as if nothing had happened: within the lag, and then due again.
    assert set(actions(shop.run()).values()) == {"NOT_DUE"}
    write(shop, 5)
    assert actions(shop.run(after=HOUR))["totals"] == "FULL"
    assert len(about_clocks(shop)) == 1


def test_a_table_that_was_only_built_in_the_future_is_due(shop: DbtShop) -> None:
    run_ahead(shop, MONTH)
    write(shop, 4)
    assert set(actions(shop.run()).values()) == {"FULL"}
    assert shop.shop.is_right("pairs")
    assert all(row.data_timestamp <= shop.spark.clock for row in shop.rows[-2:])


def test_the_run_says_which_table_has_commits_from_the_future(shop: DbtShop) -> None:
    shop.run()
    write(shop, 4, timedelta(days=1))
    assert actions(shop.run(after=HOUR)) == {"totals": "FULL", "pairs": "FULL"}
    assert shop.shop.is_right("pairs")
    [warning] = about_clocks(shop)
    assert warning.startswith("shop.orders has commits from the future")


@pytest.mark.parametrize("seed", range(12))
def test_whatever_clocks_jump_the_schedule_recovers_by_itself(shop: DbtShop, seed: int) -> None:
    chance = random.Random(seed)

    def jump() -> timedelta:
        """Mostly none; else minutes, which are borne with, or up to two months."""
        days = chance.choice((0, 0, 0, 0.002, 0.1, 1, 60))
        return timedelta(days=days * chance.random())

    dated = jump()
    for number in range(4, 24):
        # Delta dates no commit before the one before it.
        dated = max(dated, jump()) if chance.random() < 0.3 else dated
        if chance.random() < 0.6:
            write(shop, number, dated)
        names = [name for name in ("totals", "pairs") if chance.random() < 0.8]
        run_ahead(shop, jump(), *names)
        shop.spark.tick(chance.choice((MINUTE, 10 * MINUTE, HOUR)))
        dated = max(dated - timedelta(hours=1), timedelta())
    write(shop, 99, dated)
    shop.run(after=2 * HOUR)
    assert shop.shop.is_right("totals") and shop.shop.is_right("pairs"), seed
    newest = [row for row in shop.rows if row.data_timestamp][-2:]
    assert all(row.data_timestamp <= shop.spark.clock + timedelta(minutes=5) for row in newest)
    assert set(actions(shop.run()).values()) <= {"NOT_DUE", "NO_DATA"}
