"""The plan of one refresh of a window of changes."""

from dataclasses import replace
from typing import Final

from spark_dynamic.apply.net_slide import NetSlide
from spark_dynamic.apply.slide import Slide, stored_ages
from spark_dynamic.changes.asked import Mode
from spark_dynamic.changes.question import not_known
from spark_dynamic.changes.upstream_keys import recorded_keys, with_upstream_keys, written_keys
from spark_dynamic.changes.window import Window
from spark_dynamic.changes.window_log import WindowLog
from spark_dynamic.changes.window_net import WindowNet
from spark_dynamic.clock import from_micros, stamp
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.cut import Cut
from spark_dynamic.frontier.record import Record
from spark_dynamic.refresh.analyse import Analysis, always_full, analyse, judge
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.decide import Findings, decide
from spark_dynamic.refresh.failures import faults_reported
from spark_dynamic.refresh.plan import (
    Plan,
    changes_in_place,
    config_changes_since,
    with_query,
)
from spark_dynamic.refresh.record_moves import has_moved, is_covered
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.stored import Stored, find_stored
from spark_dynamic.refresh.validity import why_invalid
from spark_dynamic.support import Reason, reason
from spark_dynamic.warehouse import Warehouse

# Why changes do not simply follow those that are stored: the window is then built anew.
_NOT_CONTINUED: Final = (
    "CHANGES_OUT_OF_ORDER", "COLUMNS_CHANGED", "HISTORY_LOST", "SOURCE_REPLACED",
    "UPSTREAM_REBUILT",
)  # fmt: skip


def plan_window(request: Request, cut: Cut, cycle: Cycle, warehouse: Warehouse) -> Plan:
    """Plan the refresh of a window at a cut, which was chosen together with its reader's."""
    with faults_reported(warehouse) as own:
        return _plan(request, cut, cycle, own)


def _plan(request: Request, cut: Cut, cycle: Cycle, warehouse: Warehouse) -> Plan:
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
    window = _with_keys(request.window, cycle, warehouse)
    keys = {"keys": written_keys(window.read)}
    kept = _Kept(window, analysis, cut, cycle, warehouse)
    invalid = why_invalid(request, stored, analysis, lambda _: False, cycle, warehouse)
    config_changes = config_changes_since(record, request)
    if record is not None and recorded_keys(record) != window.read.upstream_keys:
        invalid = invalid or reason("ROW_KEYS_CHANGED", _both(record, window))
    slide, changed = kept.unmoved(), tuple[str, ...]()
    is_behind = False
    if record is not None:
        is_ahead = cycle.is_ahead(warehouse, record.data_timestamp)
        if is_ahead:
            # Changes have left it that are not too old yet.
            invalid = invalid or reason("CLOCK_AHEAD", stamp(record.data_timestamp))
        is_behind = cut.data_timestamp < record.data_timestamp and not is_ahead
        is_behind = is_behind or is_covered(cut, record, cycle, warehouse)
    is_kept = not (invalid or config_changes or request.full_refresh or is_behind)
    if record is not None and stored is not None and is_kept:
        try:
            slide = kept.slide(record, stored)
        except EngineError as error:
            if error.code not in _NOT_CONTINUED:
                raise
            invalid = Reason(error.code, error.sentence, error.remedy)
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
        slide=replace(slide, facts=slide.facts | keys),
    )
    if plan.decision.action in ("FULL", "REINITIALIZE"):
        select, slide = kept.whole()
        rebuilt = replace(plan, slide=replace(slide, facts=slide.facts | keys))
        return with_query(rebuilt, select, warehouse)
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


class _Kept:
    """What a window holds at a cut, in its mode."""

    def __init__(
        self, window: Window, analysis: Analysis, cut: Cut, cycle: Cycle, warehouse: Warehouse
    ) -> None:
        self._interval = window.interval
        self._moment = cut.data_timestamp
        self._warehouse = warehouse
        of_mode = WindowLog if window.read.mode is Mode.REDO_LOG else WindowNet
        self._changes = of_mode(window, analysis, cut, cycle, warehouse)

    def unmoved(self) -> Slide | NetSlide:
        """Return the slide of a window that is left as it is."""
        is_log = isinstance(self._changes, WindowLog)
        return Slide(self._changes.oldest) if is_log else NetSlide()

    def whole(self) -> tuple[str, Slide | NetSlide]:
        """Return all that it holds."""
        if isinstance(self._changes, WindowNet):
            return self._changes.whole()
        log = self._changes.whole()
        until = log.first + self._interval if log.first else None
        return log.select, Slide(self._changes.oldest, holds_until=until)

    def slide(self, record: Record, stored: Stored) -> Slide | NetSlide:
        """Find out what comes and what goes, and until when the window then stays as it is."""
        if isinstance(self._changes, WindowNet):
            return self._changes.slide(record, stored)
        oldest = self._changes.oldest
        found = self._changes.since(record)
        until, ages = record.clock_until, False
        if not record.holds_at(self._moment):
            [row] = self._warehouse.rows(stored_ages(stored.storage, stored.version, oldest))
            ages = int(row["aged"]) > 0
            next = row["next"]
            until = None if next is None else from_micros(int(next)) + self._interval
        moments = [until, found.first and found.first + self._interval]
        return Slide(
            oldest=oldest,
            added=found.select if found.first else "",
            ages=ages,
            holds_until=min((moment for moment in moments if moment), default=None),
        )


def _with_keys(window: Window, cycle: Cycle, warehouse: Warehouse) -> Window:
    """Let the declared keys of dynamic tables name the rows, as they are by now."""
    read = replace(window.read, upstream_keys={})
    return replace(window, read=with_upstream_keys(read, cycle, warehouse))


def _both(record: Record, window: Window) -> str:
    then, now = recorded_keys(record), window.read.upstream_keys
    shown = [
        ", ".join(f"{view} ({', '.join(key)})" for view, key in sorted(keys.items(), key=str))
        for keys in (then, now)
    ]
    return f"{shown[0] or 'none'} then, {shown[1] or 'none'} now"
