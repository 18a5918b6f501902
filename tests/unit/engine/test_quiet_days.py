"""Random days: wherever a table is called quiet, a plan would have found nothing to do."""

import random

import pytest
from fake_warehouse import FakeWarehouse
from test_random_days import MODELS, VIEWS, Day

from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.settled import Settled
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.quiet import quiet, settle
from spark_dynamic.refresh.run import run_plan
from spark_dynamic.schedule.remembered import Remembered


class QuietDay(Day):
    """A day on which what was settled is remembered from one cycle to the next."""

    settled: dict[str, Settled]
    quiet_ones = planned_ones = 0

    def known(self) -> KnownState:
        found = self.shop.known()
        found.tables.update(
            {f"shop.{name}": Remembered(settled=one) for name, one in self.settled.items()}
        )
        return found

    def cycle(self) -> None:
        """Run all models; check each one that is called quiet against a plan of its own."""
        shop, session = self.shop, FakeWarehouse(self.shop.spark)
        shop.spark.tick(60)
        cycle = shop.open_cycle(self.known())
        listed = {
            TableName("shop", row["tableName"]): row["information"]
            for row in session._show_extended("shop", "*")
        }
        cycle.catalog.look(session, self.settled.values(), listed)
        for name in MODELS:
            request = shop.request(name)
            began = cycle.catalog.now()
            if quiet(request, cycle, session):
                self.quiet_ones += 1
                self.check(name, cycle)
                continue
            self.planned_ones += 1
            self.settled.pop(name, None)
            try:
                outcome = run_plan(plan_refresh(request, cycle, session), cycle, session)
            except EngineError:
                continue
            found = settle(outcome, cycle, began, session)
            if found:
                self.settled[name] = found

    def check(self, name: str, cycle: Cycle) -> None:
        session = FakeWarehouse(self.shop.spark)
        again = Cycle("again", cycle.data_timestamp, cycle.known)
        plan = plan_refresh(self.shop.request(name), again, session)
        assert (plan.decision.action, plan.moves_record) == ("NO_DATA", False)
        assert plan.cut and plan.cut.data_timestamp == cycle.data_timestamp
        assert run_plan(plan, again, session).statements == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_what_is_called_quiet_is_quiet(seed: int) -> None:
    day = QuietDay(random.Random(seed))
    day.settled = {}
    for _ in range(30):
        match day.chance.randrange(8):
            case 0 | 1:
                day.something_happens()
            case 2:
                name = day.chance.choice(list(MODELS))
                day.shop.models[name] = day.chance.choice(MODELS[name])
            case 3:
                day.shop.spark.create_view("shop.v", day.chance.choice(VIEWS))
        day.cycle()
    # Both ways are taken, or this test would show nothing.
    assert day.quiet_ones > 10 and day.planned_ones > 10
