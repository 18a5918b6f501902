"""The fuzzer finds bugs: each of those planted here, within a few hundred cases."""

import pytest
from fuzz.applied_mutants import APPLIED_MUTANTS
from fuzz.mutants import MUTANTS, Mutant, found_by

SEED = 9000

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_fuzzer_finds_a_planted_bug(mutant: Mutant) -> None:
    assert found_by(mutant, SEED, 400) is not None


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", APPLIED_MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_fuzzer_finds_a_bug_where_changes_are_applied(mutant: Mutant) -> None:
    assert found_by(mutant, SEED, 400, apply=True) is not None
