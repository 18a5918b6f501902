"""Which fuzzer has to find which bug; docs/fuzzing.md shows the same."""

from collections.abc import Iterator

from fuzz.applied_mutants import (
    APPLIED_MUTANTS,
    an_old_row_is_never_expected,
    what_is_inserted_is_taken_to_stay,
)
from fuzz.change_mutants import CHANGE_MUTANTS, is_found
from fuzz.commit_mutants import COMMIT_MUTANTS
from fuzz.mutants import MUTANTS, Mutant, found_by

# On Delta three queries read one table, so that no join has an old row to forget.
_NOT_ON_DELTA = {an_old_row_is_never_expected, what_is_inserted_is_taken_to_stay}
DELTA_MUTANTS = tuple(m for m in (*APPLIED_MUTANTS, *COMMIT_MUTANTS) if m not in _NOT_ON_DELTA)
FUZZERS: dict[str, tuple[Mutant, ...]] = {
    "deltas": MUTANTS,
    "refreshes": APPLIED_MUTANTS,
    "change queries": CHANGE_MUTANTS,
    "days": COMMIT_MUTANTS,
    "Delta": DELTA_MUTANTS,
}


def search(seed: int, cases: int) -> Iterator[tuple[str, bool]]:
    """Look for the bugs that need neither a test nor Spark; yield each, and whether it shows."""
    for mutant in MUTANTS:
        yield mutant.__name__, found_by(mutant, seed, cases) is not None
    for mutant in APPLIED_MUTANTS:
        yield mutant.__name__, found_by(mutant, seed, cases, apply=True) is not None
    for mutant in CHANGE_MUTANTS:
        yield mutant.__name__, is_found(mutant, seed, cases)
