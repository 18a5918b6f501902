"""The plan of one refresh: everything is asked, nothing is written."""

from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from spark_dynamic.apply.constraints import conditions_in_storage
from spark_dynamic.apply.groups import VISIBLE
from spark_dynamic.apply.net_slide import NetSlide
from spark_dynamic.apply.slide import Slide
from spark_dynamic.apply.storage import (
    check_columns,
    may_have_lengths,
    storage_facts,
    storage_name,
    stored_columns,
)
from spark_dynamic.apply.view import CONFIG_PROPERTY, has_applied, has_constraints
from spark_dynamic.catalog import describe_query
from spark_dynamic.config import RefreshMode
from spark_dynamic.frontier.cut import Cut, Waiting
from spark_dynamic.frontier.record import Record, StoredColumn, Verdict
from spark_dynamic.names import TableName
from spark_dynamic.refresh.altered import has_foreign_constraint
from spark_dynamic.refresh.analyse import Analysis, always_full, analyse, is_pinned, judge
from spark_dynamic.refresh.cost import (
    cheaper_changes,
    cheaper_full,
    is_inserts_only,
    slower_so_far,
)
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.decide import Decision, Findings, decide, unasked
from spark_dynamic.refresh.failures import failure, faults_reported, watched
from spark_dynamic.refresh.maintenance import Maintenance
from spark_dynamic.refresh.record_moves import changed_sources, has_moved, is_covered
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.sources import intervals
from spark_dynamic.refresh.stored import Stored, find_stored
from spark_dynamic.refresh.upkeep import Upkeep
from spark_dynamic.refresh.validity import why_invalid
from spark_dynamic.schedule.remembered import Remembered
from spark_dynamic.sql.guard import explain
from spark_dynamic.sql.pin import pinned
from spark_dynamic.support import NONE, Reason, reason
from spark_dynamic.warehouse import Warehouse

_INSTANT = timedelta(microseconds=1)
# Why changes cannot be applied to the table as it is, though they could be to a new one.
_ABOUT_WHAT_IS_STORED = ("STORAGE_FORM", "UPSTREAM_REBUILT")


@dataclass(frozen=True)
class Plan:
    """What a refresh will do."""

    request: Request
    decision: Decision
    analysis: Analysis
    verdict: Verdict
    stored: Stored | None
    cut: Cut | None
    query: str = ""
    columns: tuple[StoredColumn, ...] = ()
    generation: int = 1
    moves_record: bool = False
    # The delta was computed, and nothing was left of it.
    has_empty_delta: bool = False
    maintenance: Maintenance | None = None
    # The fingerprint that is not to be trusted any more.
    distrusted: str = ""
    # How a window of changes moves; None for every other table.
    slide: Slide | NetSlide | None = None
    # The storage in use does not have the constraints of the contract, or has others.
    changes_constraints: bool = False
    # The tables that a text reads which is not pinned, as Spark tells them.
    unpinned: Set[TableName] = frozenset()

    @property
    def state(self) -> dict[str, Any]:
        """The form of the storage: as it will be after a rebuild, or as it is."""
        if self.decision.action in ("FULL", "REINITIALIZE"):
            return self.maintenance.state if self.maintenance else {}
        return self.record.state if self.record else {}

    @property
    def condition(self) -> str:
        """What the view shows of the storage, if not all."""
        return VISIBLE if self.state.get("filtered") else ""

    @property
    def record(self) -> Record | None:
        """The newest record, if there is one."""
        return self.stored.tail.newest.record if self.stored and self.stored.tail.newest else None

    @property
    def storage(self) -> TableName:
        """The table that is written, or that was written last."""
        return storage_name(self.request.view, self.generation)

    @property
    def builds_generation(self) -> bool:
        """Tell whether a new table is made."""
        exists = self.stored is not None and self.generation in self.stored.all_generations
        return self.decision.writes and not exists


def plan_refresh(request: Request, cycle: Cycle, warehouse: Warehouse) -> Plan:
    """Plan the refresh of one dynamic table.

    Whatever fails in the engine on the way, the query can run as it is written.
    """
    own = watched(warehouse)
    try:
        return _plan(request, cycle, own)
    except Exception as error:
        return plan_as_written(request, failure(error, own), cycle, own)


def plan_as_written(request: Request, failed: str, cycle: Cycle, warehouse: Warehouse) -> Plan:
    """Plan a refresh without reading the query, which has failed: no version of a source is known.

    What is recorded is what is recorded of every text that cannot be pinned.
    """
    with faults_reported(warehouse) as own:
        return _plan(request, cycle, own, failed)


