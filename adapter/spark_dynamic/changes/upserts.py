"""Changes by key: for each key its new row, or the row that is gone."""

from spark_dynamic.changes.asked import Mode
from spark_dynamic.changes.columns import ACTION, IS_UPDATE
from spark_dynamic.changes.interval import Kind
from spark_dynamic.changes.question import Question
from spark_dynamic.changes.states import Span
from spark_dynamic.errors import EngineError
from spark_dynamic.plan.nodes import Aggregate, walk


def upserts(question: Question, span: Span, changes: str) -> str:
    """Return changes without the old rows of updates: of the net effect, or of every commit.

    Rows need a key, unless they were only added: else nobody could tell which row is replaced.
    """
    if not question.layout.has_ids and not _only_adds(question, span):
        raise EngineError(
            "UPSERTS_NEED_A_KEY",
            "An upsert names the row that it replaces, so upserts need a unique_key, unless the "
            "sources only had inserts in the interval.",
        )
    return f"SELECT * FROM (\n{changes}\n) WHERE NOT ({ACTION} = 'DELETE' AND {IS_UPDATE})"


def _only_adds(question: Question, span: Span) -> bool:
    if question.read.mode is Mode.APPEND_ONLY:
        return True
    is_monotonic = question.plan is not None and not any(
        isinstance(node, Aggregate) for node in walk(question.plan)
    )
    return is_monotonic and all(i.kind is Kind.INSERTS for i in span.intervals.values())
