"""The shape of an incremental refresh: what its sources did, and what that saved."""

from collections.abc import Collection, Mapping

from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.delta.analysis import is_insert_only, is_net
from spark_dynamic.delta.differentiate import differentiate
from spark_dynamic.delta.facts import Changes, Facts
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import Aggregate, Join, Plan, fields_of, walk
from spark_dynamic.warehouse import Column

# Nothing cancels out: rows are only added, or every row is there once. Or else something may.
ADDED_ONLY, MINIMAL, MINIMIZE = "ADDED_ONLY", "MINIMAL", "MINIMIZE"


def shape_text(shape: str, intervals: Mapping[TableName, Interval]) -> str:
    """Return a shape with what happened to each source.

    >>> orders = TableName("shop", "orders")
    >>> shape_text(ADDED_ONLY, {orders: Interval(orders, 1, 2, Kind.INSERTS)})
    'ADDED_ONLY (shop.orders: inserts only)'
    """
    found = {str(table): interval.what for table, interval in intervals.items()}
    sources = ", ".join(f"{table}: {kind}" for table, kind in sorted(found.items()))
    return f"{shape} ({sources})"


def facts_of(plan: Plan, intervals: Mapping[TableName, Interval]) -> Facts:
    """Return what the history of the sources alone tells about their changes."""
    return {
        table: Changes(
            interval.kind is Kind.INSERTS,
            net_by=interval.net_by(
                Column(field.name, field.type) for field in fields_of(plan, table).values()
            ),
        )
        for table, interval in intervals.items()
    }


def shape_of(delta: Plan, facts: Facts, rows_of: Collection[str] | None) -> str:
    """Return the shape of a delta; `rows_of` are the columns that are stored, None for groups.

    Groups are added up in any case, and changes that are joined are read copy by copy.
    """
    if is_insert_only(delta, facts):
        return ADDED_ONLY
    if rows_of is None or any(isinstance(node, Join | Aggregate) for node in walk(delta)):
        return MINIMIZE
    return MINIMAL if is_net(delta, rows_of, facts) else MINIMIZE


def expected_shape(
    plan: Plan,
    intervals: Mapping[TableName, Interval],
    rows_of: Collection[str] | None = None,
) -> str:
    """Return the shape that a refresh will have, from the history of the sources alone."""
    facts = facts_of(plan, intervals)
    delta = differentiate(plan, facts)
    shape = MINIMIZE if delta is None else shape_of(delta, facts, rows_of)
    return shape_text(shape, intervals)
