"""Windows of changes hold what histories and the clock say, whatever happened on the way."""

import random
from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta

import pytest
from fake_warehouse import Killed
from fake_windows import DEAR, HOUR, NAMED, TOTALS, WindowShop, seeds, window_shop, with_rows

from spark_dynamic.names import TableName

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("seed", seeds(2, 10))
def test_random_days(seed: int) -> None:
    rng = random.Random(seed)
    shop = window_shop()
    sql = rng.choice((DEAR, NAMED, TOTALS, "select * from shop.orders"))
    shop.keep(sql, timedelta(minutes=rng.choice((5, 30, 60))))
    number = 100
    for _ in range(10):
        for _ in range(rng.randint(0, 3)):
            number += 1
            change(shop, rng, number)
        cycle = shop.open_cycle()
        if rng.random() < 0.2:
            number += 1
            change(shop, rng, number)
            cycle.note_written(TableName("shop", "orders"), shop.spark.clock)
        chance = rng.random()
        if chance < 0.25:
            with pytest.raises(Killed):
                shop.go(cycle, die_before=rng.randint(1, 30))
                raise Killed
            continue
        shop.go(cycle, full_refresh=chance < 0.35)
        assert shop.is_kept_right(), (seed, sql)


@pytest.mark.parametrize("seed", seeds(2, 6))
def test_random_days_over_a_dynamic_table(seed: int) -> None:
    """Alone, and beside a table whose commits come in between."""
    rng = random.Random(seed)
    shop = window_shop()
    shop.models["totals"] = TOTALS
    shop.refresh("totals")
    shop.spark.tick(2 * 3600)
    joined = "select t.total, p.name from shop.totals t join shop.people p on t.customer = p.id"
    sql = rng.choice((joined, "select customer, total from shop.totals where total > 9"))
    shop.keep(sql, timedelta(minutes=rng.choice((5, 60))))
    for number in range(100, 110):
        for _ in range(rng.randint(0, 2)):
            change(shop, rng, number)
        cycle = shop.open_cycle()
        if number == 100 or rng.random() < 0.7:
            shop.refresh("totals", cycle)
        shop.go(cycle, full_refresh=rng.random() < 0.1)
        assert shop.is_kept_right(), (seed, sql)


def change(shop: WindowShop, rng: random.Random, number: int) -> None:
    shop.spark.tick(rng.choice((1, 60, 600, 1500)))
    table = rng.choice(("shop.orders", "shop.orders", "shop.people"))
    write, live = shop.spark.write(table), list(shop.spark.table(table).newest.rows)
    fresh = (number, rng.choice((10, 20)), rng.randint(1, 9))
    if table == "shop.people":
        fresh = (rng.choice((10, 20)), rng.choice("abc"))
    match rng.choice(("append", "append", "delete", "overwrite", "optimize")):
        case "delete" if live:
            write.delete(rng.choice(live))
        case "overwrite":
            write.overwrite(*rng.sample(live, rng.randint(0, len(live))), fresh)
        case "optimize":
            write.optimize()
        case _:
            write.append(fresh)


def slides() -> WindowShop:
    shop = with_rows()
    shop.spark.tick(1200)
    shop.spark.write("shop.orders").append((7, 20, 50))
    return shop


def appends() -> WindowShop:
    shop = with_rows()
    shop.spark.write("shop.orders").append((7, 20, 50))
    return shop


def ages() -> WindowShop:
    shop = with_rows()
    shop.spark.tick(1200)
    return shop


def first_build() -> WindowShop:
    shop = window_shop()
    shop.keep(DEAR)
    shop.spark.write("shop.orders").append((3, 20, 9))
    return shop


def redefined() -> WindowShop:
    shop = with_rows()
    shop.windows.clear()
    shop.keep(DEAR, 2 * HOUR)
    return shop


@pytest.mark.parametrize("scenario", [first_build, slides, appends, ages, redefined])
def test_a_kill_at_any_statement(scenario: Callable[[], WindowShop]) -> None:
    prepared = scenario()
    undisturbed = deepcopy(prepared)
    undisturbed.go()
    count = undisturbed.session.count
    old, new = (
        shop.rows("shop.recent") if shop.spark.exists("shop.recent") else None
        for shop in (prepared, undisturbed)
    )
    for number in range(1, count + 1):
        shop = deepcopy(prepared)
        with pytest.raises(Killed):
            shop.go(die_before=number)
        found = shop.rows("shop.recent") if shop.spark.exists("shop.recent") else None
        assert found in (old, new), number
        shop.go()
        assert shop.rows("shop.recent") == new and shop.is_kept_right(), number
        assert shop.actions() == ["NO_DATA", "NO_DATA"]
