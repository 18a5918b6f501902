"""min_delta: the net effect of an interval on the rows of a query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spark_dynamic.changes.contents import contents, difference
from spark_dynamic.changes.question import Question
from spark_dynamic.changes.states import Span, States, between
from spark_dynamic.delta.analysis import is_delete_only, is_insert_only, is_net
from spark_dynamic.delta.differentiate import differentiate
from spark_dynamic.plan.nodes import Aggregate, Plan, State, scans, walk
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.sql.write import LONGEST, Writer
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Warehouse


@dataclass(frozen=True)
class Delta:
    """Changed rows as SQL."""

    sql: str
    # Whether all weights are 1.
    only_adds: bool = False
    # Whether all weights are -1.
    only_removes: bool = False
    # Whether every row is there once, with its net weight.
    is_net: bool = False
    # Whether the versions have to be compared instead: see LONGEST.
    is_too_much: bool = False


def min_delta(question: Question, span: Span, cycle: Cycle, warehouse: Warehouse) -> str:
    """Return the net changes between two positions."""
    if not span.intervals:
        return nothing(question, span, cycle, warehouse)
    if question.plan is not None:
        states = between(question, span)
        delta = delta_of(question.plan, states)
        if delta is None:
            return nothing(question, span, cycle, warehouse)
        if not delta.is_too_much:
            layout = question.layout
            if delta.only_removes:
                return layout.removed(delta.sql)
            if delta.only_adds:
                return layout.added(delta.sql)
            return layout.net(delta.sql, is_net=delta.is_net)
    rows = difference(question, span.start, span.end, cycle, warehouse)
    return question.layout.net(rows, shape="DIFFERENCE")


def delta_of(plan: Plan, states: States) -> Delta | None:
    """Return the changes of a plan's rows; None if nothing can have changed."""
    facts = states.facts()
    delta = differentiate(plan, facts)
    if delta is None:
        return None
    olds = {scan.table for scan in scans(delta) if scan.state is State.OLD}
    weighted = olds & set(states.deltas)
    if weighted and any(isinstance(node, Aggregate) for node in walk(delta)):
        # An aggregate needs plain rows.
        return Delta("", is_too_much=True)
    only_adds = is_insert_only(delta, facts) and not weighted
    only_removes = is_delete_only(delta, facts) and not weighted
    # Rows that are shown as they are need one row for every copy.
    is_shown = only_adds or only_removes
    as_net = not is_shown and not weighted and is_net(delta, plan.columns, facts)
    try:
        sql = Writer(replace(states, is_net=as_net), longest=LONGEST).weighted(delta)
    except NotIncremental:
        return Delta("", is_too_much=True)
    return Delta(sql, only_adds, only_removes, as_net)


def nothing(
    question: Question,
    span: Span,
    cycle: Cycle,
    warehouse: Warehouse,
    more: Sequence[str] = (),
) -> str:
    """Return no rows, under the names and with the types that there would be."""
    rows = contents(question, span.end, cycle, warehouse)
    return question.layout.added(f"SELECT * FROM (\n{rows}\n) WHERE false", more=more)
