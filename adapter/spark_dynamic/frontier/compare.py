"""Do two versions of a table hold the same rows?

History answers first. Only commits that took rows away and put rows back may have left the
table as it was, and only those versions are compared row by row.
"""

import re
from collections.abc import Iterable

from spark_dynamic.catalog import describe_query
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.history import (
    Effect,
    effect,
    net_rows,
    replaces_all,
    replaces_part,
    rows_left,
)
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName, quote
from spark_dynamic.sql.char_columns import find_char_columns
from spark_dynamic.warehouse import Column, Commit, Warehouse

# In a dynamic table's storage: identity and state, which a rebuild with the same rows renews.
_BOOKKEEPING = re.compile(r"__dyn_(?!column_|visible)", re.IGNORECASE)
# The weight of a row of a change feed.
FEED_WEIGHT = "IF(_change_type IN ('insert', 'update_postimage'), 1, -1)"
# GROUP BY sees equals exactly when the values are the same for these types only.
_EXACT = re.compile(
    r"(tinyint|smallint|int|bigint|boolean|string|binary|date|timestamp|timestamp_ntz"
    r"|decimal\(\d+,\d+\)|void|char\(\d+\)|varchar\(\d+\)|interval [a-z ]+)"
)


def is_bookkeeping(column: str) -> bool:
    """Tell whether a column of a storage table is the engine's own and says nothing of rows."""
    return _BOOKKEEPING.match(column) is not None


def history_says(commits: list[Commit]) -> bool | None:
    """Tell from commits whether rows changed: yes, no, or (None) only a comparison can tell."""
    effects = {effect(commit) for commit in commits} - {Effect.NOTHING, Effect.COLUMNS}
    if not effects:
        return False
    if effects in ({Effect.ADDED}, {Effect.REMOVED}):
        return True
    return None


def row_count(
    commits: list[Commit], version: int, before: tuple[int, int] | None = None
) -> int | None:
    """Return how many rows a version has, if history alone tells: a rewrite, then changes.

    `commits` are newest first. `before` is an earlier version and how many rows that had.
    """
    total = 0
    for commit in commits:
        if commit.version > version:
            continue
        if before is not None and commit.version == before[0]:
            return total + before[1]
        left = rows_left(commit)
        if left is not None:
            return total + left
        net = net_rows([commit])
        if net is None:
            return None
        total += net
    return None


def touches_columns(commits: list[Commit]) -> bool:
    """Tell whether columns were added, dropped, renamed or changed."""
    return any(effect(commit) is Effect.COLUMNS for commit in commits)


def may_touch_columns(commits: Iterable[Commit]) -> bool:
    """Tell whether columns may be others after some commits: also if rows were replaced."""
    return any(
        effect(commit) is Effect.COLUMNS or replaces_all(commit) or replaces_part(commit)
        for commit in commits
    )


def same_columns(warehouse: Warehouse, table: TableName, old: int, new: int) -> bool:
    """Tell whether two versions have the same columns, comments aside."""
    versions = [f"{table.sql} VERSION AS OF {version}" for version in (old, new)]
    try:
        before, after = (describe_query(warehouse, f"SELECT * FROM {v}") for v in versions)
        if before != after:
            return False
        if not any("string" in column.type for column in before):
            return True
        # Spark stops padding the values of a column that is no longer a char.
        padded, still_padded = (find_char_columns(warehouse, v) for v in versions)
        return padded == still_padded
    except WarehouseError:
        return False


def same_rows(
    warehouse: Warehouse, table: TableName, old: int, new: int, feed: bool = False
) -> bool:
    """Compare two versions as bags. What cannot be compared counts as different.

    With `feed` only what the change feed shows is compared, if the table has one.
    """
    before, after = (f"SELECT * FROM {table.sql} VERSION AS OF {v}" for v in (old, new))
    try:
        columns = describe_query(warehouse, before)
        if columns != describe_query(warehouse, after):
            return False
        comparable = [_comparable(c) for c in columns if not is_bookkeeping(c.name)]
        if None in comparable:
            return False
        keys = ", ".join(f"{key} AS k{i}" for i, key in enumerate(comparable))
        both = f"SELECT {keys}, 1 AS w FROM ({before}) UNION ALL SELECT {keys}, -1 FROM ({after})"
        changes = f"SELECT {keys}, {FEED_WEIGHT} AS w FROM {change_feed(table, old, new)}"
        if feed:
            try:
                return _cancels(warehouse, changes, len(comparable))
            except WarehouseError:
                # No feed, or none for the whole interval: the versions themselves tell, too.
                pass
        return _cancels(warehouse, both, len(comparable))
    except WarehouseError:
        # One of the versions can no longer be read: nothing proves that they are equal.
        return False


def _cancels(warehouse: Warehouse, weighted: str, width: int) -> bool:
    """Tell whether the weights of equal rows add up to 0."""
    keys = ", ".join(f"k{i}" for i in range(width))
    return not warehouse.rows(
        f"SELECT 1 FROM ({weighted}) GROUP BY {keys} HAVING sum(w) <> 0 LIMIT 1"
    )


def change_feed(table: TableName, old: int, new: int) -> str:
    """Return the relation of a table's changes after one version up to another."""
    name, function = table.sql, "table_changes"
    if table.is_path:
        name, function = table.name, "table_changes_by_path"
    return f"{function}({literal(name)}, {old + 1}, {new})"


def _comparable(column: Column) -> str | None:
    """Return an expression that is equal just when the column's values are the same."""
    name = quote(column.name)
    kind = column.type.lower()
    if _EXACT.fullmatch(kind):
        return name
    if kind in ("float", "double"):
        # As numbers, 0.0 and -0.0 would be equal.
        return f"cast({name} AS string)"
    if kind.startswith("string collate"):
        return f"cast({name} AS binary)"
    return None
