"""The fuzzers find bugs: each of those planted here, within a few hundred cases."""

import re
from pathlib import Path

import pytest
from fuzz.applied import Applying
from fuzz.applied_mutants import (
    APPLIED_MUTANTS,
    a_group_goes_when_its_sum_is_zero,
    a_lost_extreme_is_not_looked_for,
    a_null_key_is_never_found,
    an_old_row_is_never_expected,
    every_copy_of_a_row_is_deleted,
    every_rewrite_is_minimal,
    the_hash_forgets_where_a_null_is,
    what_is_inserted_is_taken_to_stay,
)
from fuzz.batches import Batch
from fuzz.case import Case
from fuzz.change_mutants import CHANGE_MUTANTS, is_found
from fuzz.check import check
from fuzz.mutants import (
    MUTANTS,
    Mutant,
    bounds_of_a_wrong_column,
    bounds_too_narrow,
    found_by,
    planted,
)
from fuzz.planted import FUZZERS
from fuzz.schemas import Table

DOCUMENT = Path(__file__).parents[2] / "docs" / "fuzzing.md"
SEED = 9000
# Some bugs show in few cases: from these seeds it is not far to one of them.
NEAR: dict[Mutant, int] = {
    bounds_of_a_wrong_column: 9200,
    bounds_too_narrow: 9080,
    every_copy_of_a_row_is_deleted: 9060,
    the_hash_forgets_where_a_null_is: 9220,
    a_group_goes_when_its_sum_is_zero: 9260,
    a_null_key_is_never_found: 9020,
    a_lost_extreme_is_not_looked_for: 9190,
    an_old_row_is_never_expected: 9180,
    what_is_inserted_is_taken_to_stay: 9210,
}


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_fuzzer_finds_a_planted_bug(mutant: Mutant) -> None:
    assert found_by(mutant, NEAR.get(mutant, SEED), 400) is not None


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", APPLIED_MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_fuzzer_finds_a_bug_where_changes_are_applied(mutant: Mutant) -> None:
    assert found_by(mutant, NEAR.get(mutant, SEED), 400, apply=True) is not None


def test_it_would_find_rows_that_are_taken_for_net() -> None:
    """Too few random cases write a table anew and lose a column of it on the way."""
    table = Table({"k": "int", "v": "int"}, ((1, 1), (2, 2)))
    batch = Batch(((-1, (1, 1)), (1, (7, 1)), (1, (7, 2))))
    sql = "SELECT k FROM t WHERE v > 0"
    cases = [Case(seed, {"t": table}, {"t": batch}, sql) for seed in range(12)]
    failed = [check(case, Applying(), interpret=False).failure for case in cases]
    assert not any(failed)
    with planted(every_rewrite_is_minimal):
        failed = [check(case, Applying(), interpret=False).failure for case in cases]
    assert {failure.kind for failure in failed if failure} == {"applied"}


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", CHANGE_MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_fuzzer_finds_a_bug_in_change_queries(mutant: Mutant) -> None:
    assert is_found(mutant, 123_000, 60)


def test_the_document_says_which_fuzzer_finds_which_bug() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert len(rows) == len({name for name, _, _ in rows})
    mutants = {m.__name__: m for planted in FUZZERS.values() for m in planted}
    assert {name: text for name, text, _ in rows} == {
        name: (mutant.__doc__ or "").removesuffix(".") for name, mutant in mutants.items()
    }
    assert {name: set(fuzzers.split(", ")) for name, _, fuzzers in rows} == {
        name: {fuzzer for fuzzer, planted in FUZZERS.items() if mutant in planted}
        for name, mutant in mutants.items()
    }
