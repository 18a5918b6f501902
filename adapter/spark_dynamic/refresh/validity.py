"""Whether what is stored of a table can be carried on."""

from collections.abc import Callable
from dataclasses import replace

from spark_dynamic.frontier.record import Pin, Record
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.stored import Stored
from spark_dynamic.settings import as_named_by, differences
from spark_dynamic.support import Reason, reason
from spark_dynamic.warehouse import Warehouse


def why_invalid(
    request: Request,
    stored: Stored | None,
    analysis: Analysis,
    is_cosmetic: Callable[[Record], bool],
    cycle: Cycle,
    warehouse: Warehouse,
) -> Reason | None:
    """Return why the stored table cannot be carried on, if so.

    `is_cosmetic` tells whether a changed text still means what a record was made from.
    """
    if stored is None:
        return None
    tail = stored.tail
    if tail.problem or tail.newest is None:
        return reason(tail.problem, tail.detail)
    if stored.altered:
        return reason("STORAGE_ALTERED", stored.altered)
    record = tail.newest.record
    if record.is_wrong:
        found = record.reason.removeprefix("SELF_CHECK_FAILED: ")
        return replace(reason("SELF_CHECK_FAILED"), sentence=found)
    now = request.settings
    if not record.names_all_settings:
        now = as_named_by(record.settings, now)
    if changed := differences(record.settings, now):
        return reason("SETTINGS_CHANGED", changed)
    if not _has_text_of(analysis, record) and not is_cosmetic(record):
        return reason("DEFINITION_CHANGED")
    # A text that is not pinned says of its sources only where they were.
    for pin in record.frontier if record.verdict.passed else ():
        problem = _source_problem(pin, analysis, cycle, warehouse)
        if problem:
            return problem
    return None


def _has_text_of(analysis: Analysis, record: Record) -> bool:
    if record.text_hash == analysis.text_hash:
        return True
    is_older = not record.names_all_settings
    return is_older and record.text_hash == analysis.former_hash


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
