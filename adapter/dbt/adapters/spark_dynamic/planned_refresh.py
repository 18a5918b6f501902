"""A plan on its way through the materialization."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from dbt.adapters.spark_dynamic.job_count import JobCount
from spark_dynamic.frontier.settled import Settled
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.run import Outcome
from spark_dynamic.schedule.known import REFRESHES

_NOTHING = "-- nothing to do"
# What of rebuilds is no surprise; the user should hear of the others.
_EXPECTED = {
    "INITIAL_BUILD", "REQUESTED", "CONFIGURED_FULL", "CHEAPER", "EMPTY_RUN", "AFTER_EMPTY_RUN",
}  # fmt: skip


class PlannedRefresh:
    """What the materialization asks about: first the plan, then what came of it."""

    is_quiet: ClassVar[bool] = False

    def __init__(
        self,
        plan: Plan,
        cycle: Cycle,
        started_at: datetime,
        began: int,
        windows: Sequence[Outcome] = (),
        jobs: JobCount | None = None,
        owes_hooks: bool = False,
    ) -> None:
        self.plan = plan
        self.cycle = cycle
        self.started_at = started_at
        # The catalog's moment before anything was asked.
        self.began = began
        # What was done for the windows of changes that the model reads.
        self.windows = windows
        self.jobs = jobs or JobCount()
        # The post-hooks of the last refresh did not come to their end.
        self._owes_hooks = owes_hooks
        self.outcome: Outcome | None = None
        # Those that were run for the table itself, also if one of them failed.
        self.statements: list[str] = []
        # What else the user should hear of.
        self.noted: list[str] = []

    @property
    def writes(self) -> bool:
        """Tell whether rows will be written (or were, afterwards), so that hooks run."""
        return (self.outcome.plan if self.outcome else self.plan).decision.writes

    @property
    def hooks_to_run(self) -> str:
        """The action after which post-hooks run, perhaps those of an earlier refresh; else ""."""
        action = (self.outcome.plan if self.outcome else self.plan).decision.action
        return action if self.writes or (self._owes_hooks and action in REFRESHES) else ""

    @property
    def sql(self) -> str:
        """Every statement that was run, for `target/run`."""
        statements = [sql for window in self.windows for sql in window.statements]
        statements += self.statements
        return ";\n\n".join(statements) + ";" if statements else _NOTHING

    @property
    def warnings(self) -> list[str]:
        """What the user should hear, after everything else.

        Under `--warn-error` a warning ends the model, and what would follow it is not made up for
        by the next run, which finds the rows written.
        """
        plans = [outcome.plan for outcome in (*self.windows, self.outcome) if outcome]
        rebuilt = [
            f"{plan.request.view} was rebuilt in full. {why} {why.remedy}".rstrip()
            for plan in plans
            for why in [plan.decision.reason]
            if plan.decision.action in ("FULL", "REINITIALIZE") and why.code not in _EXPECTED
        ]
        return rebuilt + self.noted

    @property
    def makes_storage(self) -> bool:
        """Tell whether a new table is to be made."""
        return self.plan.builds_generation

    @property
    def builds_storage(self) -> bool:
        """Tell whether a new table was made."""
        return self.outcome is not None and self.outcome.plan.builds_generation


@dataclass(frozen=True)
class QuietRefresh:
    """A table to which nothing has happened, so that nothing is planned or run for it."""

    request: Request
    settled: Settled
    cycle: Cycle
    started_at: datetime
    is_quiet: ClassVar[bool] = True
    writes: ClassVar[bool] = False
    warnings: ClassVar[tuple[str, ...]] = ()
    hooks_to_run: ClassVar[str] = ""
    makes_storage: ClassVar[bool] = False