def _plan(request: Request, cycle: Cycle, warehouse: Warehouse, failed: str = "") -> Plan:
    stored = find_stored(request.view, cycle, warehouse)
    newest = stored.tail.newest if stored else None
    record = newest.record if newest else None
    if failed:
        analysis = Analysis.of_text(request.sql, failed)
    else:
        analysis = analyse(request, cycle, warehouse)
    view = cycle.catalog.relation(warehouse, request.view)
    storage = stored.storage if stored else storage_name(request.view, 1)
    changes_constraints = not has_constraints(view, storage, request.constraints) or (
        newest is not None
        and has_foreign_constraint(
            newest, cycle.catalog.history(warehouse, storage), request.constraints
        )
    )
    if request.leaves_no_state:
        decision = decide(Findings(leaves_no_state=True), request.config)
        plan = Plan(
            request,
            decision,
            analysis,
            Verdict(""),
            stored,
            None,
            generation=stored.generation if stored else 1,
            changes_constraints=changes_constraints,
        )
        return _with_query(plan, warehouse)
    if failed:
        verdict = Verdict("", code="PLANNING_FAILED", detail=failed)
    else:
        before = record.verdict if record else None
        verdict = judge(request, analysis, before, cycle, warehouse)
    # An explicit --full-refresh trusts the query again.
    distrusted = record.distrusted if record and not request.full_refresh else ""
    upkeep = Upkeep(request, analysis, verdict, distrusted, cycle, warehouse)
    invalid = None
    if not failed:
        # After a fault the table is rebuilt in any case.
        invalid = why_invalid(request, stored, analysis, upkeep.is_cosmetic, cycle, warehouse)
    config_changes = config_changes_since(record, request)
    after = record.data_timestamp if record else None
    if after and cycle.is_ahead(warehouse, after):
        # When it was really made is not known: only the cut of now is newer for certain.
        after = cycle.data_timestamp
    if after and (invalid or config_changes or request.full_refresh):
        # A rebuild at the table's own cut is right, too.
        after -= _INSTANT
    cut = _cut(request, analysis, verdict, after, record, cycle, warehouse)
    full = always_full(analysis, verdict)
    is_rebuilt_anyway = invalid or full or request.full_refresh
    # Comparing rows costs jobs: only where the answer decides.
    changed = (
        ()
        if is_rebuilt_anyway
        else changed_sources(analysis, verdict, record, cut, cycle, warehouse)
    )
    is_kept = record is not None and not is_rebuilt_anyway and not config_changes
    why_not, cheaper, why_changes = None, None, NONE
    if full is None and (not is_kept or changed) and isinstance(cut, Cut):
        why_not = upkeep.why_not(record if is_kept else None, cut)
        chooses = request.config.refresh_mode is RefreshMode.AUTO
        if is_kept and record is not None and why_not is None and chooses:
            changes = intervals(record, cut, analysis, cycle, warehouse)
            known = cycle.known.tables.get(str(request.view), Remembered()).known
            slower = slower_so_far(known, is_inserts_only(changes))
            cheaper = cheaper_full(changes, record, cycle, warehouse) or slower
            if cheaper is None:
                why_changes = cheaper_changes(changes, known, cycle, warehouse)
    follows = request.config.refresh_mode is not RefreshMode.FULL
    if follows and why_not is not None and why_not.code in _ABOUT_WHAT_IS_STORED:
        # Built anew, it can be refreshed incrementally from then on.
        invalid, why_not = why_not, None
    findings = Findings(
        is_stored=stored is not None,
        leaves_no_state=request.leaves_no_state,
        full_refresh=request.full_refresh,
        full_refresh_forbidden=request.full_refresh_forbidden,
        invalid=invalid,
        config_changes=config_changes,
        changes_in_place=changes_in_place(request, cycle, warehouse) if record else (),
        always_full=full,
        waiting_for=tuple(str(u) for u in cut.upstreams) if isinstance(cut, Waiting) else (),
        is_covered=is_covered(cut, record, cycle, warehouse),
        changed_sources=changed,
        not_incremental=why_not,
        cheaper_full=cheaper,
        cheaper_changes=why_changes,
    )
    decision = decide(findings, request.config)
    plan = Plan(
        request,
        decision,
        analysis,
        verdict,
        stored,
        cut if isinstance(cut, Cut) else None,
        columns=record.columns if record else (),
        generation=stored.generation if stored else 1,
        maintenance=upkeep.found,
        changes_constraints=changes_constraints,
    )
    if decision.action == "INCREMENTAL":
        return plan
    if decision.writes:
        return _with_query(plan, warehouse)
    if decision.action == "NO_DATA" and record and isinstance(cut, Cut):
        retention = request.config.history_retention
        moves = (
            record.text_hash != analysis.text_hash
            # From here on, a change of any setting is seen.
            or not record.names_all_settings
            or has_moved(record, cut, retention, cycle, warehouse)
        )
        return replace(plan, moves_record=moves)
    return plan


