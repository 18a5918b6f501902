"""What is left of dynamic tables is found, and goes only where nobody can need it."""

from collections.abc import Iterator
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from fake_dbt import DbtShop, dbt_shop

from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.prune_operation import PruneOperation

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"
DAY = 24 * 3600


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[DbtShop]:
    with dbt_shop(monkeypatch) as made:
        made.model("totals", TOTALS)
        yield made


def prune(shop: DbtShop, **options: Any) -> dict[str, str]:
    adapter = shop.adapter()
    found = PruneOperation(adapter, DynamicTables(adapter)).prune(**options)
    names = (row["table"].removeprefix("shop.") for row in found.rows)
    return dict(zip(names, found.columns["removed"], strict=True))


def leave(shop: DbtShop, *paths: str) -> None:
    for path in paths:
        shop.spark.files[f"file:/warehouse/{path}"] = shop.spark.clock


def rebuilt(shop: DbtShop, *names: str) -> None:
    """Give the table other columns, and so a further generation, for each name."""
    for name in names:
        shop.shop.models["totals"] = TOTALS.replace("as total", f"as {name}")
        assert "DEFINITION_CHANGED" in shop.run()["totals"]


def storages(shop: DbtShop) -> list[str]:
    return sorted(name.name for name in shop.spark.entries if "__dyn" in name.name)


def test_old_generations_go_with_their_retention(shop: DbtShop) -> None:
    shop.run()
    rebuilt(shop, "a", "b")
    assert prune(shop, dry_run=False) == {}
    shop.spark.tick(40 * DAY)
    shop.run()
    assert prune(shop) == {"totals__dyn": "no: dry run", "totals__dyn_2": "no: dry run"}
    assert len(storages(shop)) == 3
    assert set(prune(shop, dry_run=False).values()) == {"yes"}
    assert storages(shop) == ["totals__dyn_3"]
    assert prune(shop) == {}
    assert shop.run() == {"totals": "NO_DATA"}


def test_the_generation_in_use_stays_however_old_it_is(shop: DbtShop) -> None:
    shop.run()
    shop.spark.tick(400 * DAY)
    assert prune(shop, dry_run=False) == {}


def test_what_a_partial_run_shows_stays(shop: DbtShop) -> None:
    shop.run()
    shop.flags["EMPTY"] = True
    shop.shop.models["totals"] = TOTALS.replace("as total", "as other")
    assert "EMPTY_RUN" in shop.run()["totals"]
    shop.flags.clear()
    shop.spark.tick(40 * DAY)
    assert prune(shop, dry_run=False) == {}
    # When it is shown no longer it has no use; that somebody may just be building it is ruled out.
    shop.shop.models["totals"] = TOTALS
    shop.run()
    assert shop.shop.storage("totals").name.name == "totals__dyn"
    assert prune(shop, dry_run=False) == {"totals__dyn_2": "yes"}


def test_a_table_without_a_record_may_be_one_that_is_being_built(shop: DbtShop) -> None:
    shop.run()
    ours = {"spark_dynamic.model": "model.shop.totals"}
    shop.spark.create("shop.totals__dyn_2", {"a": "int"}, properties=ours)
    assert prune(shop, dry_run=False) == {}
    shop.spark.tick(2 * DAY)
    # This machine's clock alone does not say that it is old: it may be ahead of the storage's.
    assert prune(shop, dry_run=False) == {}
    shop.run()
    assert prune(shop, dry_run=False) == {"totals__dyn_2": "yes"}


def test_what_is_named_like_storage_and_is_not_ours_stays(shop: DbtShop) -> None:
    shop.run()
    shop.spark.create("shop.totals__dyn_7", {"a": "int"})
    shop.spark.create("shop.other__dyn", {"a": "int"})
    shop.spark.tick(40 * DAY)
    with pytest.raises(Exception, match="NAME_TAKEN"):
        prune(shop, dry_run=False)
    shop.spark.drop("shop.totals__dyn_7")
    assert prune(shop, dry_run=False) == {}


