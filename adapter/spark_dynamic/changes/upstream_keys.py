"""Declared keys of dynamic tables name the rows of their changes."""

from dataclasses import replace

from spark_dynamic.apply.unique_key import read_key
from spark_dynamic.changes.asked import ChangeRead, Mode
from spark_dynamic.changes.question import ask, sources_of
from spark_dynamic.changes.row_ids import naming_scans
from spark_dynamic.frontier.record import Record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse


def with_upstream_keys(read: ChangeRead, cycle: Cycle, warehouse: Warehouse) -> ChangeRead:
    """Let the keys of dynamic tables stand for `row_keys` that are not given.

    Left alone are queries with a `unique_key`, tables with `row_keys` of their own, and keys that
    name no row of the result: below a GROUP BY, or beside a source that has none.
    """
    if read.unique_key:
        return read
    analysis = sources_of(read, cycle, warehouse)
    known = {relation.name: relation for relation in analysis.relations}
    found: dict[TableName, tuple[str, ...]] = {}
    storages: dict[TableName, TableName] = {}
    for upstream in analysis.upstreams:
        key = read_key(known[upstream.storage])
        if key and not {upstream.view, upstream.storage} & read.row_keys.keys():
            found[upstream.view], storages[upstream.view] = key, upstream.storage
    if not found:
        return read
    named = replace(read, upstream_keys=found)
    if read.mode is Mode.APPEND_ONLY:
        # There the rows of each source are told apart, whether or not those of the result are.
        return named
    question = ask(named, cycle, warehouse)
    if question.plan is None or not question.layout.is_named:
        return read
    used = {scan.table for scan in naming_scans(question.plan)}
    kept = {view: key for view, key in found.items() if storages[view] in used}
    return replace(read, upstream_keys=kept)


def written_keys(read: ChangeRead) -> dict[str, list[str]]:
    """Return the keys of dynamic tables that name rows, as a record holds them."""
    return {str(view): list(key) for view, key in sorted(read.upstream_keys.items(), key=str)}


def recorded_keys(record: Record) -> dict[TableName, tuple[str, ...]]:
    """Return the keys of dynamic tables that have named the rows of a window."""
    keys = record.window.get("keys", {})
    return {TableName.parse(view): tuple(key) for view, key in keys.items()}
