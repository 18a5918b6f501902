"""How a query's result is kept up to date from changes: its plan, and the form of its storage."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spark_dynamic.apply.groups import Groups
from spark_dynamic.apply.rounding import Rounding, rounding
from spark_dynamic.apply.rows import Rows
from spark_dynamic.apply.shape import (
    GroupShape,
    check_collations,
    check_floats,
    check_stored,
    group_shape,
)
from spark_dynamic.apply.storage import stored_columns
from spark_dynamic.catalog import describe_queries, describe_query
from spark_dynamic.frontier.record import StoredColumn, Verdict
from spark_dynamic.names import TableName
from spark_dynamic.plan.char_padding import with_padding
from spark_dynamic.plan.fingerprint import fingerprint, meanings
from spark_dynamic.plan.nodes import Output, Plan, Project, Query, State, column
from spark_dynamic.plan.types import measure_types, typed_nodes, with_union_types
from spark_dynamic.refresh.analyse import Analysis
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.char_columns import all_typed
from spark_dynamic.sql.pin import pinned
from spark_dynamic.sql.write import Relation, Writer
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column, Warehouse


@dataclass(frozen=True)
class Maintenance:
    """A plan that can be differentiated, and where its result is kept."""

    query: Query
    fingerprint: str
    target: Rows | Groups

    @property
    def state(self) -> dict[str, Any]:
        """What the record keeps of the storage's form."""
        return self.target.state

    @property
    def plan(self) -> Plan:
        """The part whose delta is computed: below the groups, or all of it."""
        if isinstance(self.target, Groups):
            return self.target.shape.aggregate.input
        return self.query.plan

    @property
    def rows_of(self) -> tuple[str, ...] | None:
        """The columns of the plan that are stored row by row; None if groups are."""
        return self.query.columns if isinstance(self.target, Rows) else None

    def build(self, pinned: str, versions: Mapping[TableName, int], refresh: int) -> str:
        """Return the query that fills the storage; rows come from the original text."""
        if isinstance(self.target, Rows):
            return self.target.build(pinned, refresh)
        return self.target.build(Writer(Pinned(versions)).select(self.plan).sql)

    def rounding(self, versions: Mapping[TableName, int]) -> Rounding | None:
        """Return how far rounding may move the result; None if all of it is exact."""
        if isinstance(self.target, Rows):
            return None
        return rounding(self.target, Writer(Pinned(versions)).select(self.plan).sql)


class Pinned:
    """The sources at the versions of a cut."""

    def __init__(self, versions: Mapping[TableName, int]) -> None:
        self._versions = versions

    def relation(self, table: TableName, state: State) -> Relation:
        """Return a table at its version."""
        assert state is State.NEW
        return Relation(f"{table.sql} VERSION AS OF {self._versions[table]}")


def maintain(
    analysis: Analysis,
    verdict: Verdict,
    schema: str,
    versions: Mapping[TableName, int],
    warehouse: Warehouse,
    narrowed_by: frozenset[str] = frozenset(),
    partitions: frozenset[str] = frozenset(),
) -> Maintenance:
    """Find out how a query can be maintained. Raises NotIncremental if it cannot."""
    assert analysis.query is not None
    if verdict.not_incremental:
        code = "PLANNING_FAILED" if verdict.planning_failed else "OPERATORS_DIFFER"
        raise NotIncremental(code, verdict.not_incremental)
    if verdict.chars_differ:
        raise NotIncremental("CHAR_PADDING", verdict.chars_differ)
    known = all_typed(analysis.relations, verdict.chars)
    bound = with_padding(bind(analysis.query, schema, lambda table: known[table]))
    text, writer = pinned(analysis.query, versions), Writer(Pinned(versions))

    def describe(plan: Plan) -> tuple[Column, ...]:
        return describe_query(warehouse, writer.select(plan).sql)

    query = replace(bound, plan=with_union_types(bound.plan, describe))
    outputs = tuple(Output(f"output_{i}", column(id)) for i, id in enumerate(query.columns))
    result, nodes = Project(query.plan, outputs), typed_nodes(query.plan)
    asked = [(writer.select(node).sql, len(node.columns)) for node in (result, *nodes)]
    ours, *types, original = describe_queries(warehouse, text, asked)
    columns = stored_columns(original)
    _check_result(query, [found.type for found in ours], columns)
    measures = measure_types(nodes, types)
    check_floats(query, measures)
    check_collations(query, measures)
    shape = _in_order(group_shape(query), query)
    if shape:
        check_stored(shape, measures)
    target = (
        Groups(shape, measures, columns, partitions)
        if shape
        else Rows(columns, narrowed_by, partitions)
    )
    names = tuple(stored.name for stored in columns)
    found = Maintenance(query, fingerprint(bound, names), target)
    # What fails when it is built fails here: types have no hash, for instance.
    found.build("", versions, 0)
    return found


def _in_order(shape: GroupShape | None, query: Query) -> GroupShape | None:
    """Number keys and measures by their meaning: cosmetic edits may change their order."""
    if shape is None:
        return None
    known, aggregate = meanings(query), shape.aggregate
    keys = tuple(sorted(aggregate.keys, key=lambda key: known[key.id]))
    measures = tuple(sorted(aggregate.measures, key=lambda measure: known[measure.id]))
    return replace(shape, aggregate=replace(aggregate, keys=keys, measures=measures))


def _check_result(query: Query, types: list[str], columns: tuple[StoredColumn, ...]) -> None:
    """Refuse a query that was not read as Spark reads it: other names or types of columns."""
    ours, sparks = query.names, [stored.name for stored in columns]
    same = len(ours) == len(sparks) and all(
        not our or our.lower() == their.lower() for our, their in zip(ours, sparks, strict=True)
    )
    if not same:
        raise NotIncremental("OPERATORS_DIFFER", f"columns {', '.join(ours)}")
    if types != [stored.type for stored in columns]:
        raise NotIncremental("OPERATORS_DIFFER", f"types {types}")
