"""The shape of an incremental refresh: what its sources did, and what that saved."""

from collections.abc import Mapping

from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.delta.analysis import is_insert_only
from spark_dynamic.delta.differentiate import differentiate
from spark_dynamic.delta.facts import Changes
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import Plan

ADDED_ONLY, MINIMIZE = "ADDED_ONLY", "MINIMIZE"


def shape_text(only_adds: bool, intervals: Mapping[TableName, Interval]) -> str:
    """Return whether changes only add rows, so that nothing cancels out, and those of each source.

    >>> orders = TableName("shop", "orders")
    >>> shape_text(True, {orders: Interval(orders, 1, 2, Kind.INSERTS)})
    'ADDED_ONLY (shop.orders: inserts only)'
    """
    found = {str(table): interval.what for table, interval in intervals.items()}
    sources = ", ".join(f"{table}: {kind}" for table, kind in sorted(found.items()))
    return f"{ADDED_ONLY if only_adds else MINIMIZE} ({sources})"


def expected_shape(plan: Plan, intervals: Mapping[TableName, Interval]) -> str:
    """Return the shape that a refresh will have, from the history of the sources alone."""
    facts = {t: Changes(interval.kind is Kind.INSERTS) for t, interval in intervals.items()}
    delta = differentiate(plan, facts)
    return shape_text(delta is not None and is_insert_only(delta, facts), intervals)
