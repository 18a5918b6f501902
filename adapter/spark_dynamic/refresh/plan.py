"""The plan of one refresh: everything is asked, nothing is written."""

from dataclasses import dataclass, replace

from spark_dynamic.apply.storage import storage_facts, storage_name, stored_columns
from spark_dynamic.catalog import describe_query
from spark_dynamic.frontier.cut import Cut, Waiting, choose_cut
from spark_dynamic.frontier.record import Pin, Record, StoredColumn, Verdict
from spark_dynamic.names import TableName
from spark_dynamic.refresh.analyse import Analysis, always_full, analyse, judge
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.decide import Decision, Findings, decide
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.stored import Stored, find_stored
from spark_dynamic.sql.pin import pinned
from spark_dynamic.support import Reason, reason
from spark_dynamic.warehouse import Warehouse


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
    """Plan the refresh of one dynamic table."""
    stored = find_stored(request.view, cycle, warehouse)
    newest = stored.tail.newest if stored else None
    record = newest.record if newest else None
    analysis = analyse(request, cycle, warehouse)
    if request.leaves_no_state:
        decision = decide(Findings(leaves_no_state=True), request.config)
        generation = stored.generation if stored else 1
        plan = Plan(request, decision, analysis, Verdict(""), stored, None, generation=generation)
        return _with_query(plan, warehouse)
    verdict = judge(request, analysis, record.verdict if record else None, cycle, warehouse)
    cut = _cut(analysis, verdict, record, cycle, warehouse)
    findings = Findings(
        is_stored=stored is not None,
        leaves_no_state=request.leaves_no_state,
        full_refresh=request.full_refresh,
        full_refresh_forbidden=request.full_refresh_forbidden,
        invalid=_invalid(request, stored, analysis, cycle, warehouse),
        config_changes=_config_changes(request, record),
        always_full=always_full(analysis, verdict),
        waiting_for=tuple(str(u) for u in cut.upstreams) if isinstance(cut, Waiting) else (),
        is_covered=isinstance(cut, Cut) and record is not None and _is_older(cut, record),
        changed_sources=_changed(analysis, record, cut, cycle, warehouse),
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
    )
    if decision.writes:
        return _with_query(plan, warehouse)
    if decision.action == "NO_DATA" and record and isinstance(cut, Cut):
        return replace(plan, moves_record=_has_moved(record, cut, cycle, warehouse))
    return plan


def _cut(
    analysis: Analysis, verdict: Verdict, record: Record | None, cycle: Cycle, warehouse: Warehouse
) -> Cut | Waiting:
    if not verdict.passed:
        return Cut(cycle.data_timestamp, {}, {})
    return choose_cut(
        now=cycle.data_timestamp,
        after=record.data_timestamp if record else None,
        bases=analysis.bases,
        upstreams=analysis.upstreams,
        pin_at=lambda table, moment: cycle.pin(warehouse, table, moment),
        same_rows=lambda old, new: cycle.same_rows(warehouse, old, new),
    )


def _invalid(
    request: Request, stored: Stored | None, analysis: Analysis, cycle: Cycle, warehouse: Warehouse
) -> Reason | None:
    """Return why the stored table cannot be carried on, if so."""
    if stored is None:
        return None
    tail = stored.tail
    if tail.problem or tail.newest is None:
        return reason(tail.problem, tail.detail)
    record = tail.newest.record
    if record.text_hash != analysis.text_hash:
        return reason("DEFINITION_CHANGED")
    if record.settings != request.settings:
        return reason("SETTINGS_CHANGED", _differences(record.settings, request.settings))
    for pin in record.frontier:
        problem = _source_problem(pin, analysis, cycle, warehouse)
        if problem:
            return problem
    return None


def _source_problem(
    pin: Pin, analysis: Analysis, cycle: Cycle, warehouse: Warehouse
) -> Reason | None:
    if pin.table not in analysis.bases:
        # Behind a dynamic table that is read; that one looks after it.
        return None
    relation = cycle.catalog.relation(warehouse, pin.table)
    if relation is None or relation.location != pin.log:
        return reason("SOURCE_REPLACED", str(pin.table))
    commit = cycle.commit_at(warehouse, pin.table, pin.version)
    if commit is not None:
        same = commit.timestamp == pin.committed_at
        return None if same else reason("SOURCE_REPLACED", str(pin.table))
    newest = cycle.catalog.history(warehouse, pin.table)[0].version
    return reason("SOURCE_REPLACED" if newest < pin.version else "HISTORY_LOST", str(pin.table))


