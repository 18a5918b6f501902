"""Running a plan: one commit, read back, then the view."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from spark_dynamic.apply.commit import carrying
from spark_dynamic.apply.counts import rows_written
from spark_dynamic.apply.storage import (
    create_storage,
    generations,
    overwrite_storage,
    partition_columns,
    select_for_storage,
    write_nothing,
)
from spark_dynamic.config import RefreshMode
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.frontier.history import changes_rows, records
from spark_dynamic.frontier.record import Pin, Recorded, empty_run_mark, write_record
from spark_dynamic.refresh.constraints import enforce, reported_violation
from spark_dynamic.refresh.cost import is_inserts_only
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.decide import refused
from spark_dynamic.refresh.distrust import distrust
from spark_dynamic.refresh.failures import failure, watched
from spark_dynamic.refresh.incremental import Work, Write, incremental_statement
from spark_dynamic.refresh.new_record import new_record, next_number
from spark_dynamic.refresh.plan import Plan, as_full, plan_as_written, plan_refresh
from spark_dynamic.refresh.prepared import Prepared, prepare
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.row_counts import previous_rows, visible_rows
from spark_dynamic.refresh.self_check import what_differs
from spark_dynamic.refresh.show import show
from spark_dynamic.refresh.unpinned import as_read_now, check_reading
from spark_dynamic.refresh.work import work_of
from spark_dynamic.settings import holding
from spark_dynamic.support import NONE, NotIncremental, reason
from spark_dynamic.warehouse import Warehouse

Planner = Callable[[Request, Cycle, Warehouse], Plan]

_ATTEMPTS = 5
# More than as many builds as may fail in a row, each of which may leave a directory.
_NUMBERS = 20
_NO_FEED = ("DELTA_MISSING_CHANGE_DATA", "DELTA_CHANGE_DATA_FEED", "DELTA_CHANGE_TABLE_FEED")
# A directory left behind by a build that was killed: the next number is free.
_LEFT_OVER = ("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "LOCATION_ALREADY_EXISTS")


@dataclass
class Outcome:
    """What a refresh did."""

    plan: Plan
    rows_inserted: int | None = None
    rows_deleted: int | None = None
    recorded: Recorded | None = None
    statements: list[str] = field(default_factory=list)
    rows_changed: dict[str, int] = field(default_factory=dict)
    shape: str = ""
    # Whether the sources had only been added to.
    inserts_only: bool = False
    # What was computed already; it is good for one try.
    prepared: Prepared | None = None

    @property
    def data_timestamp(self) -> datetime | None:
        """The moment at which the table's contents are right."""
        if self.plan.request.leaves_no_state:
            return None
        action = self.plan.decision.action
        if action == "NO_DATA" and self.plan.cut:
            return self.plan.cut.data_timestamp
        record = self.recorded.record if self.recorded else self.plan.record
        return record.data_timestamp if record else None


class _Recording:
    """A warehouse that remembers the statements which change something."""

    def __init__(self, warehouse: Warehouse, statements: list[str]) -> None:
        self._warehouse = warehouse
        self._statements = statements
        self.rows, self.history, self.now = warehouse.rows, warehouse.history, warehouse.now

    def execute(self, sql: str) -> None:
        self._statements.append(sql)
        self._warehouse.execute(sql)


def run_plan(
    plan: Plan,
    cycle: Cycle,
    warehouse: Warehouse,
    plan_again: Planner = plan_refresh,
    statements: list[str] | None = None,
    prepared: Prepared | None = None,
) -> Outcome:
    """Do what a plan says. Another writer's commit in between makes it plan again.

    The statements go into a list that is given, for whoever wants to see those of a failure.
    `prepared` is what was computed of the plan already.
    """
    kept = [] if statements is None else statements
    outcome = Outcome(plan, statements=kept, prepared=prepared)
    recording = _Recording(warehouse, outcome.statements)
    for _ in range(_ATTEMPTS):
        with reported_violation(plan.request.view):
            if _attempt(outcome, cycle, recording):
                if outcome.recorded is not None:
                    check_reading(outcome.plan, outcome.recorded, cycle, recording)
                show(outcome.plan, cycle, recording)
                return outcome
        for name in (outcome.plan.storage, outcome.plan.request.view):
            cycle.catalog.forget(name)
        outcome.rows_deleted = None
        outcome.plan = plan_again(outcome.plan.request, cycle, warehouse)
    raise EngineError(
        "CONFLICT",
        f"Other writers were faster than this refresh of {plan.request.view} {_ATTEMPTS} times "
        "in a row. Nothing was changed; run it again.",
    )


