"""The adapter that dbt talks to."""

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.events.types import AdapterEventInfo, AdapterEventWarning
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.events.functions import fire_event, warn_or_error

from dbt.adapters.spark_dynamic import seeds
from dbt.adapters.spark_dynamic.__version__ import version
from dbt.adapters.spark_dynamic.change_queries import ChangeQueries
from dbt.adapters.spark_dynamic.config import MATERIALIZATION, SparkDynamicConfig
from dbt.adapters.spark_dynamic.connections import SparkDynamicConnectionManager, settings_of
from dbt.adapters.spark_dynamic.defaults import prefer_delta
from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.errors import reported
from dbt.adapters.spark_dynamic.operations import Operations
from dbt.adapters.spark_dynamic.planned_refresh import PlannedRefresh, QuietRefresh
from dbt.adapters.spark_dynamic.project_check import check_once
from dbt.adapters.spark_dynamic.prune_operation import PruneOperation
from dbt.adapters.spark_dynamic.requests import request_for, unchecked_constraints
from dbt.adapters.spark_dynamic.responses import RefreshResponse
from dbt.adapters.spark_dynamic.schedule_operations import ScheduleOperations, aligned
from dbt.adapters.spark_dynamic.stream_operations import StreamOperations
from dbt.adapters.spark_dynamic.streams import StreamBuild, Streams
from dbt.adapters.spark_dynamic.switching import drop_storage
from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.apply.view import storage_behind
from spark_dynamic.catalog import describe_relation
from spark_dynamic.changes.columns import TYPES as CHANGE_TYPES
from spark_dynamic.frontier.freshness import last_change
from spark_dynamic.names import TableName
from spark_dynamic.refresh.request import Request
from spark_dynamic.settings import restore, row_settings

# All other materializations write a table or a view, also those of the user's own.
_WRITE_NOTHING = ("ephemeral", "test", "unit")