def _differences(old: dict[str, str], new: dict[str, str]) -> str:
    keys = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    return ", ".join(f"{key} was {old.get(key)} and is {new.get(key)}" for key in keys)


def _config_changes(request: Request, record: Record | None) -> tuple[str, ...]:
    if record is None:
        return ()
    now = storage_facts(request.config)
    return tuple(
        f"{key} was {record.storage.get(key) or 'unset'} and is {value or 'unset'}"
        for key, value in now.items()
        if record.storage.get(key) != value
    )


def _is_older(cut: Cut, record: Record) -> bool:
    return any(
        cut.pins[pin.table].log == pin.log and cut.pins[pin.table].version < pin.version
        for pin in record.frontier
        if pin.table in cut.pins
    )


def _changed(
    analysis: Analysis,
    record: Record | None,
    cut: Cut | Waiting,
    cycle: Cycle,
    warehouse: Warehouse,
) -> tuple[str, ...]:
    """Return the sources whose rows differ from what the stored table was computed from."""
    if record is None or isinstance(cut, Waiting) or analysis.query is None:
        return ()
    changed = []
    follows_schema = analysis.query.follows_schema()
    for table in analysis.bases:
        old, new = record.pin_of(table), cut.pins.get(table)
        same = old is not None and new is not None and cycle.same_rows(warehouse, old, new)
        if same and old and new and follows_schema:
            same = not cycle.columns_touched(warehouse, old, new)
        if not same:
            changed.append(str(table))
    for upstream in analysis.upstreams:
        before = record.upstreams.get(str(upstream.storage))
        now = cut.upstreams.get(upstream.storage)
        if not _same_storage(upstream.storage, before, now, cycle, warehouse):
            changed.append(str(upstream.view))
    return tuple(changed)


def _same_storage(
    storage: TableName, before: int | None, now: int | None, cycle: Cycle, warehouse: Warehouse
) -> bool:
    if before is None or now is None:
        return False
    pins = []
    for version in (before, now):
        commit = cycle.commit_at(warehouse, storage, version)
        if commit is None:
            return False
        pins.append(Pin(storage, "", version, commit.timestamp))
    return cycle.same_rows(warehouse, *pins)


def _has_moved(record: Record, cut: Cut, cycle: Cycle, warehouse: Warehouse) -> bool:
    """Tell whether base tables changed although nothing of it reached this table.

    Its readers could then not see from the old record that its contents are still right.
    """
    for table, pin in cut.pins.items():
        old = record.pin_of(table)
        if old is None or not cycle.same_rows(warehouse, old, pin):
            return True
    return False


def _with_query(plan: Plan, warehouse: Warehouse) -> Plan:
    """Complete a plan that writes: the text to run, its columns, the table to write to."""
    request, record = plan.request, plan.record
    query = request.sql
    if plan.verdict.passed and plan.cut and plan.analysis.query:
        query = pinned(plan.analysis.query, plan.cut.versions())
    columns = stored_columns(describe_query(warehouse, query))
    decision, generation = plan.decision, plan.generation
    if plan.stored is not None:
        fits = record is not None and columns == record.columns
        if fits and record is not None and not decision.warning:
            fits = record.storage == storage_facts(request.config)
        if not fits:
            generation = plan.stored.next_generation
        asked = decision.reason.code in ("REQUESTED", "EMPTY_RUN")
        if decision.action == "FULL" and not fits and record is not None and not asked:
            old = {column.name for column in record.columns}
            new = {column.name for column in columns}
            detail = ", ".join(sorted(old ^ new)) or "types or order"
            decision = replace(
                decision, action="REINITIALIZE", reason=reason("COLUMNS_CHANGED", detail)
            )
    return replace(plan, query=query, columns=columns, generation=generation, decision=decision)
