"""The one list of reasons: why a table was refreshed the way it was, and what to do about it.

Codes are part of the contract: tools match on them. Sentences and remedies are for people. A
remedy says in one sentence what can be done, to whoever wants it otherwise; the documents have
the same ones.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Why an action was taken."""

    code: str
    sentence: str
    # What can be done about it: shown where it is a surprise, not kept in records.
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence}" if self.code else ""


NONE = Reason("", "")


class NotIncremental(Exception):
    """A query, or a part of one, that cannot be kept up to date from changes alone."""

    def __init__(self, code: str, detail: str) -> None:
        self.reason = reason(code, detail)
        super().__init__(str(self.reason))


# The sentence and the remedy of each code.
_REASONS = {
    # Asked for, or the first time.
    "INITIAL_BUILD": ("The table did not exist yet.", "Nothing is to be done."),
    "REQUESTED": (
        "A full refresh was requested.",
        "Leave out --full-refresh to have only changes applied.",
    ),
    "CONFIGURED_FULL": (
        "The model has refresh_mode='full'.",
        "Use refresh_mode='auto' to have changes applied where that is possible.",
    ),
    "EMPTY_RUN": (
        "The run was --empty or --sample; the next normal run rebuilds the table.",
        "Run it without --empty and --sample to have all rows.",
    ),
    # Not refreshed at all.
    "SUSPENDED_BY_A_PERSON": (
        "Somebody suspended {detail}.",
        "The operation dynamic_table_resume lets it be refreshed again.",
    ),
    # The query cannot be kept up to date from changes alone.
    "TEXT_NOT_READABLE": (
        "The query cannot be pinned to versions of its sources: {detail}. "
        "It runs as written, on every run.",
        "Write what is in the way in a plainer form, or leave it to a view over the dynamic "
        "table; create views anew that were made with other settings.",
    ),
    "PLANS_DIFFER": (
        "Spark reads the pinned query differently from the original, so the original runs as "
        "written, on every run: {detail}.",
        "Name all tables plainly and give every column an alias; if that does not help, please "
        "report the query.",
    ),
    "SOURCE_NOT_DELTA": (
        "{detail} is not a Delta table, so its changes cannot be seen.",
        "Convert it to Delta, or copy it with a model of its own.",
    ),
    "VOLATILE_FUNCTION": (
        "The query calls {detail}, whose value may change while no table does.",
        "Call it in a view over the dynamic table; a function of your own that depends on its "
        "arguments alone can be named in immutable_functions.",
    ),
    "CLOCK_FUNCTION": (
        "The query calls {detail}, so its result changes with the time.",
        "Leave the clock to a view over the dynamic table, for instance a filter by current_date.",
    ),
    "OUTER_JOIN": (
        "The query has a {detail}, which is not refreshed incrementally yet.",
        "Use an inner join if every row has a partner; else make the sides dynamic tables, and "
        "join them in a view.",
    ),
    "SEMI_JOIN": (
        "The query has a {detail}, which is not refreshed incrementally yet.",
        "Write a SEMI JOIN as an inner join with the other side grouped by its keys; make the "
        "sides of an ANTI JOIN dynamic tables, and join them in a view.",
    ),
    "DISTINCT": (
        "The query has a SELECT DISTINCT, which is not refreshed incrementally yet.",
        "Write GROUP BY ALL instead, which gives the same rows.",
    ),
    "SET_OPERATION": (
        "The query has {detail}; of the set operations only UNION ALL is refreshed incrementally.",
        "For UNION, group a UNION ALL by all its columns; for EXCEPT and INTERSECT make both "
        "sides dynamic tables, and compare them in a view.",
    ),
    "WINDOW_FUNCTION": (
        "The query has a window function ({detail}), which is not refreshed incrementally yet.",
        "Leave the window function to a view over a dynamic table with the rest of the query.",
    ),
    "LIMIT": (
        "The query has a LIMIT or OFFSET, which is not refreshed incrementally yet.",
        "Leave it to a view over a dynamic table with the rest of the query.",
    ),
    "SUBQUERY": (
        "The query has a subquery in an expression, which is not refreshed incrementally yet.",
        "Write it as an inner join, with a grouped subquery where a row may find several; leave "
        "NOT IN and NOT EXISTS to a view over the dynamic table.",
    ),
    "TABLE_FUNCTION": (
        "The query reads from {detail}, which is not refreshed incrementally yet.",
        "Leave the function to a view over a dynamic table with the rest of the query; VALUES can "
        "be a seed.",
    ),
    "RECURSION": (
        "The query is recursive, which is not refreshed incrementally.",
        "Leave the recursion to a view over dynamic tables that prepare what it reads.",
    ),
    "GROUPING_SETS": (
        "The query groups by ROLLUP, CUBE or GROUPING SETS, which is not refreshed "
        "incrementally yet.",
        "Write one GROUP BY for each set, and put them together with UNION ALL.",
    ),
    "AGGREGATE_FUNCTION": (
        "The aggregate function {detail} is not refreshed incrementally yet; count, sum, avg, "
        "min and max are.",
        "Use these five where they say the same; else aggregate in a view over a dynamic table "
        "with the rows.",
    ),
    "AGGREGATE_DISTINCT": (
        "The query has {detail}, which is not refreshed incrementally yet.",
        "Group by the column as well in a subquery, and aggregate that without DISTINCT.",
    ),
    "FLOAT_DECIDES": (
        "Rows are chosen or grouped by {detail}, a floating-point aggregate whose last digits "
        "depend on the order of rows.",
        "Cast to a decimal before you aggregate.",
    ),
    "TYPE_NOT_SUPPORTED": (
        "Rows with a column of type {detail} cannot be told apart by a hash, so their changes "
        "cannot be applied.",
        "Make a text of the column, with to_json or a cast, or leave it out.",
    ),
    "TYPE_NOT_STORED": (
        "The query aggregates, or groups by, values of type {detail}, which Delta cannot store "
        "and find again.",
        "Make a number, a date or a plain text of the values first.",
    ),
    "SYNTAX_NOT_KNOWN": (
        "The query has a part that is not refreshed incrementally: {detail}.",
        "Write that part in another way, or leave it to a view over the dynamic table.",
    ),
    "CHAR_PADDING": (
        "Spark pads texts of type char in the query in a way that is not known here: {detail}.",
        "Compare char columns with texts or with each other, or declare them as string.",
    ),
    "OPERATORS_DIFFER": (
        "Spark sees other operators in the query than were read from its text: {detail}.",
        "Write unusual functions in another way, or leave them to a view over the dynamic table; "
        "please report the query.",
    ),
    "CHEAPER": (
        "A full refresh is expected to be faster: {detail}.",
        "Use refresh_mode='incremental' to have changes applied all the same.",
    ),
    "CHANGES_CHEAPER": (
        "Applying the changes is expected to be faster than a full refresh: {detail}.",
        "Use refresh_mode='full' to have the table computed anew all the same.",
    ),
    "DELTA_TOO_LARGE": (
        "The changes of this query are computed by {detail}, which takes longer to plan than a "
        "full refresh to run.",
        "Split the query into several dynamic tables.",
    ),
    "SELF_CHECK_FAILED": (
        "An incremental refresh did not give what the query gives: {detail}. This is a bug in "
        "dbt-spark-dynamic; the table was rebuilt and is refreshed in full from here on.",
        "Please report it, with the query and the row that the state table names; after an "
        "upgrade, --full-refresh trusts the query again.",
    ),
    "PLANNING_FAILED": (
        "The refresh could not be planned, because of a fault in dbt-spark-dynamic ({detail}).",
        "Please report it, with the query and the message.",
    ),
    "INCREMENTAL_FAILED": (
        "The incremental refresh failed: {detail}.",
        "Mend it if the fault is in the data or the cluster; else please report it.",
    ),
    # The stored table cannot be carried on.
    "DEFINITION_CHANGED": (
        "The query, or a view or function that it reads, was changed.",
        "Keep to edits of format, comments, aliases and names of common tables if it is not to "
        "be built anew.",
    ),
    "CONFIG_CHANGED": (
        "The storage was reconfigured: {detail}.",
        "Set it back, or use on_configuration_change='continue', to keep the storage as it is.",
    ),
    "CONSTRAINTS_CHANGED": (
        "The contract has a constraint that the stored rows do not meet: {detail}.",
        "Mend the rows and refresh the table before you add a constraint.",
    ),
    "COLUMNS_CHANGED": (
        "The columns of the result changed: {detail}.",
        "Name columns instead of *, and cast those whose types may change.",
    ),
    "SETTINGS_CHANGED": (
        "Settings that change results are different now: {detail}.",
        "Give all runs of the model the same settings in the profile.",
    ),
    "RECORD_LOST": (
        "The table's storage carries no refresh record.",
        "Run it at least once within history_retention, and do not replace its storage.",
    ),
    "AFTER_EMPTY_RUN": (
        "The last run was --empty or --sample and left no state.",
        "Give runs with --empty or --sample a target of their own.",
    ),
    "FOREIGN_COMMIT": (
        "Something else wrote to the table's storage: {detail}.",
        "Do not write to the storage: only OPTIMIZE, VACUUM and changes of properties may be "
        "done there.",
    ),
    "STORAGE_ALTERED": (
        "Something else changed the columns of the table's storage: {detail}.",
        "Change the query of the model instead; the storage follows it.",
    ),
    "STORAGE_LENGTHS": (
        "A text is longer than the storage takes, which an older version gave lengths to.",
        "Let it be built anew this once; storage has no lengths from then on.",
    ),
    "SOURCE_REPLACED": (
        "{detail} was dropped and created again.",
        "Overwrite a source, for instance with INSERT OVERWRITE, instead of dropping it.",
    ),
    "STORAGE_FORM": (
        "The storage was built without what an incremental refresh needs.",
        "Let it be built anew this once; changes are applied from then on.",
    ),
    "UPSTREAM_REBUILT": (
        "{detail} was built anew, with another table behind it.",
        "Keep the types of columns that are read elsewhere; else what reads them begins anew.",
    ),
    "CLOCK_AHEAD": (
        "The last refresh was dated {detail}, which is still to come.",
        "Set the clock of the machine that ran it.",
    ),
    "CHANGES_OUT_OF_ORDER": (
        "{detail} has a commit that belongs before changes of other tables which the window "
        "already shows, so its changes are put in order anew.",
        "Make the query a dynamic table of its own, and ask for the changes of that.",
    ),
    "ROW_KEYS_CHANGED": (
        "The changes are named by other keys of dynamic tables than before: {detail}.",
        "Keep the unique_key of a dynamic table while windows of its changes are kept.",
    ),
    "HISTORY_LOST": (
        "The history of {detail} no longer reaches back to the last refresh.",
        "Refresh more often, or raise delta.logRetentionDuration and "
        "delta.deletedFileRetentionDuration of the source.",
    ),
}


def reason(code: str, detail: str = "") -> Reason:
    """Return the reason of a code; `detail` completes its sentence.

    >>> str(reason("SOURCE_REPLACED", "shop.orders"))
    'SOURCE_REPLACED: shop.orders was dropped and created again.'
    """
    sentence, remedy = _REASONS[code]
    return Reason(code, sentence.format(detail=detail), remedy)


def codes() -> list[str]:
    """Return all codes."""
    return list(_REASONS)
