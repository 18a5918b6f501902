"""Nothing ages out: until when the record of a table may stay as it is."""

from datetime import datetime, timedelta

from spark_dynamic.changes.retention import FILES, LOG, retention_of
from spark_dynamic.frontier.cut import Cut
from spark_dynamic.frontier.record import Record
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse


def kept_until(
    record: Record, cut: Cut, retention: timedelta, cycle: Cycle, warehouse: Warehouse
) -> datetime:
    """Return when a record, or a version that it names, will be half as old as it may be.

    `retention` is that of the table itself; each source has its own, for its files and its log.
    """
    until = record.data_timestamp + retention / 2
    for table, pin in cut.pins.items():
        old = record.pin_of(table)
        if old is not None and old.version != pin.version:
            relation = cycle.catalog.relation(warehouse, table)
            kept = min(retention_of(relation, FILES), retention_of(relation, LOG))
            until = min(until, old.committed_at + kept / 2)
    return until
