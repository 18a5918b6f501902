"""A plan on its way through the materialization."""

from datetime import datetime

from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan
from spark_dynamic.refresh.run import Outcome


class PlannedRefresh:
    """What the materialization asks about: first the plan, then what came of it."""

    def __init__(self, plan: Plan, cycle: Cycle, started_at: datetime) -> None:
        self.plan = plan
        self.cycle = cycle
        self.started_at = started_at
        self.outcome: Outcome | None = None

    @property
    def writes(self) -> bool:
        """Tell whether rows will be written (or were, afterwards), so that hooks run."""
        return (self.outcome.plan if self.outcome else self.plan).decision.writes

    @property
    def sql(self) -> str:
        """Every statement that was run, for `target/run`."""
        statements = self.outcome.statements if self.outcome else []
        return ";\n\n".join(statements) + ";" if statements else "-- nothing to do"

    @property
    def builds_storage(self) -> bool:
        """Tell whether a new table was made, which has no constraints yet."""
        return self.outcome is not None and self.outcome.plan.builds_generation
