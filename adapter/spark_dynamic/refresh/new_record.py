"""The record that a refresh is about to write."""

import uuid
from collections.abc import Mapping
from datetime import datetime

from spark_dynamic.apply.storage import built_facts
from spark_dynamic.frontier.cut import Cut
from spark_dynamic.frontier.record import Record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import is_pinned
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan


def next_number(plan: Plan, cycle: Cycle) -> int:
    """Return the number of this refresh."""
    return number_after(plan.record, plan.request.view, cycle)


def number_after(record: Record | None, view: TableName, cycle: Cycle) -> int:
    """Return the number that comes next for a table: they never restart."""
    highest = record.refresh_number if record else 0
    return max(highest, cycle.known.refresh_numbers.get(str(view), 0)) + 1


def new_record(plan: Plan, cycle: Cycle, attempt: str) -> Record:
    """Return the record of a refresh that is about to be written."""
    request, before, cut = plan.request, plan.record, plan.cut
    assert cut is not None
    clock, until = _clock(plan, cut)
    keeps = plan.moves_record or plan.decision.action == "INCREMENTAL"
    found = plan.maintenance.fingerprint if plan.maintenance else ""
    storage = built_facts(request.config)
    if before is not None and not plan.builds_generation:
        # What was not applied (on_configuration_change='continue') is still as it was.
        storage = before.storage
    return Record(
        model=request.model,
        engine=request.engine_version,
        incarnation=before.incarnation if keeps and before else str(uuid.uuid4()),
        generation=plan.generation,
        refresh_number=next_number(plan, cycle),
        attempt=attempt,
        cycle=cycle.id,
        data_timestamp=cut.data_timestamp,
        based_on=plan.stored.version if plan.stored and not plan.builds_generation else None,
        frontier=tuple(sorted(cut.pins.values(), key=lambda pin: str(pin.table))),
        upstreams={str(t): taken.record.attempt for t, taken in cut.upstreams.items()},
        settings=request.settings,
        names_all_settings=True,
        text_hash=plan.analysis.text_hash,
        verdict=plan.verdict,
        columns=plan.columns,
        storage=storage,
        action=plan.decision.action,
        reason_code=plan.decision.reason.code,
        reason=str(plan.decision.reason),
        mode=request.config.refresh_mode.value,
        trigger=request.trigger if plan.stored else "CREATION",
        clock=clock,
        clock_until=until,
        pinned_by=cut.pinned_by,
        unknown_sources=cut.unknown_by(attempt),
        by_commit=(plan.slide is not None and plan.slide.by_commit) or cut.by_commit(),
        fingerprint=found or (before.fingerprint if keeps and before else ""),
        state=plan.state,
        window=plan.slide.facts if plan.slide else {},
        distrusted=plan.distrusted or _distrusted_before(plan),
        has_empty_delta=plan.has_empty_delta,
        # After a rebuild, a source may be another table of the same name.
        rows=_rows(plan, cut, cycle, before.rows if keeps and before else {}),
    )


def _distrusted_before(plan: Plan) -> str:
    """Return the fingerprint that is not trusted; an explicit --full-refresh trusts it again."""
    if plan.record is None or plan.request.full_refresh:
        return ""
    return plan.record.distrusted


def _rows(
    plan: Plan, cut: Cut, cycle: Cycle, before: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Return how many rows there are in what was read, as far as it is known by now."""
    read = dict(cut.versions())
    if plan.stored is not None and not plan.builds_generation:
        read[plan.storage] = plan.stored.version
    found = {str(table): before[str(table)] for table in read if str(table) in before}
    for table, version in read.items():
        rows = cycle.rows_if_known(table, version)
        if rows is not None:
            found[str(table)] = (version, rows)
    return found


def _clock(plan: Plan, cut: Cut) -> tuple[datetime | None, datetime | None]:
    """Return the moment that the rows depend on, if on any, and until when they stay right."""
    now = cut.data_timestamp
    if plan.verdict.volatile or not is_pinned(plan.analysis, plan.verdict):
        # Of what cannot be read as it was, nobody knows whether it is the same at another cut.
        return now, None
    untils = [plan.slide.holds_until] if plan.slide and plan.slide.holds_until else []
    if cut.uses_clock():
        until = cut.clock_until()
        if until is None:
            return now, None
        untils.append(until)
    return (now, min(untils)) if untils else (None, None)
