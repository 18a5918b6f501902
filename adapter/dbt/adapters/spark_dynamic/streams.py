"""Streams in a dbt run: what each consumer takes in this invocation, and its one commit."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import agate
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.spark_dynamic.__version__ import version
from dbt.adapters.spark_dynamic.asked import is_partial
from dbt.adapters.spark_dynamic.config import read_stream_config
from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.errors import StreamError
from dbt.adapters.spark_dynamic.given import row_keys_of
from dbt.adapters.spark_dynamic.replacing import replacing
from dbt.adapters.spark_dynamic.requests import as_read, result_settings
from dbt.adapters.spark_dynamic.stream_models import consumer_problems, consumes
from dbt.adapters.spark_dynamic.stream_positions import StreamPositions
from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse, translated
from spark_dynamic.apply.commit import carrying
from spark_dynamic.catalog import describe_relation
from spark_dynamic.changes import read as changes
from spark_dynamic.changes.build_stream import BuiltStream, StreamRequest, build_stream
from spark_dynamic.changes.consume import Batch
from spark_dynamic.changes.consumer import CONSUMER_PROPERTY, ConsumerRequest
from spark_dynamic.changes.consumption import Consumption
from spark_dynamic.changes.kept_consumptions import keep
from spark_dynamic.changes.read import ChangeRead, Position
from spark_dynamic.changes.stream import Stream, definition_hash, read_stream
from spark_dynamic.clock import stamp
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.frontier.record import empty_run_mark
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Warehouse

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter

# Commands that only look: they need not find streams that were never built.
_RUNS: Final = ("run", "build", "snapshot", "retry")
Result = tuple[AdapterResponse, Any]


@dataclass
class ConsumptionResponse(AdapterResponse):
    """The `adapter_response` of a consumer."""

    consumption_action: str = ""
    consumption_number: int | None = None
    streams: str = ""


@dataclass
class StreamResponse(AdapterResponse):
    """The `adapter_response` of a stream."""

    stream_action: str = ""
    started_at: str = ""


@dataclass(frozen=True)
class StreamBuild:
    """What the materialization of a stream needs: what to report, and what was run."""

    response: StreamResponse
    sql: str


class Streams:
    """All that the adapter keeps about streams while dbt runs."""

    def __init__(self, adapter: "SparkDynamicAdapter", tables: DynamicTables) -> None:
        self._adapter = adapter
        self._tables = tables
        self._lock = threading.RLock()
        self._batches: dict[str, Batch] = {}
        # Nodes that dbt has begun to build: what they take is settled.
        self._begun: set[str] = set()
        self._ends: dict[str, Position] = {}
        self._streams: dict[TableName, Stream | None] = {}
        self._consumed: list[Consumption] = []

    def build(self, model: Mapping[str, Any], relation: Any, sql: str, full: bool) -> StreamBuild:
        """Make a stream's view, or bring it up to this run."""
        warehouse = DbtWarehouse(self._adapter)
        view = TableName.of(relation.schema, relation.identifier)
        if is_partial(self._adapter):
            return self._build_empty(view, self._read(model, sql), warehouse)
        cycle = self._tables.cycle()
        request = StreamRequest(
            model=model["unique_id"],
            view=view,
            read=self._read(model, sql),
            config=read_stream_config(model),
            full_refresh=full,
        )
        positions = StreamPositions(self._adapter, self._tables)
        with streams_reported():
            built = build_stream(
                request,
                cycle,
                warehouse,
                lambda read: self._end(read, warehouse),
                positions.places(warehouse),
            )
        with self._lock:
            self._streams[request.view] = built.stream
        if built.warning:
            self._adapter.warn(built.warning)
        return _stream_build(built)

    def _build_empty(self, view: TableName, read: ChangeRead, warehouse: Warehouse) -> StreamBuild:
        """Under --empty and --sample: leave a stream alone; else make a view with its columns."""
        statement = ""
        with streams_reported():
            if describe_relation(warehouse, view) is None:
                end = changes.position_now(read, self._tables.cycle(), warehouse)
                rows = changes.change_select(read, None, end, self._tables.cycle(), warehouse)
                statement = f"CREATE VIEW {view.sql} AS SELECT * FROM (\n{rows}\n) WHERE false"
                warehouse.execute(statement)
        code = "EMPTY_RUN"
        response = StreamResponse(_message=code, code=code, stream_action=code)
        return StreamBuild(response, statement or "-- nothing to do")

    def _read(self, model: Mapping[str, Any], sql: str) -> ChangeRead:
        config = read_stream_config(model)
        return ChangeRead(
            sql=as_read(self._adapter, sql.strip().removesuffix(";").strip())[0],
            schema=self._adapter.config.credentials.schema,
            settings=result_settings(self._adapter),
            mode=config.mode,
            unique_key=config.unique_key,
            row_keys=row_keys_of(self._adapter, config.row_keys),
            upserts=config.upserts,
        )

    def take(self, model: Mapping[str, Any], this: Any, stream: Any, full_refresh: bool) -> str:
        """Return what `stream()` stands for in a consumer: its next interval, as a subquery."""
        kind = str(model["resource_type"])
        if kind == "unit_test":
            # The rows that the test gives.
            return str(stream)
        problems = consumer_problems(model["config"], kind)
        if problems:
            raise StreamError(f"STREAM_CONSUMER: {' '.join(str(problem) for problem in problems)}")
        name = TableName.of(stream.schema, stream.identifier)
        if is_partial(self._adapter):
            # Nothing is consumed by --empty and --sample.
            return f"(SELECT * FROM {name.sql} WHERE false)"
        if not self._may_look():
            return str(stream)
        warehouse = DbtWarehouse(self._adapter)
        with streams_reported():
            return self._take(model, this, name, full_refresh, warehouse)

    def _take(
        self,
        model: Mapping[str, Any],
        this: Any,
        name: TableName,
        full_refresh: bool,
        warehouse: Warehouse,
    ) -> str:
        found = self._stream(name, warehouse)
        if found is None:
            if self._command() not in _RUNS:
                return name.sql
            raise EngineError(
                "STREAM_NOT_BUILT",
                f"The stream {name} was not built yet. Run it first, as in dbt run --select "
                f"+{model['name']}. It has to be a model with materialized='changes_stream'.",
            )
        unique_id = model["unique_id"]
        with self._lock:
            batch = self._batches.get(unique_id)
            is_settled = unique_id in self._begun
        if is_settled and (batch is None or found.model not in batch.streams):
            raise EngineError(
                "STREAM_CONSUMER",
                f"A hook of {model['name']} calls stream('{found.name}'), which its query does "
                "not. A hook can read what its model consumes, but not consume by itself.",
            )
        if batch is None:
            settings = result_settings(self._adapter)
            request = _consumer_request(model, this, full_refresh, settings)
            batch = Batch(request, self._tables.cycle(), warehouse, self._kept(warehouse))
            with self._lock:
                self._batches[unique_id] = batch
        end = self._end(found.read, warehouse)
        return f"(\n{batch.take(found, end, warehouse)}\n)"

    def _stream(self, name: TableName, warehouse: Warehouse) -> Stream | None:
        with self._lock:
            if name not in self._streams:
                self._streams[name] = read_stream(warehouse, name)
            return self._streams[name]

    def _end(self, read: ChangeRead, warehouse: Warehouse) -> Position:
        """Return where a stream's interval ends in this cycle: the same for all consumers."""
        key = definition_hash(read, [read.sql])
        with self._lock:
            if key not in self._ends:
                self._ends[key] = changes.position_now(read, self._tables.cycle(), warehouse)
            return self._ends[key]

    def _kept(self, warehouse: Warehouse) -> Callable[[TableName], Consumption | None]:
        return StreamPositions(self._adapter, self._tables).kept(warehouse)

    def begin(self, node: Any) -> None:
        """Settle what a node takes, and let a new table of a consumer be marked as one."""
        unique_id = getattr(node, "unique_id", "")
        with self._lock:
            self._begun.add(unique_id)
            consumes = unique_id in self._batches
        if consumes:
            properties = dict(node.config.get("tblproperties") or {})
            node.config["tblproperties"] = {**properties, CONSUMER_PROPERTY: "true"}

    def write(self, model: Mapping[str, Any], run: Callable[[], Result]) -> Result:
        """Run the main statement of a node; that of a consumer carries its record."""
        with self._lock:
            batch = self._batches.get(model["unique_id"])
        warehouse = DbtWarehouse(self._adapter)
        if batch is None:
            if is_partial(self._adapter) and self._is_consumer(model):
                with carrying(warehouse, empty_run_mark()):
                    return run()
            replaces_all = model["config"].get("materialized") in ("table", "view")
            return replacing(run) if replaces_all else run()
        streams = ", ".join(stream.rpartition(".")[2] for stream in batch.streams)
        results: list[Result] = []
        with streams_reported():
            if batch.is_covered or not batch.run(
                lambda: results.append(_translated(run)), warehouse
            ):
                return _response("COVERED", "COVERED", None, streams), agate.Table([])
        table = results[-1][1] if results else agate.Table([])
        record = batch.record
        with self._lock:
            self._consumed.append(record)
        return _response(f"CONSUMED {streams}", "CONSUMED", record.number, streams), table

    def _is_consumer(self, model: Mapping[str, Any]) -> bool:
        manifest: Any = self._adapter._macro_resolver
        node = manifest.nodes.get(model["unique_id"])
        return node is not None and consumes(node, manifest.macros)

    def flush(self) -> None:
        """At the end of an invocation, list what was consumed in it."""
        with self._lock:
            consumed, self._consumed = self._consumed, []
            for known in (self._batches, self._begun, self._ends, self._streams):
                known.clear()
        if not consumed:
            return
        where = StreamPositions(self._adapter, self._tables).table
        try:
            keep(DbtWarehouse(self._adapter), where, consumed)
        except WarehouseError as error:
            # The commits hold the same facts.
            self._adapter.warn(f"The consumptions could not be written to {where}: {error}")

    def _may_look(self) -> bool:
        asked = getattr(self._adapter.config, "args", None)
        return bool(getattr(asked, "INTROSPECT", True))

    def _command(self) -> str:
        asked = getattr(self._adapter.config, "args", None)
        return str(getattr(asked, "which", None) or getattr(asked, "WHICH", None) or "")


