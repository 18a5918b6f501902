"""append_only: the rows that came into a query because rows were inserted into its sources.

Only what the change feed calls an insert counts: what an update or a delete makes appear is left
out. A source row counts once: of copies that were deleted and inserted again, none is new. How
many copies of a row (or rows of a key) are new at a commit is by how much inserts minus deletes
since the start rise above all that they were before. In a join, a new row meets the other
sources as they stand at its commit.
"""

from collections.abc import Sequence
from dataclasses import replace

from spark_dynamic.apply.identity import HASH, row_hash
from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.changes.layout import is_kept
from spark_dynamic.changes.min_delta import delta_of, min_delta, nothing
from spark_dynamic.changes.question import Question, source_keys
from spark_dynamic.changes.redo_log import COMMIT
from spark_dynamic.changes.states import Span, between
from spark_dynamic.changes.steps import Step, check_count, feed_runs, steps_of, walked
from spark_dynamic.changes.used_columns import had_by, may_have_others
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.compare import is_bookkeeping
from spark_dynamic.names import TableName, quote
from spark_dynamic.plan.nodes import Aggregate, Join, walk
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.sql.write import WEIGHT
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column, Warehouse

_SUM, _BEFORE, _NUMBER = "__dyn_sum", "__dyn_before", "__dyn_number"


def check_monotonic(question: Question) -> None:
    """Refuse a query in which an insert into a source could take rows away."""
    if question.plan is None:
        raise EngineError(
            "NOT_MONOTONIC",
            "append_only is for queries of filters, projections, inner joins and UNION ALL, in "
            f"which inserts only add rows. {question.why_not}",
        )
    if any(isinstance(node, Aggregate) for node in walk(question.plan)):
        raise EngineError(
            "NOT_MONOTONIC",
            "append_only is for queries of filters, projections, inner joins and UNION ALL, in "
            "which inserts only add rows. This one has GROUP BY or an aggregate function.",
        )


def append_only(question: Question, span: Span, cycle: Cycle, warehouse: Warehouse) -> str:
    """Return the rows that were inserted for the first time between two positions."""
    assert question.plan is not None
    if all(interval.kind is Kind.INSERTS for interval in span.intervals.values()):
        return min_delta(question, span, cycle, warehouse)
    steps = steps_of(span, cycle, warehouse)
    inserts = _Inserts(question, span, steps, cycle, warehouse)
    if any(isinstance(node, Join) for node in walk(question.plan)):
        rows = _joined(question, span, steps, inserts, cycle, warehouse)
    else:
        found = {table: inserts.of(table) for table in span.intervals}
        states = replace(between(question, span), deltas=found, deltas_only_add=True)
        delta = delta_of(question.plan, states)
        rows = [delta.sql] if delta else []
    if not rows:
        return nothing(question, span, cycle, warehouse)
    return question.layout.added("\nUNION ALL\n".join(rows), shape="APPEND_ONLY")


def _joined(
    question: Question,
    span: Span,
    steps: list[Step],
    inserts: "_Inserts",
    cycle: Cycle,
    warehouse: Warehouse,
) -> list[str]:
    """Return what the inserts of each commit add to a join."""
    check_count(steps, "append_only")
    assert question.plan is not None
    names = ", ".join(name for name, _ in question.layout.inside)
    found: list[str] = []
    for moved in walked(question, span, steps, cycle, warehouse):
        table, version = moved.step.table, moved.step.version
        rows = f"SELECT * FROM (\n{inserts.of(table)}\n) WHERE {COMMIT} = {version}"
        states = moved.states(question)
        states = replace(states, deltas={table: rows}, deltas_only_add=True)
        delta = delta_of(question.plan, states)
        if delta is None:
            continue
        # A table that is joined with itself is read as it is without the new rows, too.
        sql = delta.sql if delta.only_adds else question.layout.remaining(delta.sql)
        found.append(f"SELECT {names} FROM (\n{sql}\n)")
    return found


