"""A project on the fake Spark: models that are refreshed as `dbt run` would do it."""

from dataclasses import dataclass, field, replace
from typing import Any

from fake_delta import DeltaTable
from fake_warehouse import FakeSpark, FakeWarehouse

from spark_dynamic.apply.constraints import Constraint
from spark_dynamic.config import DynamicTableConfig, parse_config
from spark_dynamic.frontier.history import records
from spark_dynamic.frontier.record import Record, Recorded
from spark_dynamic.frontier.state import KnownState, row_of, summarise
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.run import Outcome, run_plan

SETTINGS = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}


def config(**raw: Any) -> DynamicTableConfig:
    read, problems = parse_config(raw)
    assert problems == []
    return read


@dataclass
class Shop:
    """Sources, models and the Spark that holds them."""

    spark: FakeSpark = field(default_factory=FakeSpark)
    models: dict[str, str] = field(default_factory=dict)
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    constraints: dict[str, tuple[Constraint, ...]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=lambda: dict(SETTINGS))
    # The session of the newest run.
    session: FakeWarehouse = field(init=False)

    def __post_init__(self) -> None:
        self.session = FakeWarehouse(self.spark)

    def request(self, name: str, **more: Any) -> Request:
        arguments: dict[str, Any] = {
            "model": f"model.shop.{name}",
            "view": TableName("shop", name),
            "sql": self.models[name],
            "schema": "shop",
            "config": config(**self.configs.get(name, {})),
            "settings": self.settings,
            "engine_version": "0.test",
            "constraints": self.constraints.get(name, ()),
        }
        return Request(**(arguments | more))

    def known(self) -> KnownState:
        """Return what the state table would say: every record that was ever committed."""
        rows = [
            row_of(recorded, name.sibling(name.name.rpartition("__dyn")[0]))
            for name, entry in self.spark.entries.items()
            if isinstance(entry, DeltaTable)
            for recorded in records(entry.commits)
        ]
        return replace(summarise(rows), exists=True)

    def open_cycle(self, known: KnownState | None = None) -> Cycle:
        self.spark.tick(60)
        return Cycle("invocation", self.spark.clock, known or self.known())

    def refresh(self, name: str, cycle: Cycle | None = None, **more: Any) -> Outcome:
        """Plan and run one model in a session of its own."""
        cycle = cycle or self.open_cycle()
        self.session = FakeWarehouse(self.spark)
        plan = plan_refresh(self.request(name, **more), cycle, self.session)
        return run_plan(plan, cycle, self.session)

    def run(self, *names: str, **more: Any) -> dict[str, str]:
        """Refresh models in one cycle; return what happened to each, as `ACTION/REASON`."""
        cycle = self.open_cycle()
        return {name: said(self.refresh(name, cycle, **more)) for name in names or self.models}

    def is_right(self, name: str) -> bool:
        """Tell whether a table holds what its query, down to base tables, gives now."""
        found = self.spark.read(f"select * from shop.{name}")
        before = dict(self.spark.entries)
        try:
            for model in self.models:
                self.spark.create_view(f"shop.{model}", self.models[model])
            return found == self.spark.read(f"select * from shop.{name}")
        finally:
            self.spark.entries = before

    def storage(self, name: str) -> DeltaTable:
        """Return the table that a model's view reads."""
        text = self.spark.view(f"shop.{name}").text
        return self.spark.table(text.rpartition(" FROM ")[2])

    def recorded(self, name: str) -> Recorded:
        return records(self.storage(name).commits)[0]

    def record(self, name: str) -> Record:
        return self.recorded(name).record


def said(outcome: Outcome) -> str:
    decision = outcome.plan.decision
    why = decision.reason.code or decision.detail
    return f"{decision.action}/{why}" if why else decision.action


def small_shop(**models: str) -> Shop:
    """Return a shop with two base tables and the given models."""
    shop = Shop(models=models)
    orders = {"id": "bigint", "customer": "bigint", "amount": "bigint"}
    shop.spark.create("shop.orders", orders, (1, 10, 5), (2, 10, 7), (3, 20, 9))
    shop.spark.create("shop.customers", {"id": "bigint", "name": "string"}, (10, "a"), (20, "b"))
    return shop