def _response(line: str, action: str, number: int | None, streams: str) -> ConsumptionResponse:
    return ConsumptionResponse(
        _message=line,
        code=action,
        consumption_action=action,
        consumption_number=number,
        streams=streams,
    )


def _stream_build(built: BuiltStream) -> StreamBuild:
    started = stamp(built.stream.started_at)
    action = "STARTED" if built.is_started else "STREAM"
    response = StreamResponse(
        _message=f"{action} {started}", code=action, stream_action=action, started_at=started
    )
    return StreamBuild(response, ";\n\n".join(built.statements) + ";")


def _consumer_request(
    model: Mapping[str, Any], this: Any, full_refresh: bool, settings: Mapping[str, str]
) -> ConsumerRequest:
    config = model["config"]
    is_snapshot = str(model["resource_type"]) == "snapshot"
    return ConsumerRequest(
        model=model["unique_id"],
        table=TableName.of(this.schema, this.identifier),
        engine_version=version,
        holds_last_batch=config.get("materialized") == "table",
        # dbt never builds a snapshot again.
        full_refresh=full_refresh and not is_snapshot,
        has_location=bool(config.get("location_root")),
        settings=settings,
    )


def _translated(run: Callable[[], Result]) -> Result:
    """Run what dbt runs; its errors become the engine's, so that a conflict is seen."""
    with translated():
        return run()


class streams_reported:
    """Lets dbt show the engine's errors."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, EngineError):
            raise StreamError(str(error)) from error
        if isinstance(error, WarehouseError):
            # What dbt itself raised has the statement in it.
            if isinstance(error.__cause__, DbtRuntimeError):
                raise error.__cause__
            raise DbtDatabaseError(error.report) from error