class _Inserts:
    """The new rows of each source, with the commit that brought them."""

    def __init__(
        self,
        question: Question,
        span: Span,
        steps: list[Step],
        cycle: Cycle,
        warehouse: Warehouse,
    ) -> None:
        self._question = question
        self._span = span
        self._steps = steps
        self._cycle = cycle
        self._warehouse = warehouse
        self._known: dict[TableName, str] = {}

    def of(self, table: TableName) -> str:
        """Return the new rows of a source, each with weight 1."""
        if table not in self._known:
            self._known[table] = self._find(table)
        return self._known[table]

    def _find(self, table: TableName) -> str:
        relation = self._cycle.catalog.relation(self._warehouse, table)
        assert relation is not None
        columns = [column for column in relation.columns if not is_bookkeeping(column.name)]
        start = self._span.then(table)
        if start.table == table and may_have_others(start, self._cycle, self._warehouse):
            # Rows are told apart by what they have had all the time.
            columns = had_by(start, columns, self._warehouse)
        runs = feed_runs([step for step in self._steps if step.table == table])
        rows = "\nUNION ALL\n".join(_events(run, columns) for run in runs)
        if all(run.kind is Kind.INSERTS for run in runs):
            return rows
        keys = source_keys(self._question.read, self._question.analysis).get(table, columns)
        try:
            return first_inserts(rows, columns, keys)
        except NotIncremental as refused:
            raise EngineError(
                "CHANGES_NOT_KNOWN",
                f"Which rows of {table} were inserted for the first time cannot be told. "
                f"{refused.reason} Name a key of {table} in row_keys.",
            ) from refused


def _events(run: Interval, columns: Sequence[Column]) -> str:
    """Return what was inserted (weight 1) and deleted (-1), without updates."""
    names = ", ".join(quote(column.name) for column in columns)
    if run.kind is Kind.REWRITE:
        version = f"CAST({run.new} AS bigint) AS {COMMIT}"
        return f"SELECT {names}, {version}, {WEIGHT} FROM (\n{run.rows(columns)}\n)"
    shown = f"SELECT {names}, _commit_version AS {COMMIT}"
    if run.kind is Kind.INSERTS:
        return f"{shown}, 1 AS {WEIGHT} FROM {run.feed}"
    weight = "IF(_change_type = 'insert', 1, -1)"
    return (
        f"{shown}, {weight} AS {WEIGHT} FROM {run.feed} WHERE _change_type IN ('insert', 'delete')"
    )


def first_inserts(rows: str, columns: Sequence[Column], keys: Sequence[Column]) -> str:
    """Return those inserts that are no repetitions; `keys` tell which rows are the same."""
    names = ", ".join(quote(column.name) for column in columns)
    pairs = zip(row_hash((quote(key.name), key.type) for key in keys), HASH, strict=True)
    hashes = ", ".join(f"{sql} AS {name}" for sql, name in pairs)
    # The columns beside the hash let predicates on them pass.
    same = ", ".join([*HASH, *(quote(key.name) for key in keys if is_kept(key.type))])
    summed = (
        f"SELECT *, sum({WEIGHT}) OVER (PARTITION BY {same} ORDER BY {COMMIT} "
        f"RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS {_SUM}, "
        f"row_number() OVER (PARTITION BY {same}, {COMMIT}, {WEIGHT} ORDER BY {HASH[0]}) "
        f"AS {_NUMBER}\nFROM (\nSELECT *, {hashes} FROM (\n{rows}\n)\n)"
    )
    highest = (
        f"SELECT *, max({_SUM}) OVER (PARTITION BY {same} ORDER BY {COMMIT} "
        f"RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS {_BEFORE}\nFROM (\n{summed}\n)"
    )
    return (
        f"SELECT {names}, {COMMIT}, 1 AS {WEIGHT} FROM (\n{highest}\n)\nWHERE {WEIGHT} = 1 AND "
        f"{_NUMBER} <= greatest({_SUM}, 0) - greatest(coalesce({_BEFORE}, 0), 0)"
    )
