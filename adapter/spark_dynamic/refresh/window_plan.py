"""The plan of one refresh of a window of changes."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from spark_dynamic.apply.slide import Slide, stored_ages
from spark_dynamic.changes.question import not_known
from spark_dynamic.changes.window_log import Log, WindowLog
from spark_dynamic.clock import from_micros
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.cut import Cut
from spark_dynamic.frontier.record import Record
from spark_dynamic.refresh.analyse import Analysis, always_full, analyse, judge
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.decide import Findings, decide
from spark_dynamic.refresh.plan import (
    Plan,
    changes_in_place,
    config_changes_since,
    has_moved,
    is_covered,
    with_query,
)
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.stored import Stored, find_stored
from spark_dynamic.refresh.validity import why_invalid
from spark_dynamic.support import Reason
from spark_dynamic.warehouse import Warehouse

# Why changes do not simply follow those that are stored: the window is then built anew.
_NOT_CONTINUED: Final = (
    "CHANGES_OUT_OF_ORDER", "COLUMNS_CHANGED", "HISTORY_LOST", "SOURCE_REPLACED",
    "UPSTREAM_REBUILT",
)  # fmt: skip


def plan_window(request: Request, cut: Cut, cycle: Cycle, warehouse: Warehouse) -> Plan:
    """Plan the refresh of a window at a cut, which was chosen together with its reader's."""
    assert request.window is not None
    stored = find_stored(request.view, cycle, warehouse)
    record = stored.tail.newest.record if stored and stored.tail.newest else None
    analysis = analyse(request, cycle, warehouse)
    cut = _part_of(cut, analysis)
    verdict = judge(request, analysis, record.verdict if record else None, cycle, warehouse)
    # Whoever reads the text of a change query asks for it there.
    cycle.verdicts[analysis.text_hash] = verdict
    refusal = always_full(analysis, verdict)
    if refusal is not None or analysis.query is None:
        raise not_known(refusal)
    log = WindowLog(request.window, analysis, cut, cycle, warehouse)
    invalid = why_invalid(request, stored, analysis, lambda _: False, cycle, warehouse)
    config_changes = config_changes_since(record, request)
    slide, changed = Slide(log.oldest), tuple[str, ...]()
    is_behind = record is not None and (
        cut.data_timestamp < record.data_timestamp or is_covered(cut, record, cycle, warehouse)
    )
    is_kept = not (invalid or config_changes or request.full_refresh or is_behind)
    if record is not None and stored is not None and is_kept:
        try:
            slide = _slide(log, stored, record, cut, warehouse)
        except EngineError as error:
            if error.code not in _NOT_CONTINUED:
                raise
            invalid = Reason(error.code, error.sentence)
        named = {"new changes": slide.added, "changes that are too old": slide.ages}
        changed = tuple(name for name, is_there in named.items() if is_there)
    findings = Findings(
        is_stored=stored is not None,
        full_refresh=request.full_refresh,
        full_refresh_forbidden=request.full_refresh_forbidden,
        invalid=invalid,
        config_changes=config_changes,
        changes_in_place=changes_in_place(request, cycle, warehouse) if record else (),
        is_covered=is_behind,
        changed_sources=changed,
    )
    plan = Plan(
        request,
        decide(findings, request.config),
        analysis,
        verdict,
        stored,
        cut,
        columns=record.columns if record else (),
        generation=stored.generation if stored else 1,
        slide=slide,
    )
    if plan.decision.action in ("FULL", "REINITIALIZE"):
        whole = log.whole()
        rebuilt = replace(plan, slide=replace(slide, holds_until=_until(whole, request)))
        return with_query(rebuilt, whole.select, warehouse)
    if plan.decision.action == "NO_DATA" and record is not None:
        moves = has_moved(record, cut, request.config.history_retention, cycle, warehouse)
        return replace(plan, moves_record=moves)
    return plan


def _part_of(cut: Cut, analysis: Analysis) -> Cut:
    """Return what a cut says about the sources of one query, down to base tables."""
    storages = {upstream.storage for upstream in analysis.upstreams}
    upstreams = {table: taken for table, taken in cut.upstreams.items() if table in storages}
    behind = {pin.table for taken in upstreams.values() for pin in taken.record.frontier}
    wanted = behind | set(analysis.bases)
    pins = {table: pin for table, pin in cut.pins.items() if table in wanted}
    return replace(cut, pins=pins, upstreams=upstreams)


def _slide(
    log: WindowLog, stored: Stored, record: Record, cut: Cut, warehouse: Warehouse
) -> Slide:
    """Find out what comes and what goes, and until when the window then stays as it is."""
    found = log.since(record)
    until, ages = record.clock_until, False
    interval = cut.data_timestamp - log.oldest
    if not record.holds_at(cut.data_timestamp):
        [row] = warehouse.rows(stored_ages(stored.storage, stored.version, log.oldest))
        ages = int(row["aged"]) > 0
        until = None if row["next"] is None else from_micros(int(row["next"])) + interval
    moments = [moment for moment in (until, found.first and found.first + interval) if moment]
    return Slide(
        oldest=log.oldest,
        added=found.select if found.first else "",
        ages=ages,
        holds_until=min(moments, default=None),
    )


def _until(log: Log, request: Request) -> datetime | None:
    assert request.window is not None
    return log.first + request.window.interval if log.first else None
