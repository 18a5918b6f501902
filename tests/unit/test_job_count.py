"""The jobs of a refresh are those of its stretches of work."""

from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.spark_dynamic.job_count import JobCount


def warehouse(*answers: int | None) -> Any:
    """Return a warehouse that is asked so often how many jobs there were."""
    left = list(answers)
    return SimpleNamespace(jobs=lambda: left.pop(0))


@pytest.mark.parametrize(
    ("answers", "jobs"),
    [
        # Between the two stretches hooks took 10.
        ((0, 4, 14, 17), 7),
        # Spark forgets the oldest of very many.
        ((0, 4, 1000, 990), 4),
        ((None, None, None, None), None),
    ],
)
def test_jobs_of_two_stretches(answers: tuple[int | None, ...], jobs: int | None) -> None:
    spark, count = warehouse(*answers), JobCount()
    for _ in range(2):
        with count.counting(spark):
            pass
    assert count.jobs == jobs
