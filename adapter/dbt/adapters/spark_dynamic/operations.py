"""Operations on dynamic tables: verify, explain, and what a run would do."""

from collections.abc import Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, Final

import agate
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.errors import reported
from dbt.adapters.spark_dynamic.forecast import Forecast, Foreseen, nodes_of
from dbt.adapters.spark_dynamic.named_models import named_model, relation_of
from dbt.adapters.spark_dynamic.requests import request_for
from dbt.adapters.spark_dynamic.run_schedule import RunSchedule
from spark_dynamic.changes.layout import shapes
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.explain import Line, explain_refresh, explain_windows
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.verify import verify
from spark_dynamic.warehouse import Warehouse

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter

Rows = Sequence[Sequence[Any]]
# Errors about what is read, which a run may have written by then.
_ABOUT_SOURCES: Final = ("SOURCE_MISSING", "STREAM_NOT_BUILT", "NO_COMMON_POINT")


class Operations:
    """What `dbt run-operation` can ask about models of the project."""

    def __init__(self, adapter: "SparkDynamicAdapter", tables: DynamicTables) -> None:
        self._adapter = adapter
        self._tables = tables

    def verify(self, model: str) -> agate.Table:
        """Return the differing rows: where they are, how many copies, and their values."""
        cycle, warehouse = self._tables.look()
        with reported():
            request = self._request(self._node(model))
            found = verify(request, cycle, warehouse)
            for window in self._tables.windows.of(request).requests():
                # What the model was computed from has to be right, too.
                found = found if found.differing else verify(window, cycle, warehouse)
        rows = [
            ["only in the table" if copies > 0 else "only in the query", abs(copies), *values]
            for copies, values in found.differing
        ]
        return text_table(["side", "copies", *found.columns], rows)

    def explain(self, model: str) -> agate.Table:
        """Return what a refresh of one model would do, or how it reads changes, line by line."""
        text = self._changes_in(model)
        if shapes(text):
            rows = [["changes", shape] for shape in shapes(text)]
            return text_table(["part", "text"], [*rows, ["sql", text]])
        cycle, warehouse = self._tables.look()
        with reported():
            request = self._request(self._node(model))
            windows = self._tables.windows.of(request).plans(cycle, warehouse)
            lines = explain_windows(windows)
            if all(window.stored for window in windows):
                plan = plan_refresh(request, cycle, warehouse)
                lines = explain_refresh(plan, cycle, warehouse) + lines
            else:
                # What reads them cannot be looked at before they are there.
                lines.insert(0, Line("table", f"{request.view}: after its changes"))
        return text_table(["part", "text"], [[line.part, line.text] for line in lines])

    def forecast(self, select: Any, exclude: Any) -> agate.Table:
        """Return one line per dynamic table of a selection: what a run would do with it."""
        cycle, warehouse = self._tables.look()
        chosen = self._chosen(select, exclude)
        known = {node.unique_id: node for node in self._dynamic()}
        nodes = [known[unique_id] for unique_id in chosen if unique_id in known]
        schedule = self._tables.forecast(cycle, {self._relation(node) for node in nodes})

        def exists(unique_id: str) -> bool:
            name = relation_of(self._manifest.nodes[unique_id])
            return name.name in cycle.catalog.tables(warehouse, name)

        forecast = Forecast(nodes_of(self._manifest), chosen, exists)
        rows = []
        for node in nodes:
            planned = self._planned(node, schedule, cycle, warehouse)
            is_edited = schedule.situation.known_of(self._relation(node)).is_edited
            found = forecast.next(node.unique_id, planned, is_edited)
            rows.append([self._relation(node), found.action, found.why or "-"])
        return text_table(["table", "action", "reason"], rows)

    def _planned(
        self, node: Any, schedule: RunSchedule, cycle: Cycle, warehouse: Warehouse
    ) -> Foreseen:
        """Return what a refresh would do with a table if all that it reads stayed as it is."""
        try:
            request = self._request(node)
            held = schedule.held(request)
            if held is not None:
                action, _, detail = held._message.partition(" ")
                return Foreseen(action, held.reason or detail, is_certain=True)
            request = replace(request, decided_at=schedule.data_timestamp(request))
            windows = self._tables.windows.of(request).plans(cycle, warehouse)
            if any(window.decision.writes for window in windows):
                return Foreseen("DEPENDS", "on the changes that it keeps")
            plan = plan_refresh(request, cycle, warehouse)
        except (EngineError, WarehouseError, DbtRuntimeError) as error:
            return _failed(error)
        decision = plan.decision
        if decision.action == "WAITING":
            waits_for = frozenset(decision.detail.split(", "))
            return Foreseen("WAITING", f"for {decision.detail}", waits_for=waits_for)
        return Foreseen(decision.action, str(decision.reason), moves_record=plan.moves_record)

    @property
    def _manifest(self) -> Any:
        # dbt gives every adapter its manifest, as the place to look for macros.
        return self._adapter._macro_resolver

    def _node(self, model: str) -> Any:
        found = named_model(self._dynamic(), model)
        if found is None:
            known = ", ".join(sorted(node.name for node in self._dynamic())) or "none"
            raise DbtRuntimeError(
                f"MODEL_UNKNOWN: '{model}' is no dynamic table of this project. "
                f"Expected one of: {known}."
            )
        return found

    def _changes_in(self, model: str) -> str:
        """Return the compiled text of a model that is no dynamic table; "" if there is none."""
        models = (n for n in self._manifest.nodes.values() if n.resource_type == "model")
        node = named_model(models, model)
        if node is None or node in self._dynamic():
            return ""
        return self._compiled(node).compiled_code or ""

    def _dynamic(self) -> list[Any]:
        return [
            node
            for node in self._manifest.nodes.values()
            if node.resource_type == "model" and node.config.get("materialized") == "dynamic_table"
        ]

    def _chosen(self, select: Any, exclude: Any) -> list[str]:
        """Return the unique ids of what a selection builds, upstreams first."""
        from dbt.artifacts.resources.types import NodeType
        from dbt.compilation import Compiler
        from dbt.graph.cli import parse_difference
        from dbt.graph.selector import ResourceTypeSelector

        graph = Compiler(self._adapter.config).compile(self._manifest, write=False)
        spec = parse_difference(as_list(select), as_list(exclude))
        builds = [NodeType.Model, NodeType.Seed, NodeType.Snapshot]
        selector = ResourceTypeSelector(graph, self._manifest, None, builds)
        chosen = selector.get_selected(spec)
        above = {id: graph.graph.predecessors(id) for id in graph.nodes()}
        return [str(id) for id in TopologicalSorter(above).static_order() if id in chosen]

    def _relation(self, node: Any) -> str:
        return str(relation_of(node))

    def _request(self, node: Any) -> Request:
        compiled = self._compiled(node)
        relation = self._adapter.Relation.create_from(self._adapter.config, compiled)
        text = compiled.compiled_code or ""
        return request_for(self._adapter, compiled.to_dict(), relation, text, False)

    def _compiled(self, node: Any) -> Any:
        """Compile a model as `dbt run` would."""
        from dbt.compilation import Compiler

        compiler: Any = Compiler(self._adapter.config)
        return compiler.compile_node(node, self._manifest, {}, write=False)


def as_list(value: Any) -> list[str] | None:
    """Return a list, whether one name was given or several; None if none was."""
    if not value:
        return None
    return [value] if isinstance(value, str) else list(value)


def text_table(names: list[str], rows: Rows) -> agate.Table:
    """Return a table of texts; numbers of copies stay numbers."""
    texts = [[None if value is None else str(value) for value in row] for row in rows]
    # An empty text is no NULL, nor is one that says so.
    return agate.Table(texts, names, [agate.Text(cast_nulls=False)] * len(names))


def _failed(error: EngineError | WarehouseError | DbtRuntimeError) -> Foreseen:
    """Return that a refresh would fail, as things are now."""
    text = error.report if isinstance(error, WarehouseError) else str(error)
    if isinstance(error, DbtRuntimeError):
        # Without the headline that dbt puts in front.
        text = str(error.msg)
    first = text.strip().partition("\n")[0]
    is_sparks = isinstance(error, WarehouseError | DbtDatabaseError)
    may_pass = is_sparks or first.partition(":")[0] in _ABOUT_SOURCES
    return Foreseen("ERROR", first, may_pass=may_pass)