def test_the_changes_that_a_model_keeps_are_its_own(shop: DbtShop) -> None:
    shop.run()
    ours = {"spark_dynamic.model": "model.shop.totals"}
    shop.spark.create("shop.totals__changes_0a1b2c3d__dyn", {"a": "int"}, properties=ours)
    shop.spark.tick(40 * DAY)
    assert prune(shop, dry_run=False) == {}


def test_a_table_without_a_model_goes_only_if_it_is_named(shop: DbtShop) -> None:
    shop.model("gone", TOTALS)
    shop.model("also", TOTALS)
    shop.run()
    for name in ("gone", "also"):
        del shop.shop.models[name]
    not_named = {name: "no: not named" for name in ("also", "also__dyn", "gone", "gone__dyn")}
    assert prune(shop, dry_run=False) == not_named
    named = prune(shop, tables="gone")
    assert named == not_named | {"gone": "no: dry run", "gone__dyn": "no: dry run"}
    assert prune(shop, tables=["shop.gone"], dry_run=False)["gone__dyn"] == "yes"
    assert storages(shop) == ["also__dyn", "totals__dyn"]
    assert shop.spark.exists("shop.also") and not shop.spark.exists("shop.gone")


@pytest.mark.parametrize("name", ["totals", "shop.totals", "orders", "nothing"])
def test_nothing_else_can_be_named(shop: DbtShop, name: str) -> None:
    shop.run()
    with pytest.raises(DbtRuntimeError, match=f"`tables`: '{name}'. Expected .* there are: none"):
        prune(shop, tables=name, dry_run=False)


def test_a_dry_run_is_true_or_false(shop: DbtShop) -> None:
    with pytest.raises(DbtRuntimeError, match="`dry_run`: 'no'. Expected true or false"):
        prune(shop, dry_run="no")


KILLED = "totals__dyn_2/part-0.parquet"


def test_the_directory_of_a_killed_build_goes_when_nobody_has_written_to_it_for_a_day(
    shop: DbtShop,
) -> None:
    shop.run()
    leave(shop, KILLED, "totals__dyn/part-0.parquet", "other__dyn/part-0.parquet")
    assert prune(shop, dry_run=False) == {}
    shop.spark.tick(2 * DAY)
    shop.run()
    assert prune(shop) == {"file:/warehouse/totals__dyn_2": "no: dry run"}
    assert prune(shop, dry_run=False) == {"file:/warehouse/totals__dyn_2": "yes"}
    # That of a table which exists, or of somebody else, is none of those.
    assert len(shop.spark.files) == 2 and prune(shop) == {}


def test_a_directory_with_a_commit_may_be_somebodys_table(shop: DbtShop) -> None:
    shop.run()
    leave(shop, KILLED, "totals__dyn_2/_delta_log/00000000000000000000.json")
    shop.spark.tick(2 * DAY)
    shop.run()
    found = prune(shop, dry_run=False)
    assert found == {"file:/warehouse/totals__dyn_2": "no: remove it yourself"}
    assert len(shop.spark.files) == 2


def test_where_spark_runs_elsewhere_directories_are_only_shown(shop: DbtShop) -> None:
    shop.run()
    shop.spark.removes = False
    leave(shop, KILLED)
    shop.spark.tick(2 * DAY)
    shop.run()
    found = prune(shop, dry_run=False)
    assert found == {"file:/warehouse/totals__dyn_2": "no: remove it yourself"}


def test_directories_are_looked_for_where_the_model_is_stored(shop: DbtShop) -> None:
    shop.run()
    shop.spark.files["s3://bucket/here/totals__dyn_3/day=1/part-0.parquet"] = shop.spark.clock
    leave(shop, KILLED)
    shop.spark.tick(2 * DAY)
    shop.run()
    shop.configs["totals"]["location_root"] = "s3://bucket/here/"
    assert prune(shop) == {"s3://bucket/here/totals__dyn_3": "no: dry run"}