def _attempt(outcome: Outcome, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Try to write; False if the plan has to be made anew."""
    plan = outcome.plan
    if not plan.decision.writes and not plan.moves_record:
        return True
    if plan.decision.action == "INCREMENTAL" and plan.slide is None:
        return _apply_changes(outcome, cycle, warehouse)
    is_rebuilt = plan.decision.action in ("FULL", "REINITIALIZE")
    outcome.rows_deleted = previous_rows(plan, cycle, warehouse) if is_rebuilt else None
    if plan.builds_generation:
        return _build(outcome, cycle, warehouse) and _is_right(outcome, cycle, warehouse)
    attempt = str(uuid.uuid4())
    try:
        _commit(_statement(plan, cycle), plan, cycle, warehouse, attempt)
    except WarehouseError as error:
        if error.is_conflict:
            return False
        raise
    is_written = _read_back(outcome, cycle, warehouse, attempt)
    return is_written and _is_right(outcome, cycle, warehouse)


def _apply_changes(outcome: Outcome, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Refresh incrementally; in mode auto, what fails is rebuilt in the same run."""
    try:
        if outcome.plan.changes_constraints:
            # Before the write, which has to meet them, too.
            enforce(outcome.plan, cycle, warehouse)
    except WarehouseError as error:
        if error.is_conflict:
            return False
        is_auto = outcome.plan.request.config.refresh_mode is RefreshMode.AUTO
        if not error.breaks_constraint or not is_auto:
            raise
        # The changes may mend what is stored, which only the new rows as a whole can tell.
        why = reason("CONSTRAINTS_CHANGED", error.sentence.rstrip("."))
        outcome.plan = as_full(outcome.plan, why, warehouse)
        return _attempt(outcome, cycle, warehouse)
    prepared, outcome.prepared = outcome.prepared, None
    own = watched(warehouse)
    try:
        work = prepared.work if prepared else work_of(outcome.plan, cycle, own)
    except Exception as error:
        outcome.plan = _without_changes(outcome.plan, failure(error, own), cycle, warehouse)
        return _attempt(outcome, cycle, warehouse)
    try:
        return _apply_work(outcome, work, cycle, warehouse, prepared)
    except WarehouseError as error:
        if not _lacks_feed(error):
            raise
    # The change feed does not reach back that far, not across a change of columns, or VACUUM was
    # there. What both versions are made of may be there all the same.
    work = work_of(outcome.plan, cycle, warehouse)
    rewritten = {t: i.between_versions() for t, i in work.intervals.items()}
    return _apply_work(outcome, replace(work, intervals=rewritten), cycle, warehouse)


def _apply_work(
    outcome: Outcome,
    work: Work,
    cycle: Cycle,
    warehouse: Warehouse,
    prepared: Prepared | None = None,
) -> bool:
    plan, attempt = outcome.plan, str(uuid.uuid4())
    own, is_written_down = watched(warehouse), False
    try:
        with prepared.statement(own) if prepared else incremental_statement(work, own) as write:
            is_written_down = True
            outcome.rows_changed, outcome.shape = work.rows_changed, work.shape
            outcome.inserts_only = is_inserts_only(work.intervals)
            if write is None:
                plan = outcome.plan = _without_rows(plan)
                write = Write(_statement(plan, cycle))
            with holding(warehouse, write.settings):
                _commit(write.statement, plan, cycle, warehouse, attempt)
    except (WarehouseError, NotIncremental) as error:
        if isinstance(error, WarehouseError) and error.is_conflict:
            return False
        if isinstance(error, WarehouseError) and error.breaks_constraint:
            # A full refresh would bring the same rows.
            raise
        has_feed = any(interval.reads_feed for interval in work.intervals.values())
        if isinstance(error, WarehouseError) and _lacks_feed(error) and has_feed:
            raise
        if isinstance(error, WarehouseError) and error.exceeds_length:
            why = reason("STORAGE_LENGTHS")
            outcome.plan = as_full(plan, why, warehouse, "REINITIALIZE")
            return _attempt(outcome, cycle, warehouse)
        if isinstance(error, WarehouseError) and error.misses_history:
            error = _history_lost(work, error)
        if plan.request.config.refresh_mode is not RefreshMode.AUTO:
            if isinstance(error, NotIncremental):
                raise refused(error.reason) from error
            raise
        why = reason("INCREMENTAL_FAILED", str(error).splitlines()[0].rstrip("."))
        if isinstance(error, NotIncremental):
            why = error.reason
        outcome.plan = as_full(plan, why, warehouse)
        return _attempt(outcome, cycle, warehouse)
    except Exception as error:
        failed = failure(error, own)
        if is_written_down:
            # The statement may have been run.
            raise
        outcome.plan = _without_changes(plan, failed, cycle, warehouse)
        return _attempt(outcome, cycle, warehouse)
    return _read_back(outcome, cycle, warehouse, attempt) and _is_right(outcome, cycle, warehouse)


def _without_changes(plan: Plan, failed: str, cycle: Cycle, warehouse: Warehouse) -> Plan:
    """Return the plan that is left if the engine fails to write the changes down."""
    why, own = reason("PLANNING_FAILED", failed), watched(warehouse)
    if plan.request.config.refresh_mode is not RefreshMode.AUTO:
        raise refused(why)
    try:
        # What has failed may be needed to build what lets it follow changes, too.
        return as_full(replace(plan, maintenance=None), why, own)
    except Exception as error:
        return plan_as_written(plan.request, failure(error, own), cycle, own)


def _lacks_feed(error: WarehouseError) -> bool:
    return error.condition.startswith(_NO_FEED) or error.misses_history


def _history_lost(work: Work, error: WarehouseError) -> NotIncremental:
    """Return that history is lost; which table a missing file was of, Spark does not tell."""
    tables = work.beyond_travel or work.intervals.keys()
    lost = NotIncremental("HISTORY_LOST", ", ".join(sorted(map(str, tables))))
    lost.__cause__ = error
    return lost


def foresee(
    plan: Plan, cycle: Cycle, warehouse: Warehouse, statements: list[str]
) -> tuple[Plan, Prepared | None]:
    """Compute the changes for those who have to know before the write whether there are any.

    Returns the plan that is left if all changes cancel out, and what the write can use. What goes
    wrong here goes wrong again in the run itself, and is dealt with there.
    """
    if plan.decision.action != "INCREMENTAL" or plan.slide is not None:
        return plan, None
    own = watched(warehouse)
    try:
        prepared = prepare(work_of(plan, cycle, own), _Recording(own, statements))
    except (WarehouseError, NotIncremental):
        return plan, None
    except Exception as error:
        failure(error, own)
        return plan, None
    if prepared.write is not None:
        return plan, prepared
    prepared.drop()
    return _without_rows(plan), None


def _without_rows(plan: Plan) -> Plan:
    """Return a plan that only moves the record: everything that changed was changed back."""
    decision = replace(plan.decision, action="NO_DATA", reason=NONE)
    return replace(plan, decision=decision, moves_record=True, has_empty_delta=True)


def _is_right(outcome: Outcome, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Compare what was written with the query, now and then; what is wrong is rebuilt from it."""
    plan, written = outcome.plan, outcome.recorded
    is_computed = plan.decision.writes or plan.has_empty_delta
    if plan.maintenance is None or written is None or not is_computed:
        return True
    wrong = what_differs(plan, written, cycle, warehouse)
    if not wrong:
        return True
    why = reason("SELF_CHECK_FAILED", wrong)
    distrust(plan.request.view, plan.maintenance.fingerprint, why, cycle, warehouse)
    again = replace(plan_refresh(plan.request, cycle, warehouse), maintenance=None)
    rebuilt = as_full(again, why, warehouse, "REINITIALIZE")
    outcome.plan = replace(rebuilt, distrusted=plan.maintenance.fingerprint)
    return _attempt(outcome, cycle, warehouse)


def _build(outcome: Outcome, cycle: Cycle, warehouse: Warehouse) -> bool:
    for _ in range(_NUMBERS):
        plan, attempt = outcome.plan, str(uuid.uuid4())
        try:
            _commit(_statement(plan, cycle), plan, cycle, warehouse, attempt)
        except WarehouseError as error:
            if error.is_conflict:
                return False
            if error.condition not in _LEFT_OVER:
                raise
            cycle.catalog.forget(plan.storage)
            if plan.storage.name in cycle.catalog.tables(warehouse, plan.storage):
                # It is no left-over: another builder was a moment earlier.
                return False
            outcome.plan = replace(plan, generation=plan.generation + 1)
            continue
        return _read_back(outcome, cycle, warehouse, attempt)
    raise EngineError(
        "STORAGE_LEFT_OVER",
        f"The directory of {outcome.plan.storage} and others before it exist without a table. "
        "Remove them.",
    )


def _statement(plan: Plan, cycle: Cycle) -> str:
    """Return the one statement of a plan that rebuilds, slides, or only moves the record."""
    request = plan.request
    if plan.slide is not None and plan.decision.action == "INCREMENTAL":
        assert plan.stored is not None
        return plan.slide.statement(plan.storage, plan.stored.version, plan.columns)
    if plan.moves_record:
        return write_nothing(plan.storage)
    select = select_for_storage(plan.query, plan.columns, partition_columns(request.config))
    if plan.maintenance is not None and plan.cut is not None:
        number = next_number(plan, cycle)
        select = plan.maintenance.build(plan.query, plan.cut.versions(), number)
    if plan.builds_generation:
        return create_storage(plan.storage, request.config, request.model, plan.columns, select)
    # A run that leaves no state leaves the hidden columns empty, too.
    return overwrite_storage(plan.storage, select)


def _commit(statement: str, plan: Plan, cycle: Cycle, warehouse: Warehouse, attempt: str) -> None:
    if plan.request.leaves_no_state:
        with carrying(warehouse, empty_run_mark()):
            warehouse.execute(statement)
        return
    record = new_record(as_read_now(plan, cycle, warehouse), cycle, attempt)
    application = record.incarnation
    if plan.record is not None and not plan.builds_generation:
        application = plan.record.incarnation
    with carrying(warehouse, write_record(record), (application, record.refresh_number)):
        warehouse.execute(statement)


def _read_back(outcome: Outcome, cycle: Cycle, warehouse: Warehouse, attempt: str) -> bool:
    """See in the history whether this attempt landed; a write that Delta skipped looks fine."""
    plan = outcome.plan
    cycle.catalog.forget(plan.storage)
    base = plan.stored.version if plan.stored and not plan.builds_generation else -1
    commits = cycle.catalog.history(warehouse, plan.storage, since=base + 1)
    if plan.request.leaves_no_state:
        outcome.rows_inserted = int(commits[0].metrics.get("numOutputRows", 0))
        return True
    mine = [r for r in records(commits) if r.record.attempt == attempt]
    if not mine:
        return False
    existing = generations(plan.request.view, cycle.catalog.tables(warehouse, plan.storage))
    known = plan.stored.all_generations if plan.stored else ()
    if existing[0] > max((plan.generation, *known)):
        # Someone built a newer generation meanwhile: that one is in use.
        return False
    outcome.recorded = mine[0]
    if plan.decision.action in ("FULL", "REINITIALIZE"):
        outcome.rows_inserted = visible_rows(plan, mine[0].commit, warehouse)
        return True
    if plan.decision.writes:
        counts = rows_written(plan.storage, plan.condition, mine[0].commit, warehouse)
        outcome.rows_inserted, outcome.rows_deleted = counts
    # An append lands beside anything; it is right only for the rows that it was based on.
    own = mine[0].commit.version
    return not any(changes_rows(c) for c in commits if base < c.version < own)


def frontier_of(outcome: Outcome) -> tuple[Pin, ...]:
    """Return the base tables' versions that the table's contents are right for."""
    if outcome.recorded:
        return outcome.recorded.record.frontier
    record = outcome.plan.record
    return record.frontier if record else ()
