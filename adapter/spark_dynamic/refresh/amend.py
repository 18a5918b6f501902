"""Another record for rows that stay as they are: something was found out about them."""

import uuid
from collections.abc import Callable
from dataclasses import replace

from spark_dynamic.apply.commit import carrying
from spark_dynamic.apply.storage import write_nothing
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.history import records
from spark_dynamic.frontier.record import Record, write_record
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.new_record import number_after
from spark_dynamic.refresh.stored import find_stored
from spark_dynamic.warehouse import Warehouse

_ATTEMPTS = 5


def amend(
    view: TableName,
    change: Callable[[Record], Record | None],
    cycle: Cycle,
    warehouse: Warehouse,
) -> None:
    """Change the newest record by an empty commit; nothing is done if the change gives None."""
    for _ in range(_ATTEMPTS):
        stored = find_stored(view, cycle, warehouse)
        newest = stored.tail.newest if stored else None
        changed = change(newest.record) if newest else None
        if stored is None or newest is None or changed is None:
            return
        record = replace(
            changed,
            refresh_number=number_after(newest.record, view, cycle),
            attempt=str(uuid.uuid4()),
            cycle=cycle.id,
            based_on=stored.version,
            action="NO_DATA",
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