def _cut(
    request: Request,
    analysis: Analysis,
    verdict: Verdict,
    after: datetime | None,
    own: Record | None,
    cycle: Cycle,
    warehouse: Warehouse,
) -> Cut | Waiting:
    now, decided = cycle.data_timestamp, request.decided_at
    if not verdict.passed:
        wrong = tuple(u.view for u in analysis.upstreams if u.records[:1] != u.trusted[:1])
        return Waiting(wrong) if wrong else Cut(now, {}, {})
    if not is_pinned(analysis, verdict):
        # Part of it is read as it is now, which no older moment can be said to show.
        after, decided = now - _INSTANT, None
    bases, upstreams = analysis.bases, analysis.upstreams
    return cycle.cut(warehouse, bases, upstreams, after=after, own=own, decided=decided)


def config_changes_since(record: Record | None, request: Request) -> tuple[str, ...]:
    """Return what of the storage was configured otherwise."""
    if record is None:
        return ()
    now = storage_facts(request.config)
    return tuple(
        f"{key} was {record.storage.get(key) or 'unset'} and is {value or 'unset'}"
        for key, value in now.items()
        if record.storage.get(key) != value
    )


def changes_in_place(request: Request, cycle: Cycle, warehouse: Warehouse) -> tuple[str, ...]:
    """Return what the view does not know of yet; comments are no configuration."""
    view = cycle.catalog.relation(warehouse, request.view)
    if view is None or CONFIG_PROPERTY not in view.properties:
        return ()
    if has_applied(view, request.description.config_mark):
        return ()
    return ("clustered_by, unique_key, tblproperties or history_retention",)


def as_full(plan: Plan, why: Reason, warehouse: Warehouse, action: str = "FULL") -> Plan:
    """Return a plan that rebuilds what could not be refreshed incrementally."""
    forbidden = plan.request.full_refresh_forbidden
    decision = unasked(action, why, forbidden, plan.decision.warning)
    return _with_query(replace(plan, decision=decision, moves_record=False), warehouse)


def _with_query(plan: Plan, warehouse: Warehouse) -> Plan:
    """Complete a plan that writes: the text to run, its columns, the table to write to."""
    query = plan.request.sql
    if not plan.verdict.passed and not plan.request.leaves_no_state:
        # If Spark refuses the text, the statement fails as well; a fault of ours must not.
        with suppress(Exception):
            plan = replace(plan, unpinned=explain(warehouse, query).relations)
    if plan.verdict.passed and plan.cut and plan.analysis.query:
        clock = plan.cut.data_timestamp if plan.verdict.at_clock else None
        query = pinned(plan.analysis.query, plan.cut.versions(), clock)
    return with_query(plan, query, warehouse)


def with_query(plan: Plan, query: str, warehouse: Warehouse) -> Plan:
    """Complete a plan that writes what a text gives."""
    request, record = plan.request, plan.record
    columns = stored_columns(describe_query(warehouse, query))
    check_columns(request.config, columns)
    conditions_in_storage(request.constraints, columns)
    decision, generation = plan.decision, plan.generation
    if plan.stored is not None:
        state = plan.maintenance.state if plan.maintenance else {}
        fits = record is not None and columns == record.columns and not plan.stored.altered
        if fits and record is not None:
            # Who reads the rows from before an empty run reads them through the same view, which
            # would not hide any of them any more.
            is_empty = request.leaves_no_state
            fits = not record.state.get("filtered") if is_empty else state == record.state
        if fits and record is not None and not decision.warning:
            fits = not config_changes_since(record, request)
        has_lengths = record is not None and may_have_lengths(record.storage, record.columns)
        if not fits or plan.changes_constraints or has_lengths:
            # Old rows may not meet new constraints, nor new rows the old ones.
            generation = plan.stored.next_generation
        asked = decision.reason.code in ("REQUESTED", "EMPTY_RUN")
        if decision.action == "FULL" and not fits and record is not None and not asked:
            old = {column.name for column in record.columns}
            new = {column.name for column in columns}
            detail = ", ".join(sorted(old ^ new)) or "types or order"
            why = reason("COLUMNS_CHANGED", detail)
            if columns == record.columns:
                why = decision.reason
            decision = unasked(
                "REINITIALIZE", why, request.full_refresh_forbidden, decision.warning
            )
    return replace(plan, query=query, columns=columns, generation=generation, decision=decision)
