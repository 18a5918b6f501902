"""Where streams and consumers are, found by their dbt names."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.spark_dynamic.__version__ import version
from dbt.adapters.spark_dynamic.config import MATERIALIZATION
from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.named_models import named_model, relation_of
from dbt.adapters.spark_dynamic.requests import result_settings
from dbt.adapters.spark_dynamic.stream_models import STREAM, Consuming, consumers, is_stream
from spark_dynamic.changes.consumer import Consumer, ConsumerRequest, read_consumer
from spark_dynamic.changes.consumption import Consumption
from spark_dynamic.changes.definition import as_it_is_now
from spark_dynamic.changes.kept_consumptions import CONSUMPTIONS_TABLE, kept_consumption
from spark_dynamic.changes.point import OtherPosition
from spark_dynamic.changes.read import Position
from spark_dynamic.changes.stream import Stream, read_stream
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter


class StreamPositions:
    """Looks streams and consumers of the project up."""

    def __init__(self, adapter: "SparkDynamicAdapter", tables: DynamicTables) -> None:
        self._adapter = adapter
        self._tables = tables

    @property
    def table(self) -> TableName:
        """The table of consumptions, beside the state table."""
        return self._tables.state.table.sibling(CONSUMPTIONS_TABLE)

    @property
    def manifest(self) -> Any:
        """All nodes of the project."""
        # dbt gives every adapter its manifest, as the place to look for macros.
        return self._adapter._macro_resolver

    def kept(self, warehouse: Warehouse) -> Callable[[TableName], Consumption | None]:
        """Return how to look a consumer up in the table of consumptions."""
        return lambda consumer: kept_consumption(warehouse, self.table, consumer)

    def streams(self, name: str | None = None) -> list[Any]:
        """Return the streams of the project, or the one of that name."""
        found = [n for n in self.manifest.nodes.values() if is_stream(n) and n.config.enabled]
        return named(found, name, f"no model with materialized='{STREAM}'")

    def consumers(self, name: str | None = None) -> list[Consuming]:
        """Return the consumers of the project with their streams, or the one of that name."""
        found = {one.node.unique_id: one for one in consumers(self.manifest)}
        nodes = named([one.node for one in found.values()], name, "no model that calls stream()")
        return [found[node.unique_id] for node in nodes]

    def stream(self, node: Any, warehouse: Warehouse) -> Stream:
        """Return a stream as it was built last."""
        found = read_stream(warehouse, relation_of(node))
        if found is None:
            raise EngineError(
                "STREAM_NOT_BUILT", f"The stream {relation_of(node)} was not built yet."
            )
        return found

    def stream_now(self, node: Any, cycle: Cycle, warehouse: Warehouse) -> Stream:
        """Return a stream as its next consumer will see it."""
        found = self.stream(node, warehouse)
        return as_it_is_now(found, result_settings(self._adapter), cycle, warehouse)

    def consumer(self, node: Any, warehouse: Warehouse, anyhow: bool = False) -> Consumer:
        """Return what is there of a consumer; `anyhow`: also if its position is lost."""
        holds_last_batch = node.config.materialized == "table"
        request = ConsumerRequest(node.unique_id, relation_of(node), version, holds_last_batch)
        try:
            return read_consumer(request, warehouse, self.kept(warehouse))
        except EngineError as error:
            if not anyhow or error.code != "STREAM_POSITION_LOST":
                raise
            anew = replace(request, full_refresh=True)
            return read_consumer(anew, warehouse, self.kept(warehouse))

    def places(self, warehouse: Warehouse) -> "KnownPlaces":
        """Return how to find what points name."""
        return KnownPlaces(self, warehouse)

    def stream_at(self, name: TableName) -> Any:
        """Return the stream of the project that has a view of that name, if any."""
        return next((node for node in self.streams() if relation_of(node) == name), None)

    def dynamic_table(self, name: str) -> TableName:
        """Return the view of a dynamic table, by the name of the model or its own."""
        if "." in name:
            return TableName.parse(name)
        found = [
            node
            for node in self.manifest.nodes.values()
            if str(node.resource_type) == "model" and node.config.materialized == MATERIALIZATION
        ]
        [node] = named(found, name, f"no model with materialized='{MATERIALIZATION}'")
        return relation_of(node)

    def of(self, point: OtherPosition, warehouse: Warehouse) -> Position:
        """Return the position of a stream, or of one of its consumers."""
        [node] = self.streams(point.stream)
        if point.consumer:
            [consumer] = self.consumers(point.consumer)
            record = self.consumer(consumer.node, warehouse).record
            taken = record.streams.get(node.unique_id) if record else None
            if taken is None:
                raise EngineError(
                    "STREAM_POINT",
                    f"{point.consumer} has not consumed {point.stream}, so it has no position.",
                )
            return taken.end
        start = self.stream(node, warehouse).start
        if start is None:
            raise EngineError(
                "STREAM_POINT",
                f"{point.stream} starts before the first change, which is no position to share.",
            )
        return start


@dataclass(frozen=True)
class KnownPlaces:
    """The places of a project that points can name, over one connection."""

    positions: StreamPositions
    warehouse: Warehouse

    def position(self, point: OtherPosition) -> Position:
        """Return the position of a stream, or of one of its consumers."""
        return self.positions.of(point, self.warehouse)

    def dynamic_table(self, name: str) -> TableName:
        """Return the view of a dynamic table."""
        return self.positions.dynamic_table(name)


def named(nodes: list[Any], name: str | None, otherwise: str) -> list[Any]:
    """Return all nodes in a fixed order, or the one that a name means: short, or with a dot."""
    if name is None:
        return sorted(nodes, key=lambda node: str(node.unique_id))
    found = named_model(nodes, name)
    if found is None:
        known = ", ".join(sorted(node.name for node in nodes)) or "none"
        raise DbtRuntimeError(f"MODEL_UNKNOWN: '{name}' is {otherwise}. Expected one of: {known}.")
    return [found]