class SparkDynamicAdapter(SparkAdapter):
    """dbt-spark with Delta by default and dynamic tables."""

    ConnectionManager = SparkDynamicConnectionManager
    AdapterSpecificConfigs = SparkDynamicConfig
    # Not in batches: dbt asks for each source in a thread of its own, which is faster here.
    _capabilities = CapabilityDict(
        {Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full)}
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._dynamic_tables = DynamicTables(self)
        self._streams = Streams(self, self._dynamic_tables)
        self._session_settings: dict[str, str] | None = None
        self._session_settings_lock = threading.Lock()

    @classmethod
    def get_adapter_run_info(cls, config: RelationConfig) -> Any:
        """Name this module; dbt would guess `sparkdynamic` from the class name."""
        info: Any = SparkAdapter.get_adapter_run_info(config)
        return info.replace(adapter_name="spark_dynamic", adapter_version=version)

    def set_relations_cache(self, *args: Any, **kwargs: Any) -> None:
        """Check the project, then list what exists, unless dbt has to leave the warehouse alone.

        What is not listed here is looked up when a model asks for it, so that
        `compile --no-introspect` and `docs generate --empty-catalog` start no Spark.
        """
        if self._macro_resolver is not None:
            manifest: Any = self._macro_resolver
            check_once(manifest)
        asked = getattr(self.config, "args", None)
        if getattr(asked, "INTROSPECT", True) and not getattr(asked, "EMPTY_CATALOG", False):
            super().set_relations_cache(*args, **kwargs)

    def pre_model_hook(self, config: Any) -> None:
        """Give a node that dbt is about to build our defaults."""
        node: Any = getattr(config, "model", None)
        prefer_delta(node)
        self._streams.begin(node)

    def post_model_hook(self, config: Any, context: Any) -> None:
        """Note what a node wrote, and remove what a former dynamic table left behind."""
        node: Any = getattr(config, "model", None)
        materialized = node.config.get("materialized") if hasattr(node, "config") else None
        if materialized == MATERIALIZATION:
            # dbt calls this after a failure, too.
            self._dynamic_tables.ended(TableName.of(node.schema, node.alias), sys.exc_info()[1])
        if materialized in (None, MATERIALIZATION, *_WRITE_NOTHING):
            return
        table = TableName.of(node.schema, node.alias)
        self._dynamic_tables.note_written(table)
        drop_storage(self, table)

    def cleanup_connections(self) -> None:
        """At the end of an invocation, write down what happened in it."""
        try:
            with self.connection_named("dynamic_table_state"):
                self._streams.flush()
                self._dynamic_tables.flush()
        finally:
            self._session_settings = None
            super().cleanup_connections()

    def calculate_freshness_from_metadata(
        self, source: Any, macro_resolver: Any = None
    ) -> tuple[None, Any]:
        """Return when a source was last changed, by its Delta history."""
        warehouse = DbtWarehouse(self)
        with reported():
            changed = last_change(warehouse, TableName.of(source.schema, source.identifier))
        return None, self._create_freshness_response(changed, warehouse.now())

    def session_settings(self) -> dict[str, str]:
        """Return what is set in a session of this invocation; all begin with the same."""
        with self._session_settings_lock:
            if self._session_settings is None:
                handle = self.connections.get_thread_connection().handle
                self._session_settings = settings_of(handle)
            return self._session_settings

    def warn(self, message: str) -> None:
        """Warn as dbt does: shown, counted, an error under `--warn-error`."""
        warn_or_error(AdapterEventWarning(base_msg=message))

    def tell(self, message: str) -> None:
        """Say something on the screen and in the log."""
        fire_event(AdapterEventInfo(base_msg=message))

    def due_models(self, manifest: Any) -> list[str]:
        """Return the unique ids of the dynamic tables that are due."""
        return self._dynamic_tables.due_models(manifest)

    @available
    def dynamic_table_request(
        self, model: Mapping[str, Any], relation: Any, sql: str, full_refresh: bool
    ) -> Request:
        """Say what is asked of a dynamic table in this run."""
        return request_for(self, model, relation, sql, full_refresh)

    @available
    def dynamic_table_held(self, request: Request) -> RefreshResponse | None:
        """Return what to report of a table that is not refreshed in this run; None if it is."""
        return self._dynamic_tables.held(request)

    @available
    def dynamic_table_describe(self, request: Request) -> bool:
        """Apply what is said about a held table; tell whether its grants are to be, too."""
        return self._dynamic_tables.describe(request)

    @available
    def dynamic_table_plan(self, request: Request) -> PlannedRefresh | QuietRefresh:
        """Find out what a dynamic table needs."""
        return self._dynamic_tables.plan(request)

    @available
    def dynamic_table_foresee(self, planned: PlannedRefresh | QuietRefresh) -> None:
        """Find out whether a refresh will write rows, before a hook runs."""
        self._dynamic_tables.foresee(planned)

    @available
    def dynamic_table_settings(self) -> dict[str, str]:
        """Return the settings of the session that change rows, before a hook runs."""
        with reported():
            return row_settings(DbtWarehouse(self))

    @available
    def dynamic_table_restore_settings(self, before: Mapping[str, str]) -> None:
        """Undo what a pre-hook did to the settings that change rows."""
        with reported():
            restore(DbtWarehouse(self), before)

    @available
    def dynamic_table_run(
        self,
        planned: PlannedRefresh | QuietRefresh,
        write: Callable[[str], object] | None = None,
    ) -> RefreshResponse:
        """Do it; dbt's `write` gets the statements, also if one of them fails."""
        try:
            return self._dynamic_tables.run(planned)
        finally:
            if write is not None and isinstance(planned, PlannedRefresh):
                write(planned.sql)

    @available
    def dynamic_table_warn(
        self, planned: PlannedRefresh | QuietRefresh, model: Mapping[str, Any]
    ) -> None:
        """Say what the user should hear, and which constraints Delta does not check."""
        for text in planned.warnings:
            self.warn(text)
        if isinstance(planned, PlannedRefresh) and planned.builds_storage:
            for constraint in unchecked_constraints(model):
                self.warn(f"Constraint {constraint} is not enforced. Only not_null and check are.")

    @available.parse(lambda *_: [])
    def dynamic_table_verify(self, model: str) -> Any:
        """Return the rows in which a dynamic table and its query differ."""
        return Operations(self, self._dynamic_tables).verify(model)

    @available.parse(lambda *_: [])
    def dynamic_table_explain(self, model: str) -> Any:
        """Return what a refresh would do, and how."""
        return Operations(self, self._dynamic_tables).explain(model)

    @available.parse(lambda *_: [])
    def dynamic_table_forecast(self, select: Any = None, exclude: Any = None) -> Any:
        """Return what a run of a selection would do."""
        return Operations(self, self._dynamic_tables).forecast(select, exclude)

    @available.parse(lambda *_: [])
    def dynamic_table_suspend(self, models: Any) -> Any:
        """Keep tables from being refreshed until they are resumed."""
        return ScheduleOperations(self, self._dynamic_tables).suspend(models)

    @available.parse(lambda *_: [])
    def dynamic_table_resume(self, models: Any) -> Any:
        """Let suspended tables be refreshed again."""
        return ScheduleOperations(self, self._dynamic_tables).resume(models)

    @available.parse(lambda *_: [])
    def dynamic_table_refresh(self, models: Any) -> Any:
        """Refresh tables now, with the dynamic tables that they are made of."""
        return ScheduleOperations(self, self._dynamic_tables).refresh(models)

    @available.parse(lambda *_: [])
    def dynamic_table_status(self, models: Any = None) -> Any:
        """Return how dynamic tables stand: lag, target, when they are due."""
        return ScheduleOperations(self, self._dynamic_tables).status(models)

    @available.parse(lambda *_: [])
    def dynamic_table_prune(self, tables: Any = None, dry_run: Any = True) -> Any:
        """Remove what is left of dynamic tables, or say what would be removed."""
        return PruneOperation(self, self._dynamic_tables).prune(tables, dry_run)

    @available.parse(lambda *_: [])
    def dynamic_table_lag_problems(self, model: str) -> Any:
        """Return what keeps a table from being within its target lag."""
        return ScheduleOperations(self, self._dynamic_tables).lag_problems(model)

    @available.parse(lambda *_: [])
    def dynamic_table_error_problems(self, model: str) -> Any:
        """Return one row if the last refresh of a table failed."""
        return ScheduleOperations(self, self._dynamic_tables).error_problems(model)

    @available.parse(lambda *_: [])
    def dynamic_table_targets(self) -> Any:
        """Return what was set for the schedule of each dynamic table of the project."""
        return ScheduleOperations(self, self._dynamic_tables).targets()

    @available.parse(lambda *_: "")
    def dynamic_table_text(self, table: Any) -> str:
        """Return a table as text, its columns below each other."""
        return aligned(table)

    @available.parse(lambda *_, **__: "(select 1 as placeholder)")
    def changes_sql(self, relation_or_sql: Any, since: Any, **options: Any) -> str:
        """Return what changed in a relation or a query, as a relation."""
        return ChangeQueries(self, self._dynamic_tables).changes(relation_or_sql, since, **options)

    @available.parse(lambda *_, **__: "(select 1 as placeholder)")
    def integrate_sql(self, changelog: Any, **options: Any) -> str:
        """Return the table that a changelog adds up to, as a relation."""
        return ChangeQueries(self, self._dynamic_tables).integrated(changelog, **options)

    @available
    def changes_stream_build(
        self, model: Mapping[str, Any], relation: Any, sql: str, full_refresh: bool
    ) -> StreamBuild:
        """Make a stream's view, or bring it up to this run."""
        return self._streams.build(model, relation, sql, full_refresh)

    @available
    def changes_stream_take(
        self, model: Mapping[str, Any], this: Any, stream: Any, full_refresh: bool
    ) -> str:
        """Return the next interval of a stream for a consumer."""
        return self._streams.take(model, this, stream, full_refresh)

    @available
    def execute_main(
        self, model: Mapping[str, Any], sql: str, auto_begin: bool, fetch: bool
    ) -> tuple[Any, Any]:
        """Run the main statement of a node; that of a consumer carries its record."""
        return self._streams.write(
            model, lambda: self.execute(sql, auto_begin=auto_begin, fetch=fetch)
        )

    @available.parse(lambda *_: [])
    def changes_stream_status(self, stream: str | None = None) -> Any:
        """Return where streams and their consumers are."""
        return StreamOperations(self, self._dynamic_tables).status(stream)

    @available.parse(lambda *_: [])
    def changes_stream_move(self, consumer: str, stream: str | None, to: Any) -> Any:
        """Let a consumer go on from another position."""
        return StreamOperations(self, self._dynamic_tables).move(consumer, stream, to)

    @available.parse(lambda *_: [])
    def changes_stream_reset(self, consumer: str, stream: str | None = None) -> Any:
        """Let a stream be new to a consumer."""
        return StreamOperations(self, self._dynamic_tables).reset(consumer, stream)

    @available
    def change_columns_of(self, rows: Any) -> dict[str, str]:
        """Return the types of the change columns that the rows of a unit test give."""
        given = {str(name).lower() for row in rows or () for name in row}
        return {name: kind for name, kind in CHANGE_TYPES.items() if name in given}

    @available
    def seed_columns(self, model: Mapping[str, Any], rows: Any) -> list[list[str]]:
        """Return the names and types of a seed's columns."""
        return seeds.seed_columns(self, model, rows)

    @available
    def make_seed_table(self, relation: Any, columns: list[list[str]], sql: str) -> bool:
        """Make the table of a seed and return True, unless one with these columns exists."""
        return seeds.make_table(self, relation, columns, sql)

    @available
    def load_seed(
        self, relation: Any, columns: list[list[str]], rows: Any, batch_size: int, overwrites: bool
    ) -> str:
        """Load a seed's rows."""
        return seeds.load_seed(self, relation, columns, rows, batch_size, overwrites)

    @available.parse(lambda relation: relation)
    def dynamic_table_storage(self, relation: Any) -> Any:
        """Return the table behind a dynamic table's view, for hooks and maintenance."""
        view = TableName.of(relation.schema, relation.identifier)
        storage = storage_behind(describe_relation(DbtWarehouse(self), view), view)
        return relation.incorporate(path={"identifier": storage.name}, type="table")
