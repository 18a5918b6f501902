"""A mark in the log that the newest rows are wrong: whatever happens next, they are rebuilt."""

from dataclasses import replace

from spark_dynamic.frontier.record import Record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.amend import amend
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.support import Reason
from spark_dynamic.warehouse import Warehouse


def distrust(
    view: TableName, fingerprint: str, why: Reason, cycle: Cycle, warehouse: Warehouse
) -> None:
    """Mark the newest rows as wrong, if they were computed in the way that gave wrong ones.

    A rebuild follows at once, but it may be forbidden, fail, or be killed.
    """

    def mark(record: Record) -> Record | None:
        if record.fingerprint != fingerprint:
            return None
        return replace(record, reason_code=why.code, reason=str(why), distrusted=fingerprint)

    amend(view, mark, cycle, warehouse)
