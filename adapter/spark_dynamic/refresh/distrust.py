"""A mark in the log that the newest rows are wrong: whatever happens next, they are rebuilt."""

import uuid
from dataclasses import replace

from spark_dynamic.apply.commit import carrying
from spark_dynamic.apply.storage import write_nothing
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.history import records
from spark_dynamic.frontier.record import write_record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.new_record import number_after
from spark_dynamic.refresh.stored import find_stored
from spark_dynamic.support import Reason
from spark_dynamic.warehouse import Warehouse

_ATTEMPTS = 5


def distrust(
    view: TableName, fingerprint: str, why: Reason, cycle: Cycle, warehouse: Warehouse
) -> None:
    """Mark the newest rows as wrong, if they were computed in the way that gave wrong ones.

    A rebuild follows at once, but it may be forbidden, fail, or be killed.
    """
    for _ in range(_ATTEMPTS):
        stored = find_stored(view, cycle, warehouse)
        newest = stored.tail.newest if stored else None
        if stored is None or newest is None or newest.record.fingerprint != fingerprint:
            return
        record = replace(
            newest.record,
            refresh_number=number_after(newest.record, view, cycle),
            attempt=str(uuid.uuid4()),
            cycle=cycle.id,
            based_on=stored.version,
            action="NO_DATA",
            reason_code=why.code,
            reason=str(why),
            distrusted=fingerprint,
        )
        try:
            with carrying(
                warehouse, write_record(record), (record.incarnation, record.refresh_number)
            ):
                warehouse.execute(write_nothing(stored.storage))
        except WarehouseError as error:
            if not error.is_conflict:
                raise
        cycle.catalog.forget(stored.storage)
        # Delta skips what comes second, without a word.
        commits = cycle.catalog.history(warehouse, stored.storage, since=stored.version)
        if any(found.record.attempt == record.attempt for found in records(commits)):
            return
