"""Nothing ages out: until when the record of a table may stay as it is."""

from datetime import datetime, timedelta
from typing import Final

from spark_dynamic.frontier.cut import Cut
from spark_dynamic.frontier.record import Record

# Delta's default for how long the files of old versions are kept.
_FILES_KEPT: Final = timedelta(days=7)


def kept_until(record: Record, cut: Cut, retention: timedelta) -> datetime:
    """Return when a record, or a version that it names, will be half as old as it may be."""
    until = record.data_timestamp + retention / 2
    for table, pin in cut.pins.items():
        old = record.pin_of(table)
        if old is not None and old.version != pin.version:
            until = min(until, old.committed_at + _FILES_KEPT / 2)
    return until
