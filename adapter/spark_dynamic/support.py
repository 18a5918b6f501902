"""The one list of reasons: why a table was refreshed the way it was, and what to do about it.

Codes are part of the contract: tools match on them. Sentences are for people.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Why an action was taken."""

    code: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence}" if self.code else ""


NONE = Reason("", "")


class NotIncremental(Exception):
    """A query, or a part of one, that cannot be kept up to date from changes alone."""

    def __init__(self, code: str, detail: str) -> None:
        self.reason = reason(code, detail)
        super().__init__(str(self.reason))


_SENTENCES = {
    # Asked for, or the first time.
    "INITIAL_BUILD": "The table did not exist yet.",
    "REQUESTED": "A full refresh was requested.",
    "CONFIGURED_FULL": "The model has refresh_mode='full'.",
    "EMPTY_RUN": "The run was --empty or --sample; the next normal run rebuilds the table.",
    # Not refreshed at all.
    "SUSPENDED_BY_A_PERSON": (
        "Somebody suspended {detail}. The operation dynamic_table_resume lets it go on."
    ),
    # The query cannot be kept up to date from changes alone.
    "TEXT_NOT_READABLE": (
        "The query cannot be pinned to versions of its sources: {detail}. "
        "It runs as written, on every run."
    ),
    "PLANS_DIFFER": (
        "Spark reads the pinned query differently from the original, so the original runs as "
        "written, on every run: {detail}."
    ),
    "SOURCE_NOT_DELTA": (
        "{detail} is not a Delta table, so its changes cannot be seen. "
        "Convert it to Delta to have it refreshed only when something changed."
    ),
    "VOLATILE_FUNCTION": (
        "The query calls {detail}, whose value may change while no table does. "
        "A function of your own that never does can be listed in immutable_functions."
    ),
    "CLOCK_FUNCTION": "The query calls {detail}, so its result changes with the time.",
    "OUTER_JOIN": "The query has a {detail}, which is not refreshed incrementally yet.",
    "SEMI_JOIN": "The query has a {detail}, which is not refreshed incrementally yet.",
    "DISTINCT": "The query has a SELECT DISTINCT, which is not refreshed incrementally yet.",
    "SET_OPERATION": (
        "The query has {detail}; of the set operations only UNION ALL is refreshed incrementally."
    ),
    "WINDOW_FUNCTION": (
        "The query has a window function ({detail}), which is not refreshed incrementally yet."
    ),
    "LIMIT": "The query has a LIMIT or OFFSET, which is not refreshed incrementally yet.",
    "SUBQUERY": (
        "The query has a subquery in an expression, which is not refreshed incrementally yet. "
        "A join does the same."
    ),
    "TABLE_FUNCTION": ("The query reads from {detail}, which is not refreshed incrementally yet."),
    "RECURSION": "The query is recursive, which is not refreshed incrementally.",
    "GROUPING_SETS": (
        "The query groups by ROLLUP, CUBE or GROUPING SETS, which is not refreshed "
        "incrementally yet."
    ),
    "AGGREGATE_FUNCTION": (
        "The aggregate function {detail} is not refreshed incrementally yet; count, sum, avg, "
        "min and max are."
    ),
    "AGGREGATE_DISTINCT": "The query has {detail}, which is not refreshed incrementally yet.",
    "FLOAT_DECIDES": (
        "Rows are chosen or grouped by {detail}, a floating-point aggregate whose last digits "
        "depend on the order of rows. Aggregate decimals instead."
    ),
    "TYPE_NOT_SUPPORTED": (
        "Rows with a column of type {detail} cannot be told apart by a hash, so their changes "
        "cannot be applied."
    ),
    "TYPE_NOT_STORED": (
        "The query aggregates, or groups by, values of type {detail}, which Delta cannot store "
        "and find again."
    ),
    "SYNTAX_NOT_KNOWN": "The query has a part that is not refreshed incrementally: {detail}.",
    "OPERATORS_DIFFER": (
        "Spark sees other operators in the query than were read from its text: {detail}."
    ),
    "CHEAPER": "A full refresh is expected to be faster: {detail}.",
    "CHANGES_CHEAPER": (
        "Applying the changes is expected to be faster than a full refresh: {detail}."
    ),
    "DELTA_TOO_LARGE": (
        "The changes of this query are computed by a statement of {detail} characters, which "
        "takes longer to plan than a full refresh to run. Split the query into several models."
    ),
    "SELF_CHECK_FAILED": (
        "An incremental refresh did not give what the query gives: {detail}. This is a bug in "
        "dbt-spark-dynamic, please report it; the table was rebuilt and is refreshed in full "
        "from here on."
    ),
    "INCREMENTAL_FAILED": "The incremental refresh failed: {detail}.",
    # The stored table cannot be carried on.
    "DEFINITION_CHANGED": "The query, or a view that it reads, was changed.",
    "CONFIG_CHANGED": "The storage was reconfigured: {detail}.",
    "CONSTRAINTS_CHANGED": (
        "The contract has a constraint that the stored rows do not meet: {detail}."
    ),
    "COLUMNS_CHANGED": "The columns of the result changed: {detail}.",
    "SETTINGS_CHANGED": "Settings that change results are different now: {detail}.",
    "RECORD_LOST": "The table's storage carries no refresh record.",
    "AFTER_EMPTY_RUN": "The last run was --empty or --sample and left no state.",
    "FOREIGN_COMMIT": "Something else wrote to the table's storage: {detail}.",
    "SOURCE_REPLACED": "{detail} was dropped and created again.",
    "STORAGE_FORM": "The storage was built without what an incremental refresh needs.",
    "UPSTREAM_REBUILT": "{detail} was built anew, with another table behind it.",
    "CHANGES_OUT_OF_ORDER": (
        "{detail} has a commit that belongs before changes of other tables which the window "
        "already shows, so its changes are put in order anew."
    ),
    "ROW_KEYS_CHANGED": (
        "The changes are named by other keys of dynamic tables than before: {detail}."
    ),
    "HISTORY_LOST": "The history of {detail} no longer reaches back to the last refresh.",
}


def reason(code: str, detail: str = "") -> Reason:
    """Return the reason of a code; `detail` completes its sentence.

    >>> str(reason("SOURCE_REPLACED", "shop.orders"))
    'SOURCE_REPLACED: shop.orders was dropped and created again.'
    """
    return Reason(code, _SENTENCES[code].format(detail=detail))


def codes() -> list[str]:
    """Return all codes."""
    return list(_SENTENCES)
