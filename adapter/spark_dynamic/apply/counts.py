"""How many rows that users see an incremental refresh added and deleted."""

from spark_dynamic.frontier.compare import change_feed
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Commit, Warehouse

_ADDED, _DELETED = ("insert", "update_postimage"), ("delete", "update_preimage")


def rows_written(
    storage: TableName, condition: str, commit: Commit, warehouse: Warehouse
) -> tuple[int, int]:
    """Return rows inserted and deleted by a commit; an update is both.

    Where a condition hides some of the storage, only its change feed can tell.
    """
    if condition:
        feed = change_feed(storage, commit.version - 1, commit.version)
        rows = warehouse.rows(
            f"SELECT _change_type AS kind, count(*) AS n FROM {feed} WHERE {condition} "
            "GROUP BY _change_type"
        )
        counts = {row["kind"]: int(row["n"]) for row in rows}
        added, deleted = (sum(counts.get(k, 0) for k in kinds) for kinds in (_ADDED, _DELETED))
        return added, deleted
    if commit.operation != "MERGE":
        return int(commit.metrics.get("numOutputRows", 0)), 0
    inserted, updated, deleted = (
        int(commit.metrics.get(f"numTargetRows{what}", 0))
        for what in ("Inserted", "Updated", "Deleted")
    )
    return inserted + updated, deleted + updated
