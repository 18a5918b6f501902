"""Changes by key: for each key its new row, or the row that is gone."""

from spark_dynamic.changes.asked import ChangeRead, Position
from spark_dynamic.changes.columns import ACTION, IS_UPDATE
from spark_dynamic.changes.interval import Kind
from spark_dynamic.changes.question import ask
from spark_dynamic.changes.read import change_select
from spark_dynamic.changes.states import span
from spark_dynamic.errors import EngineError
from spark_dynamic.plan.nodes import Aggregate, walk
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse


def upsert_select(
    read: ChangeRead, start: Position, end: Position, cycle: Cycle, warehouse: Warehouse
) -> str:
    """Return the net changes without the old rows of updates.

    Rows need a key, unless they were only added: else nobody could tell which row is replaced.
    """
    question = ask(read, cycle, warehouse)
    if not question.layout.has_ids:
        between = span(question, start, end, cycle, warehouse)
        kinds = {interval.kind for interval in between.intervals.values()}
        adds = question.plan is not None and not any(
            isinstance(node, Aggregate) for node in walk(question.plan)
        )
        if not adds or not kinds <= {Kind.INSERTS}:
            raise EngineError(
                "UPSERTS_NEED_A_KEY",
                "upserts() names the row that an update replaces, so it needs a unique_key, "
                "unless the sources only had inserts in the interval.",
            )
    changes = change_select(read, start, end, cycle, warehouse)
    return f"SELECT * FROM (\n{changes}\n) WHERE NOT ({ACTION} = 'DELETE' AND {IS_UPDATE})"
