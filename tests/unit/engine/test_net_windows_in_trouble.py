"""Windows of net changes hold what their change query shows, whatever happened on the way."""

import random
from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from fake_warehouse import Killed
from fake_windows import NAMED, TOTALS, WindowShop, seeds, window_shop
from net_windows import ORDERS, held, is_as_asked, net_shop, recorded

from spark_dynamic.changes.asked import Mode
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName

pytestmark = pytest.mark.thorough

JOINED = "select t.total, p.name from shop.totals t join shop.people p on t.customer = p.id"


@pytest.mark.parametrize("seed", seeds(2, 58))
def test_random_days(seed: int) -> None:
    rng = random.Random(seed)
    mode = rng.choice((Mode.MIN_DELTA, Mode.MIN_DELTA, Mode.APPEND_ONLY))
    queries = [ORDERS, NAMED, "select amount from shop.orders where amount > 3"]
    if mode is Mode.MIN_DELTA:
        queries += [TOTALS, "select distinct customer, amount from shop.orders"]
    sql, named = rng.choice(queries), {}
    if sql == ORDERS and rng.random() < 0.5:
        named["unique_key"] = ("id",)
    elif "distinct" not in sql and sql != NAMED and rng.random() < 0.5:
        named["row_keys"] = {TableName("shop", "orders"): ("id",)}
    shop = window_shop()
    shop.keep(sql, timedelta(minutes=rng.choice((5, 30, 60))), mode=mode, **named)
    for _ in range(12):
        for _ in range(rng.randint(0, 3)):
            change(shop, rng, is_keyed=bool(named))
        cycle = shop.open_cycle()
        if rng.random() < 0.2:
            # By a model of the same run.
            change(shop, rng, is_keyed=bool(named))
            cycle.note_written(TableName("shop", "orders"), shop.spark.clock)
        chance = rng.random()
        if chance < 0.2:
            with pytest.raises(Killed):
                shop.go(cycle, die_before=rng.randint(1, 30))
                raise Killed
            continue
        shop.go(cycle, full_refresh=chance < 0.3)
        assert is_as_asked(shop), (seed, sql, mode, named)


@pytest.mark.parametrize("seed", seeds(1, 19))
def test_random_days_over_a_dynamic_table(seed: int) -> None:
    rng = random.Random(seed)
    shop = window_shop()
    shop.models["totals"] = TOTALS
    shop.refresh("totals")
    shop.spark.tick(2 * 3600)
    shop.keep("select customer, total from shop.totals", mode=Mode.MIN_DELTA)
    for number in range(12):
        for _ in range(rng.randint(0, 2)):
            change(shop, rng, is_keyed=False)
        cycle = shop.open_cycle()
        if number == 0 or rng.random() < 0.7:
            shop.refresh("totals", cycle)
        shop.go(cycle, full_refresh=rng.random() < 0.1)
        assert is_as_asked(shop), seed


@pytest.mark.parametrize("seed", seeds(1, 19))
def test_a_rebuild_changes_nothing(seed: int) -> None:
    """Also where a table is read beside a dynamic table that is sometimes behind."""
    rng = random.Random(seed)
    shop = window_shop()
    shop.models["totals"] = TOTALS
    shop.refresh("totals")
    shop.spark.tick(2 * 3600)
    shop.keep(JOINED, mode=Mode.MIN_DELTA)
    for number in range(12):
        for _ in range(rng.randint(0, 2)):
            change(shop, rng, is_keyed=False)
        cycle = shop.open_cycle()
        if number == 0 or rng.random() < 0.6:
            shop.refresh("totals", cycle)
        shop.go(cycle)
        anew = deepcopy(shop)
        anew.spark.drop(shop.name())
        anew.spark.drop(f"{shop.name()}__dyn")
        try:
            anew.go(anew.open_cycle())
        except EngineError as error:
            # The dynamic table is behind, so far that the window would begin before it.
            assert error.code == "POINT_TOO_OLD"
            continue
        shop.go(shop.open_cycle())
        if recorded(anew).data_timestamp == recorded(shop).data_timestamp:
            assert held(anew) == held(shop), seed


def change(shop: WindowShop, rng: random.Random, is_keyed: bool) -> None:
    """Insert, delete, insert again, write anew; ids are unique if they have to be."""
    shop.spark.tick(rng.choice((1, 60, 600, 1500)))
    table = rng.choice(("shop.orders", "shop.orders", "shop.orders", "shop.people"))
    write, live = shop.spark.write(table), list(shop.spark.table(table).newest.rows)
    ids = {row[0] for row in live} if is_keyed else set()
    free = [id for id in range(1, 9) if id not in ids] or [rng.randint(10, 999)]
    fresh: tuple[Any, ...] = (rng.choice(free), rng.choice((10, 20)), rng.randint(3, 5))
    if table == "shop.people":
        fresh = (rng.choice((10, 20)), rng.choice("abc"))
    match rng.choice(("append", "append", "delete", "replace", "overwrite", "optimize")):
        case "delete" if live:
            write.delete(rng.choice(live))
        case "replace" if live and table == "shop.orders":
            # An update, as far as a key tells.
            old = rng.choice(live)
            rest = list(live)
            rest.remove(old)
            write.overwrite(*rest, (old[0], old[1], rng.randint(3, 5)))
        case "overwrite":
            kept = rng.sample(live, rng.randint(0, len(live)))
            write.overwrite(*kept, fresh)
        case "optimize":
            write.optimize()
        case _:
            write.append(fresh)


def slides() -> WindowShop:
    shop = net_shop()
    shop.spark.write("shop.orders").append((3, 20, 9))
    shop.spark.tick(2400)
    shop.spark.write("shop.orders").delete((1, 10, 5))
    shop.go()
    shop.spark.tick(1300)
    shop.spark.write("shop.orders").append((7, 20, 50))
    return shop


def first_build() -> WindowShop:
    shop = window_shop()
    shop.keep(ORDERS, mode=Mode.MIN_DELTA)
    shop.spark.write("shop.orders").append((3, 20, 9))
    return shop


@pytest.mark.parametrize("scenario", [slides, first_build])
def test_a_kill_at_any_statement(scenario: Callable[[], WindowShop]) -> None:
    prepared = scenario()
    undisturbed = deepcopy(prepared)
    undisturbed.go()
    new = undisturbed.rows("shop.recent")
    for number in range(1, undisturbed.session.count + 1):
        shop = deepcopy(prepared)
        with pytest.raises(Killed):
            shop.go(die_before=number)
        shop.go()
        assert shop.rows("shop.recent") == new and is_as_asked(shop), number
        assert shop.actions() == ["NO_DATA", "NO_DATA"]
