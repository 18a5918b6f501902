"""The fuzzer finds bugs: each of those planted here, within a few hundred cases."""

import pytest
from fuzz.applied import Applying
from fuzz.applied_mutants import APPLIED_MUTANTS, every_rewrite_is_minimal
from fuzz.batches import Batch
from fuzz.case import Case
from fuzz.check import check
from fuzz.mutants import MUTANTS, Mutant, found_by, planted
from fuzz.schemas import Table

SEED = 9000

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_fuzzer_finds_a_planted_bug(mutant: Mutant) -> None:
    assert found_by(mutant, SEED, 400) is not None


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", APPLIED_MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_fuzzer_finds_a_bug_where_changes_are_applied(mutant: Mutant) -> None:
    assert found_by(mutant, SEED, 400, apply=True) is not None


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
