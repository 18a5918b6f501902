"""Directories that builds left when they were killed: no catalog knows them.

A directory is looked for where a generation of a dynamic table would be stored. One that has no
Delta commit is of no use to anybody: the files of a build are a table only when its commit is
there. One that has may be another catalog's table, under the same `location_root` for instance.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from spark_dynamic.apply.storage import generations, storage_name
from spark_dynamic.changes.window import windows_named
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.logs import AT_ONCE, PLAIN, listed_files
from spark_dynamic.names import TableName, quote
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.warehouse import Warehouse

# Files of a build come one after the other; who has written none for a day is not building.
_GRACE: Final = timedelta(days=1)
# As many directories as a build passes over before it gives up.
_NUMBERS: Final = 20
_COMMITS: Final = "_delta_log/*.json"
# Rows, in the directories of up to three columns of partitions.
_ROWS: Final = "{*.parquet,*/*.parquet,*/*/*.parquet,*/*/*/*.parquet}"


@dataclass(frozen=True)
class LeftDirectory:
    """A directory without a table."""

    path: str
    has_commits: bool

    @property
    def why(self) -> str:
        """What it is, as far as anybody knows."""
        if self.has_commits:
            return "a Delta table that is not in this schema: look whose it is"
        return "files of a build that was killed"


def left_directories(
    roots: Mapping[TableName, str], cycle: Cycle, warehouse: Warehouse
) -> Iterator[LeftDirectory]:
    """Yield what is left beside the storages of dynamic tables.

    Each comes with its `location_root`, or with "" if it is stored where its schema is.
    """
    wanted: dict[str, set[str]] = {}
    places: dict[str, str] = {}
    for view, root in roots.items():
        if not root and view.schema not in places:
            places[view.schema] = _schema_location(view, warehouse)
        place = (root or places[view.schema]).rstrip("/")
        names = set(_free_names(view, cycle.catalog.tables(warehouse, view)))
        wanted.setdefault(place, set()).update(name for name in names if PLAIN.fullmatch(name))
    now = cycle.undisputed_now()
    for place, names in sorted(wanted.items()):
        if now is not None and PLAIN.fullmatch(place):
            oldest = now - _GRACE
            yield from _left_in(place, sorted(names), oldest, warehouse)


def _free_names(view: TableName, tables: Iterable[str]) -> Iterator[str]:
    """Yield the names of generations that do not exist, and that a build may have tried."""
    existing = set(tables)
    for one in (view, *windows_named(view, existing)):
        highest = max(generations(one, existing), default=0)
        for number in range(1, highest + _NUMBERS + 1):
            name = storage_name(one, number).name
            if name not in existing:
                yield name


def _schema_location(view: TableName, warehouse: Warehouse) -> str:
    outer = f"{quote(view.catalog)}." if view.catalog else ""
    try:
        rows = warehouse.rows(f"DESCRIBE SCHEMA {outer}{quote(view.schema)}")
    except WarehouseError:
        # Nothing was built in it yet.
        return ""
    facts = {str(row["info_name"]): str(row["info_value"]) for row in rows}
    return facts.get("Location", "")


def _left_in(
    place: str, names: list[str], oldest: datetime, warehouse: Warehouse
) -> Iterator[LeftDirectory]:
    directory = re.compile(rf"(.*/({'|'.join(map(re.escape, names))}))/.*")
    touched: dict[str, datetime] = {}
    committed: set[str] = set()
    for begin in range(0, len(names), AT_ONCE):
        some = f"{place}/{{{','.join(names[begin : begin + AT_ONCE])}}}"
        for inside in (_COMMITS, _ROWS):
            for path, modified in listed_files(warehouse, f"{some}/{inside}"):
                if match := directory.fullmatch(path):
                    found = match[1]
                    touched[found] = max(modified, touched.get(found, modified))
                    committed |= {found} if inside == _COMMITS else set()
    for path, modified in sorted(touched.items()):
        if modified < oldest:
            yield LeftDirectory(path, path in committed)
