"""How many Spark jobs a refresh takes, without those of its hooks."""

from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse


class JobCount:
    """Counts the jobs of the stretches in which a refresh is at work."""

    def __init__(self) -> None:
        # None where Spark does not say.
        self.jobs: int | None = 0

    @contextmanager
    def counting(self, warehouse: DbtWarehouse) -> Iterator[None]:
        """Count the jobs of the block, unless it fails."""
        before = warehouse.jobs()
        yield
        after = warehouse.jobs()
        if self.jobs is None or before is None or after is None:
            self.jobs = None
        else:
            # Spark forgets the oldest of very many jobs.
            self.jobs += max(after - before, 0)
