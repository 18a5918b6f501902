"""Random cases, and those that once failed: old result plus delta is the new result."""

import random
from pathlib import Path

import pytest
from fuzz.applied import Applying
from fuzz.case import CASES, random_case, read_case
from fuzz.check import check
from fuzz.run import run

FILES = sorted(CASES.glob("*.json"))
FIXED_SEED = 1_000_000
# Another one in each run; a failure names it.
VARYING_SEED = random.SystemRandom().randrange(2_000_000, 2**31)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_case_that_once_failed_passes(path: Path) -> None:
    case = read_case(path.read_text())
    outcome = check(case, Applying())
    assert outcome.failure is None, outcome.failure
    assert outcome.refused == case.refused


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [FIXED_SEED, VARYING_SEED], ids=("fixed", "varying"))
def test_random_cases_pass(seed: int) -> None:
    print(f"from seed {seed}")
    report = run(seed, 250, interpret_every=8, apply_every=8, shrunk=True, most=1)
    assert not report.failures, report.summary()
    assert not report.unused_rules() and report.features["applied"] > 20
    assert report.features["collated"] > 5
    # The grammar is what the engine takes: hardly anything is refused, here or by DuckDB.
    assert report.refused.total() + report.not_comparable.total() <= 0.03 * report.cases


def test_a_case_reads_back_from_its_file() -> None:
    for seed in range(100):
        case = random_case(seed)
        assert repr(read_case(case.to_json())) == repr(case)
