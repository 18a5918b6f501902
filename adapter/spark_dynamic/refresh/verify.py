"""Is a dynamic table equal to its query? The query runs at the recorded cut, and rows compare.

Equal means equal as bags; `Comparison` says when two rows are equal.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from spark_dynamic.apply.groups import VISIBLE
from spark_dynamic.apply.slide import is_younger, younger
from spark_dynamic.apply.storage import view_query
from spark_dynamic.changes.asked import AT_LEAST, Mode
from spark_dynamic.changes.upstream_keys import recorded_keys
from spark_dynamic.changes.window import Window
from spark_dynamic.changes.window_log import WindowLog
from spark_dynamic.changes.window_net import WindowNet
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.frontier.cut import Cut
from spark_dynamic.frontier.record import Record, Recorded
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis, always_full, analyse, is_pinned
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.difference import Comparison
from spark_dynamic.refresh.failures import faults_reported
from spark_dynamic.refresh.maintenance import Maintenance, maintain
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.sources import seen
from spark_dynamic.refresh.stored import find_stored
from spark_dynamic.sql.pin import pinned
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Warehouse

_MOST = 10_000


@dataclass(frozen=True)
class Verification:
    """The rows in which a table and its query differ; copies are negative if rows lack."""

    columns: tuple[str, ...]
    differing: tuple[tuple[int, tuple[Any, ...]], ...]
    data_timestamp: datetime

    @property
    def is_equal(self) -> bool:
        """Tell whether there is no difference."""
        return not self.differing


def verify(
    request: Request, cycle: Cycle, warehouse: Warehouse, maintenance: Maintenance | None = None
) -> Verification:
    """Compare a dynamic table with its query at the recorded cut.

    `maintenance` is how the query is maintained, if that is known already.
    """
    with faults_reported(warehouse) as own:
        return _verify(request, cycle, own, maintenance)


def _verify(
    request: Request, cycle: Cycle, warehouse: Warehouse, maintenance: Maintenance | None
) -> Verification:
    stored = find_stored(request.view, cycle, warehouse)
    if stored is None or stored.tail.newest is None:
        raise EngineError("NOT_BUILT", f"{request.view} was not built yet, or left no record.")
    record = stored.tail.newest.record
    analysis = analyse(request, cycle, warehouse)
    if record.text_hash != analysis.text_hash:
        raise EngineError(
            "DEFINITION_CHANGED",
            f"{request.view} has another query than at its last refresh. Run it first.",
        )
    if analysis.query is None or not is_pinned(analysis, record.verdict):
        raise EngineError(
            "NOT_REPEATABLE",
            f"The query of {request.view} cannot be run as it was: its sources have no versions, "
            "or it calls a random function, or a clock in a way that cannot be written down.",
        )
    versions: dict[TableName, int] = {}
    if request.window is None:
        versions = _versions(record, analysis, cycle, warehouse)
        clock = record.clock if record.verdict.at_clock else None
        query = pinned(analysis.query, versions, clock)
        condition = VISIBLE if record.state.get("filtered") else ""
    else:
        query, condition = _kept_changes(request.window, record, analysis, cycle, warehouse)
    shown = view_query(record.columns, stored.storage, condition, stored.version)
    # Most often nothing differs, and then it does not matter how much rounding explains.
    comparison = Comparison(record.columns, scale=0.0)
    rows = _compared(comparison, shown, query, warehouse)
    if rows:
        if maintenance is None and versions:
            maintenance = _maintenance(request, record, analysis, versions, warehouse)
        allowed = maintenance.rounding(versions) if maintenance else None
        comparison = Comparison(record.columns, 0.0 if maintenance else 1.0, allowed)
        if comparison.inexact:
            try:
                rows = _compared(comparison, shown, query, warehouse)
            except WarehouseError:
                # A sum that is moved a little may be one that nothing can be divided by.
                comparison = Comparison(record.columns)
                rows = _compared(comparison, shown, query, warehouse)
    if len(rows) > _MOST:
        raise EngineError("TOO_MANY_DIFFERENCES", f"More than {_MOST} rows differ.")
    names = tuple(column.name for column in record.columns)
    differing = tuple((row.copies, row.values) for row in comparison.differing(rows))
    return Verification(names, differing, record.data_timestamp)


def _compared(
    comparison: Comparison, shown: str, query: str, warehouse: Warehouse
) -> list[dict[str, Any]]:
    return warehouse.rows(f"{comparison.query(shown, query)} LIMIT {_MOST + 1}")


def _maintenance(
    request: Request,
    record: Record,
    analysis: Analysis,
    versions: dict[TableName, int],
    warehouse: Warehouse,
) -> Maintenance | None:
    """Return how the query of a table could be maintained, if it could."""
    if always_full(analysis, record.verdict) is not None:
        return None
    try:
        return maintain(analysis, record.verdict, request.schema, versions, warehouse)
    except (NotIncremental, WarehouseError):
        return None


def _kept_changes(
    window: Window, record: Record, analysis: Analysis, cycle: Cycle, warehouse: Warehouse
) -> tuple[str, str]:
    """Return what a window should hold, as far as histories still tell, and which rows that is."""
    pins = {pin.table: pin for pin in record.frontier}
    cut = Cut(record.data_timestamp, pins, _upstreams(record, analysis, cycle, warehouse))
    window = replace(window, read=replace(window.read, upstream_keys=recorded_keys(record)))
    if window.read.mode is not Mode.REDO_LOG:
        return WindowNet(window, analysis, cut, cycle, warehouse).whole_of(record), ""
    # Since the refresh, history has become shorter.
    log = WindowLog(replace(window, bound=AT_LEAST), analysis, cut, cycle, warehouse)
    whole = log.whole()
    return younger(whole.select, whole.since), is_younger(whole.since)


def _versions(
    record: Record, analysis: Analysis, cycle: Cycle, warehouse: Warehouse
) -> dict[TableName, int]:
    versions = {pin.table: pin.version for pin in record.frontier if pin.table in analysis.bases}
    taken = _upstreams(record, analysis, cycle, warehouse)
    return versions | {table: recorded.commit.version for table, recorded in taken.items()}


def _upstreams(
    record: Record, analysis: Analysis, cycle: Cycle, warehouse: Warehouse
) -> dict[TableName, Recorded]:
    """Return the refreshes of other dynamic tables that a record was made from."""
    found = {}
    for upstream in analysis.upstreams:
        then = seen(record, upstream, cycle, warehouse)
        if then is None or then.table != upstream.storage:
            raise EngineError(
                "HISTORY_LOST",
                f"{upstream.view} was built anew since the last refresh of {record.model}. "
                "Refresh it first.",
            )
        found[upstream.storage] = then.recorded
    return found
