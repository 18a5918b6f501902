"""Change queries over random histories, by the SQL that the engine writes."""

import random

import pytest
from fuzz.changes import run_changes

FIXED_SEED = 1
# Another one in each run; a failure names it.
VARYING_SEED = random.SystemRandom().randrange(2_000_000, 2**31)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("seed", "cases"), [(FIXED_SEED, 20), (VARYING_SEED, 10)], ids=("fixed", "varying")
)
def test_changes_lead_from_one_state_to_the_next(seed: int, cases: int) -> None:
    print(f"from seed {seed}")
    counts = run_changes(seed, cases)
    assert counts.cases >= 0.9 * cases, counts.skipped
    if seed == FIXED_SEED:
        wanted = {
            "min_delta ADDED_ONLY", "min_delta MINIMIZE",
            "append_only APPEND_ONLY", "redo_log MINIMIZE", "redo_log ADDED_ONLY",
        }  # fmt: skip
        assert wanted <= {s for s, n in counts.shapes.items() if n}
