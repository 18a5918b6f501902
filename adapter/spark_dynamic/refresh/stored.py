"""What is stored of a dynamic table: the generation in use and its newest record."""

from dataclasses import dataclass, replace

from spark_dynamic.apply.storage import generations, storage_name
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.frontier.history import Tail, read_tail
from spark_dynamic.frontier.record import Recorded
from spark_dynamic.names import TableName
from spark_dynamic.refresh.altered import (
    foreign_columns,
    may_have_other_columns,
    other_columns,
)
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.sql.pin import MODEL_PROPERTY
from spark_dynamic.warehouse import Commit, Warehouse


@dataclass(frozen=True)
class Stored:
    """The generation that holds the newest record, or the highest if none does."""

    generation: int
    storage: TableName
    tail: Tail
    version: int
    all_generations: tuple[int, ...]
    # How its columns differ from those that it was given, if they do.
    altered: str = ""

    @property
    def next_generation(self) -> int:
        """A number that no generation has had."""
        return self.all_generations[0] + 1


def find_stored(view: TableName, cycle: Cycle, warehouse: Warehouse) -> Stored | None:
    """Look for the storage of a dynamic table."""
    found = generations(view, cycle.catalog.tables(warehouse, view))
    last: Stored | None = None
    for generation in found:
        storage = storage_name(view, generation)
        tail, commits = _tail(storage, cycle, warehouse)
        version = commits[0].version if commits else -1
        stored = Stored(generation, storage, tail, version, tuple(found))
        if tail.newest is not None:
            altered = _altered(storage, tail.newest, commits, cycle, warehouse)
            return replace(stored, altered=altered)
        _check_ours(storage, cycle, warehouse)
        last = last or stored
    return last


def _tail(storage: TableName, cycle: Cycle, warehouse: Warehouse) -> tuple[Tail, list[Commit]]:
    try:
        commits = cycle.catalog.history(warehouse, storage)
    except WarehouseError as error:
        if error.condition.split(".")[0] in ("DELTA_ONLY_OPERATION", "EXPECT_TABLE_NOT_VIEW"):
            raise _taken(storage) from error
        raise
    tail = read_tail(commits)
    if tail.newest is None:
        # Many commits of maintenance may stand after the record.
        commits = cycle.catalog.history(warehouse, storage, since=0)
    elif tail.newest.record.based_on is not None:
        # What the record was based on has to be seen to be judged.
        commits = cycle.catalog.history(warehouse, storage, since=tail.newest.record.based_on)
    return read_tail(commits), commits


def _altered(
    storage: TableName,
    newest: Recorded,
    commits: list[Commit],
    cycle: Cycle,
    warehouse: Warehouse,
) -> str:
    if found := foreign_columns(newest, commits):
        return found
    if not may_have_other_columns(newest, commits):
        return ""
    relation = cycle.catalog.relation(warehouse, storage)
    return other_columns(newest.record, relation) if relation else ""


def _check_ours(storage: TableName, cycle: Cycle, warehouse: Warehouse) -> None:
    relation = cycle.catalog.relation(warehouse, storage)
    if relation is not None and MODEL_PROPERTY not in relation.properties:
        raise _taken(storage)


def _taken(storage: TableName) -> EngineError:
    return EngineError(
        "NAME_TAKEN",
        f"{storage} exists and is not the storage of a dynamic table. "
        "Rename or drop it, or give the model another alias.",
    )
