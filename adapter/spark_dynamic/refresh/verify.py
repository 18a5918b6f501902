"""Is a dynamic table equal to its query? The query runs at the recorded cut, and rows compare.

Equal means equal as bags; `difference` says when two rows are equal.
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
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.cut import Cut
from spark_dynamic.frontier.record import Record, Recorded
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis, analyse, is_pinned
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.difference import COPIES, beyond_tolerance, differing_rows
from spark_dynamic.refresh.failures import faults_reported
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.sources import seen
from spark_dynamic.refresh.stored import find_stored
from spark_dynamic.sql.pin import pinned
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


def verify(request: Request, cycle: Cycle, warehouse: Warehouse) -> Verification:
    """Compare a dynamic table with its query at the recorded cut."""
    with faults_reported(warehouse) as own:
        return _verify(request, cycle, own)


def _verify(request: Request, cycle: Cycle, warehouse: Warehouse) -> Verification:
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
    if request.window is None:
        versions = _versions(record, analysis, cycle, warehouse)
        clock = record.clock if record.verdict.at_clock else None
        query = pinned(analysis.query, versions, clock)
        condition = VISIBLE if record.state.get("filtered") else ""
    else:
        query, condition = _kept_changes(request.window, record, analysis, cycle, warehouse)
    shown = view_query(record.columns, stored.storage, condition, stored.version)
    rows = warehouse.rows(f"{differing_rows(shown, query, record.columns)} LIMIT {_MOST + 1}")
    if len(rows) > _MOST:
        raise EngineError("TOO_MANY_DIFFERENCES", f"More than {_MOST} rows differ.")
    names = tuple(column.name for column in record.columns)
    found = [(int(row[COPIES]), tuple(row[f"c{i}"] for i in range(len(names)))) for row in rows]
    differing = tuple(beyond_tolerance(found, record.columns))
    return Verification(names, differing, record.data_timestamp)


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
