"""The windows of changes that a model reads: brought to one cut before the model itself."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from spark_dynamic.apply.storage import generations, storage_name
from spark_dynamic.changes.window import Window, windows_named
from spark_dynamic.config import DynamicTableConfig
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.cut import Cut, Waiting
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import analyse
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.run import Outcome, run_plan
from spark_dynamic.refresh.stored import find_stored
from spark_dynamic.refresh.window_plan import plan_window
from spark_dynamic.sql.pin import MODEL_PROPERTY
from spark_dynamic.sql.references import Unreadable, find_references
from spark_dynamic.warehouse import Warehouse


@dataclass(frozen=True)
class Windows:
    """The windows of one model."""

    request: Request
    windows: tuple[Window, ...]

    def plans(self, cycle: Cycle, warehouse: Warehouse) -> list[Plan]:
        """Return what a refresh of each window would do; nothing if they have to wait."""
        cut = self._cut(cycle, warehouse)
        return [plan_window(r, cut, cycle, warehouse) for r in self.requests()] if cut else []

    def refresh(self, cycle: Cycle, warehouse: Warehouse) -> Iterator[Outcome]:
        """Refresh the windows one by one; nothing happens if they have to wait."""
        cut = self._cut(cycle, warehouse)
        if cut is None:
            return

        def plan(request: Request, cycle: Cycle, warehouse: Warehouse) -> Plan:
            return plan_window(request, cut, cycle, warehouse)

        for request in self.requests():
            yield run_plan(plan(request, cycle, warehouse), cycle, warehouse, plan)

    def requests(self) -> Iterator[Request]:
        """Yield what is asked of each window."""
        for window in self.windows:
            yield window_request(self.request, window)

    def _cut(self, cycle: Cycle, warehouse: Warehouse) -> Cut | None:
        """Choose the cut for the windows and for all that the model reads beside them.

        A window at a newer cut than the model's other sources could not be read with them.
        """
        request = self.request
        if not self.windows:
            return None
        analysis = analyse(replace(request, sql=self._all_sources()), cycle, warehouse)
        cut = cycle.cut(warehouse, analysis.bases, analysis.upstreams, decided=request.decided_at)
        if isinstance(cut, Cut):
            return cut
        self._check_built(cut, cycle, warehouse)
        return None

    def _all_sources(self) -> str:
        """Return a text that reads what the windows read, and what the model reads beside them."""
        request = self.request
        own = {window.name_for(request.view) for window in self.windows}
        texts = [f"SELECT 1 FROM (\n{window.read.sql}\n)" for window in self.windows]
        try:
            references = find_references(request.sql, request.schema).tables
        except Unreadable:
            # It cannot be pinned to any cut, so it runs as it is.
            references = ()
        beside = sorted({reference.table for reference in references} - own, key=str)
        return "\nUNION ALL\n".join([*texts, *(f"SELECT 1 FROM {table.sql}" for table in beside)])

    def _check_built(self, waiting: Waiting, cycle: Cycle, warehouse: Warehouse) -> None:
        """Refuse to go on without windows: the model could not be read."""
        for request in self.requests():
            if find_stored(request.view, cycle, warehouse) is None:
                names = ", ".join(map(str, waiting.upstreams))
                raise EngineError(
                    "NO_COMMON_POINT",
                    f"The changes that {self.request.view} keeps cannot be read together with "
                    f"{names}, which has no refresh that is valid now. Refresh it first.",
                )


def window_request(request: Request, window: Window) -> Request:
    """Return what is asked of a window, as a part of what is asked of its model."""
    config = request.config
    return replace(
        request,
        view=window.name_for(request.view),
        sql=window.read.sql,
        config=DynamicTableConfig(
            history_retention=config.history_retention, location_root=config.location_root
        ),
        comment=None,
        column_comments={},
        constraints=(),
        window=window,
    )


def drop_unread(
    request: Request, windows: Iterable[Window], cycle: Cycle, warehouse: Warehouse
) -> Sequence[str]:
    """Drop the windows of a model's former definitions; return the statements that did."""
    read = {window.name_for(request.view) for window in windows}
    existing = cycle.catalog.tables(warehouse, request.view)
    statements = []
    for view in windows_named(request.view, existing):
        if view in read:
            continue
        storages = [storage_name(view, number) for number in generations(view, existing)]
        # The view last: while it is there, a run that was stopped here finds what is left.
        for name in (*storages, view):
            if statement := _drop(name, request.model, cycle, warehouse):
                statements.append(statement)
    return statements


def _drop(name: TableName, model: str, cycle: Cycle, warehouse: Warehouse) -> str:
    relation = cycle.catalog.relation(warehouse, name)
    if relation is None or not relation.has_property(MODEL_PROPERTY, model):
        return ""
    kind = "TABLE" if relation.view is None else "VIEW"
    statement = f"DROP {kind} {name.sql}"
    warehouse.execute(statement)
    cycle.catalog.forget(name)
    return statement
