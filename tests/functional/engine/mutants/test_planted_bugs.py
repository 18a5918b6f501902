"""Bugs planted where changes are applied: random changes on a real Delta find each of them.

The rules have such a check in `tests/unit/test_fuzz_mutants.py`; this one is about what only
Delta can show: hashes, ordinals, MERGE and the commit. `make fuzz-delta` runs it.
"""

import random
from collections.abc import Callable

import pytest
from fuzz.dml import insert, random_statements
from fuzz.schemas import Table
from spark_shop import SparkShop

from spark_dynamic.apply import identity
from spark_dynamic.apply.groups import Groups
from spark_dynamic.apply.rows import Rows
from spark_dynamic.errors import WarehouseError
from spark_dynamic.refresh import incremental, run

ROUNDS = 8
# Few values, so that duplicates, NULL keys and sums of zero come up often.
TABLE = Table({"a": "int", "b": "int"}, ())
MODELS = {
    # A delete takes some copies of a row; a row is there in both directions.
    "copies": "select b from t",
    "mirrored": "select a, b from t union all select b, a from t",
    "grouped": "select a, sum(b) as total, min(b) as least from t group by a",
}
Patch = pytest.MonkeyPatch
Planted = Callable[[Patch], None]
PLANTED: dict[str, Planted] = {}


def planted(function: Planted) -> Planted:
    PLANTED[function.__name__] = function
    return function


def replaced(patch: Patch, owner: type, method: str, old: str, new: str) -> None:
    """Plant a bug into the SQL that a method returns."""
    right = getattr(owner, method)

    def wrong(self, *arguments):
        sql = right(self, *arguments)
        assert old in sql, (old, sql)
        return sql.replace(old, new)

    patch.setattr(owner, method, wrong)


@planted
def every_copy_of_a_row_is_deleted(patch: Patch) -> None:
    replaced(patch, Rows, "_picks", "WHERE __dyn_rank <= -__dyn_weight", "WHERE true")


@planted
def the_hash_forgets_where_a_null_is(patch: Patch) -> None:
    right = identity._encoded
    patch.setattr(identity, "_encoded", lambda *arguments: right(*arguments)[1:])


@planted
def a_group_goes_when_its_sum_is_zero(patch: Patch) -> None:
    replaced(
        patch, Groups, "merge", "t.__dyn_count + s.__dyn_count = 0",
        "t.__dyn_sum_2 + s.__dyn_sum_2 = 0",
    )  # fmt: skip


@planted
def a_null_key_is_never_found(patch: Patch) -> None:
    replaced(patch, Groups, "_same_keys", "<=>", "=")


@planted
def bounds_leave_the_highest_value_out(patch: Patch) -> None:
    right = incremental._ranges

    def wrong(bounds):
        return {c: (low, f"({high} - 1)") for c, (low, high) in right(bounds).items()}

    patch.setattr(incremental, "_ranges", wrong)


@planted
def a_lost_extreme_is_not_looked_for(patch: Patch) -> None:
    patch.setattr(Groups, "extremes", property(lambda self: []))


@planted
def the_record_comes_before_the_data(patch: Patch) -> None:
    right = run._commit

    def wrong(statement, plan, cycle, warehouse, attempt):
        if plan.decision.action != "INCREMENTAL":
            return right(statement, plan, cycle, warehouse, attempt)
        empty = f"INSERT INTO {plan.storage.sql} SELECT * FROM {plan.storage.sql} LIMIT 0"
        right(empty, plan, cycle, warehouse, attempt)
        return warehouse.execute(statement)

    patch.setattr(run, "_commit", wrong)


def is_right(shop: SparkShop, seed: int) -> bool:
    """Change and refresh at random; tell whether every refresh was right."""
    rng = random.Random(seed)
    shop.table("t", "a int, b int")
    shop.run(insert(rng, "t", TABLE, 6))
    for name, sql in MODELS.items():
        shop.model(name, sql)
        shop.check(name, "FULL")
    for round_ in range(ROUNDS):
        for statement in random_statements(rng, "t", TABLE, 2 + round_):
            shop.run(statement)
        for name in MODELS:
            try:
                action = shop.action(name)
                if action not in ("INCREMENTAL", "NO_DATA") or shop.difference(name):
                    return False
            except WarehouseError as error:
                # An invariant inside the statement has noticed.
                assert "USER_RAISED_EXCEPTION" in str(error), error
                return False
    return True


def test_without_a_bug_every_refresh_is_right(shop: SparkShop) -> None:
    assert is_right(shop, seed=1)


@pytest.mark.parametrize("bug", sorted(PLANTED))
def test_a_planted_bug_is_found(shop: SparkShop, monkeypatch: Patch, bug: str) -> None:
    PLANTED[bug](monkeypatch)
    assert not is_right(shop, seed=1)
