"""Bugs planted where a refresh is committed: random days with crashes, and Delta, find them."""

from contextlib import ExitStack

from fuzz.mutants import Mutant, patch
from spark_dynamic.apply.storage import write_nothing
from spark_dynamic.refresh import run
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan
from spark_dynamic.warehouse import Warehouse


def the_record_comes_before_the_data(patches: ExitStack) -> None:
    """What a refresh has read is on record in a commit before that of its rows."""

    def planted(
        statement: str, plan: Plan, cycle: Cycle, warehouse: Warehouse, attempt: str
    ) -> None:
        if plan.builds_generation or not plan.decision.writes:
            right(statement, plan, cycle, warehouse, attempt)
            return
        right(write_nothing(plan.storage), plan, cycle, warehouse, attempt)
        warehouse.execute(statement)

    right = patch(patches, run, "_commit", planted)


COMMIT_MUTANTS: tuple[Mutant, ...] = (the_record_comes_before_the_data,)
