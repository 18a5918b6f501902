"""The state table of a profile: read once when a cycle opens, appended to once at its end."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from spark_dynamic.apply.commit import carrying
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.own_tables import append_to, make
from spark_dynamic.frontier.state import (
    STATE_COLUMNS,
    STATE_TABLE,
    KnownState,
    append_rows,
    create_state_table,
    read_state,
    state_metadata,
)
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse

# So many runs may overlap without missing each other's summary.
_RECENT_RUNS: Final = 10
_MISSING: Final = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


class StateStore:
    """Where refreshes are listed."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    @property
    def table(self) -> TableName:
        """Its name, in the schema that the profile chooses."""
        chosen = self._credentials.state_schema or self._credentials.schema
        return TableName.of(chosen, STATE_TABLE)

    def read(self, warehouse: Warehouse) -> KnownState:
        """Return what the newest commits say; nothing if there is no state table yet."""
        try:
            known = read_state(warehouse.history(self.table, _RECENT_RUNS))
            if known.newest_timestamp is None and not known.tables:
                # Maintenance of the state table may have made many commits in a row.
                known = read_state(warehouse.history(self.table, 100 * _RECENT_RUNS))
            return known
        except WarehouseError as error:
            if error.condition in _MISSING:
                return KnownState()
            raise

    def write(
        self, warehouse: Warehouse, cycle: Cycle, lateness: Mapping[datetime, timedelta]
    ) -> None:
        """Append the events of a cycle, in one statement."""
        if not cycle.known.exists:
            make(warehouse, self.table, create_state_table(self.table))

        def append() -> None:
            metadata = state_metadata(cycle.known, cycle.events, lateness)
            with carrying(warehouse, metadata, appends=True):
                warehouse.execute(append_rows(self.table, cycle.events))

        append_to(warehouse, self.table, STATE_COLUMNS, append)
