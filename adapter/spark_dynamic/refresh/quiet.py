"""Tables to which nothing has happened: known from one look at all of them.

A table that was once found right is settled: its own storage, everything that it reads and what
is asked of it are written down. As long as a look at the catalog and at the logs shows the same,
planning a refresh would end with NO_DATA again, so no statement is run for this table alone.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from spark_dynamic.apply.storage import generations, storage_name
from spark_dynamic.frontier.settled import LogEnd, Settled
from spark_dynamic.listing import is_listable, lasting, made_at
from spark_dynamic.names import TableName
from spark_dynamic.refresh.aging import kept_until
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.failures import failure, watched
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.run import Outcome
from spark_dynamic.sql.pin import Query
from spark_dynamic.warehouse import Warehouse

# A commit that is younger may have come between two questions about its table.
_SETTLES_IN: Final = timedelta(minutes=1)


def quiet(request: Request, cycle: Cycle, warehouse: Warehouse) -> Settled | None:
    """Return what a table is settled by, if a refresh would find nothing to do."""
    own = watched(warehouse)
    try:
        return _quiet(request, cycle, own)
    except Exception as error:
        # What fails here is not needed: the refresh is planned.
        failure(error, own)
        return None


def _quiet(request: Request, cycle: Cycle, warehouse: Warehouse) -> Settled | None:
    remembered = cycle.known.tables.get(str(request.view))
    settled = remembered.settled if remembered else None
    if settled is None or not settled.catalog:
        return None
    if request.full_refresh or request.leaves_no_state:
        return None
    if request.config.immutable_functions:
        # Whether a function was defined anew is not in any log.
        return None
    if settled.request != _request_mark(request) or cycle.data_timestamp > settled.until:
        return None
    catalog = cycle.catalog
    for log in settled.logs:
        if not catalog.is_end(log) or log.committed_at > cycle.data_timestamp:
            return None
    for view, made in settled.views.items():
        if cycle.has_written(view):
            # dbt makes its views anew in every run, mostly as they were.
            catalog.list_again(warehouse, view)
        elif made != made_at(catalog.listed(view) or ""):
            return None
    if settled.catalog != _catalog_mark(settled.relations, cycle):
        return None
    newest = generations(request.view, catalog.listed_after(request.view))
    is_in_use = newest and storage_name(request.view, newest[0]) == settled.storages[0].table
    return settled if is_in_use else None


def settle(outcome: Outcome, cycle: Cycle, began: int, warehouse: Warehouse) -> Settled | None:
    """Write down what a table is right for, if a refresh found nothing to do.

    `began` is the catalog's moment before anything was asked for this refresh.
    """
    own = watched(warehouse)
    try:
        return _settle(outcome, cycle, began, own)
    except Exception as error:
        # The refresh is done; the next one looks again.
        failure(error, own)
        return None


def _settle(outcome: Outcome, cycle: Cycle, began: int, warehouse: Warehouse) -> Settled | None:
    plan = outcome.plan
    cut, query = plan.cut, plan.analysis.query
    newest = plan.stored.tail.newest if plan.stored else None
    is_still = plan.decision.action == "NO_DATA" and not outcome.statements
    if not is_still or newest is None or cut is None or query is None:
        return None
    record = newest.record
    if cut.data_timestamp != cycle.data_timestamp:
        # Valid at an older cut: its sources have gone on.
        return None
    if plan.decision.warning or record.clock or cut.uses_clock() or plan.verdict.volatile:
        return None
    own = {plan.request.view, *(upstream.view for upstream in plan.analysis.upstreams)}
    views = sorted(set(_views(query)) - own, key=str)
    tables = [plan.storage, *(upstream.storage for upstream in plan.analysis.upstreams)]
    storages = [_end(table, cycle, warehouse) for table in tables]
    bases = [LogEnd(p.table, p.version, p.committed_at, p.log) for p in cut.pins.values()]
    limit = cycle.data_timestamp - _SETTLES_IN
    if any(log.committed_at > limit for log in (*storages, *bases)):
        return None
    settled = Settled(
        request=_request_mark(plan.request),
        catalog="",
        views={view: made_at(cycle.catalog.listed(view) or "") for view in views},
        own=tuple(sorted(own, key=str)),
        storages=tuple(storages),
        bases=tuple(sorted(bases, key=lambda log: str(log.table))),
        until=kept_until(record, cut, plan.request.config.history_retention, cycle, warehouse),
        incarnation=record.incarnation,
        fingerprint=record.fingerprint,
        version=newest.commit.version,
    )
    if not all(map(is_listable, settled.relations)):
        return None
    # What was not listed yet will be in the next cycle, now that it is known.
    return replace(settled, catalog=_catalog_mark(settled.relations, cycle, began))


def _end(table: TableName, cycle: Cycle, warehouse: Warehouse) -> LogEnd:
    newest = cycle.catalog.history(warehouse, table)[0]
    return LogEnd(table, newest.version, newest.timestamp)


def _views(query: Query) -> Iterable[TableName]:
    for name, view in query.views.items():
        yield name
        yield from _views(view.query)


def _request_mark(request: Request) -> str:
    """Return a short hash of everything that a plan depends on beside the warehouse."""
    facts = (
        request.model, request.sql, request.schema, request.config,
        sorted(request.settings.items()), request.engine_version,
        request.full_refresh_forbidden, request.comment, sorted(request.column_comments.items()),
        request.constraints,
    )  # fmt: skip
    return _short(repr(facts))


def _catalog_mark(relations: Iterable[TableName], cycle: Cycle, by: int | None = None) -> str:
    """Return a short hash of what is listed about relations; "" if one of them is not listed."""
    texts = []
    for name in relations:
        text = cycle.catalog.listed(name, by)
        if text is None:
            return ""
        texts.append(f"{name}\n{lasting(text)}")
    return _short("\0".join(texts))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
