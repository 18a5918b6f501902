"""Bugs planted where changes are applied: random changes on a real Delta find each of them.

The rules have such a check in `tests/unit/test_fuzz_mutants.py`; this one is about what only
Delta can show: hashes, ordinals, MERGE and the commit. `make fuzz-delta` runs it.
"""

import random

import pytest
from fuzz.dml import insert, random_statements
from fuzz.mutants import Mutant, planted
from fuzz.planted import DELTA_MUTANTS
from fuzz.schemas import Table
from spark_shop import SparkShop

from spark_dynamic.errors import WarehouseError

ROUNDS = 8
# Few values, so that duplicates, NULL keys and sums of zero come up often.
TABLE = Table({"a": "int", "b": "int"}, ())
MODELS = {
    # A delete takes some copies of a row; a row is there in both directions.
    "copies": "select b from t",
    "mirrored": "select a, b from t union all select b, a from t",
    "grouped": "select a, sum(b) as total, min(b) as least from t group by a",
}


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


@pytest.mark.parametrize("mutant", DELTA_MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_planted_bug_is_found(shop: SparkShop, mutant: Mutant) -> None:
    with planted(mutant):
        assert not is_right(shop, seed=1)
