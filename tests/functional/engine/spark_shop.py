"""Sources and dynamic tables in one schema of a real Spark, refreshed by the engine."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession
from spark_warehouse import SparkWarehouse
from tests.bags import bag

from spark_dynamic.config import parse_config
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.run import Outcome, foresee, run_plan

SETTINGS = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}


class SparkShop:
    """A schema, its models, and how to refresh them."""

    def __init__(self, session: SparkSession, schema: str) -> None:
        self.session = session
        self.schema = schema
        self.models: dict[str, tuple[str, dict[str, Any]]] = {}
        self.statements: list[str] = []
        session.sql(f"CREATE SCHEMA {schema}")
        session.sql(f"USE {schema}")

    def drop(self) -> None:
        self.session.sql(f"DROP SCHEMA {self.schema} CASCADE")

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.session.sql(statement)

    def table(self, name: str, columns: str, *rows: str, feed: bool = True) -> None:
        self.run(
            f"CREATE TABLE {name} ({columns}) USING delta "
            f"TBLPROPERTIES ('delta.enableChangeDataFeed' = '{str(feed).lower()}')",
            *([f"INSERT INTO {name} VALUES {', '.join(rows)}"] if rows else []),
        )

    def model(self, name: str, sql: str, **config: Any) -> None:
        self.models[name] = (sql, {"refresh_mode": "incremental", **config})

    def refresh(
        self,
        name: str,
        warehouse: SparkWarehouse | None = None,
        cycle: Cycle | None = None,
        hook: Callable[[], None] | None = None,
        settings_too: dict[str, str] | None = None,
        **more: Any,
    ) -> Outcome:
        """Refresh a model, in a cycle of its own if none is given, with or without a pre-hook."""
        sql, raw = self.models[name]
        config, problems = parse_config(raw)
        assert problems == []
        warehouse = warehouse or SparkWarehouse(self.session)
        cycle = cycle or self.cycle()
        request = Request(
            model=f"model.shop.{name}",
            view=TableName.of(self.schema, name),
            sql=sql,
            schema=self.schema,
            config=config,
            settings={**SETTINGS, **(settings_too or {})},
            engine_version="0.test",
            **more,
        )
        plan, prepared = plan_refresh(request, cycle, warehouse), None
        statements: list[str] = []
        if hook is not None:
            plan, prepared = foresee(plan, cycle, warehouse, statements)
            hook()
        outcome = run_plan(plan, cycle, warehouse, statements=statements, prepared=prepared)
        self.statements = warehouse.statements
        return outcome

    def cycle(self, after: timedelta = timedelta()) -> Cycle:
        """Open a cycle: now, or some time from now."""
        return Cycle("invocation", datetime.now(UTC) + after, KnownState())

    def action(self, name: str, **more: Any) -> str:
        return self.refresh(name, **more).plan.decision.action

    def difference(self, name: str) -> list[Any]:
        """Return the rows in which a dynamic table and its query differ."""
        sql, _ = self.models[name]
        stored, wanted = (self.session.sql(q).collect() for q in (f"TABLE {name}", sql))
        if bag(stored) == bag(wanted):
            return []
        return self.session.sql(
            f"(SELECT 'stored' AS side, * FROM {name} EXCEPT ALL SELECT 'stored', * FROM ({sql})) "
            f"UNION ALL (SELECT 'query', * FROM ({sql}) EXCEPT ALL SELECT 'query', * FROM {name})"
        ).collect()

    def check(self, name: str, action: str = "INCREMENTAL") -> Outcome:
        """Refresh, and require the action and equality with the query."""
        outcome = self.refresh(name)
        assert outcome.plan.decision.action == action, str(outcome.plan.decision)
        assert self.difference(name) == []
        return outcome
