"""What is left of dynamic tables: old generations, and tables whose model is gone."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from spark_dynamic.apply.storage import generations, is_storage_name, storage_name
from spark_dynamic.apply.view import storage_behind
from spark_dynamic.changes.window import windows_named
from spark_dynamic.frontier.history import records
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.stored import find_stored
from spark_dynamic.sql.pin import MODEL_PROPERTY
from spark_dynamic.warehouse import Relation, Warehouse

# A table without a record may be one that another run is just building.
_GRACE: Final = timedelta(days=1)
_MODEL: Final = re.compile(rf"{re.escape(MODEL_PROPERTY)}=([^,\]]+)")


@dataclass(frozen=True)
class Left:
    """A relation that is left over, and why nobody needs it."""

    name: TableName
    why: str
    is_view: bool = False
    # The dynamic table that is gone altogether; None for an old generation of one that is not.
    of_gone: TableName | None = None

    @property
    def statement(self) -> str:
        """The statement that removes it."""
        return f"DROP {'VIEW' if self.is_view else 'TABLE'} {self.name.sql}"


def useless_generations(
    view: TableName,
    numbers: Iterable[int],
    retention: timedelta,
    cycle: Cycle,
    warehouse: Warehouse,
    in_use: TableName,
    grace: timedelta | None = None,
) -> Iterator[Left]:
    """Yield the generations that are of no use: without a record, or beyond the retention.

    The newest commit of the one `in_use` shows how far the storage's clock has come. Those without
    a record may have a time of `grace`, in which a build could still go on.
    """
    now = cycle.undisputed_now(cycle.catalog.history(warehouse, in_use)[0].timestamp)
    if now is None:
        return
    oldest, untouched_since = now - retention, None if grace is None else now - grace
    for number in numbers:
        table = storage_name(view, number)
        relation = cycle.catalog.relation(warehouse, table)
        if relation is None or MODEL_PROPERTY not in relation.properties:
            continue
        commits = cycle.catalog.history(warehouse, table, since=0)
        found = records(commits)
        if found and found[0].commit.timestamp < oldest:
            yield Left(table, "an old generation, beyond history_retention")
        elif not found and (untouched_since is None or commits[0].timestamp < untouched_since):
            yield Left(table, "a generation without a record")


def old_generations(
    view: TableName, retention: timedelta, cycle: Cycle, warehouse: Warehouse
) -> Iterator[Left]:
    """Yield what is left of a dynamic table and of the changes that it keeps."""
    names = cycle.catalog.tables(warehouse, view)
    for one in (view, *windows_named(view, names)):
        stored = find_stored(one, cycle, warehouse)
        if stored is None or stored.tail.newest is None:
            continue
        shown = cycle.catalog.relation(warehouse, one)
        in_use = {stored.storage}
        if shown is not None and shown.view is not None and MODEL_PROPERTY in shown.properties:
            in_use.add(storage_behind(shown, one))
        others = [n for n in stored.all_generations if storage_name(one, n) not in in_use]
        yield from useless_generations(
            one, others, retention, cycle, warehouse, stored.storage, _GRACE
        )


def without_model(
    schema: TableName, owned: Collection[TableName], cycle: Cycle, warehouse: Warehouse
) -> Iterator[Left]:
    """Yield the dynamic tables of a schema (that of the given name) that no model has any more."""
    names = cycle.catalog.tables(warehouse, schema)
    stems = {
        name[: name.rindex("__dyn")] for name in names if is_storage_name(schema.sibling(name))
    }
    kept = {view.name for view in owned if view.schema == schema.schema}
    kept |= {w.name for view in owned for w in windows_named(view, names)}
    for stem in sorted(stems - kept):
        view = schema.sibling(stem)
        # The view goes first: it would show nothing without its storage.
        for name in (view, *(storage_name(view, n) for n in generations(view, names))):
            relation = cycle.catalog.relation(warehouse, name)
            if relation is not None and (model := _model_of(relation)):
                why = f"its model {model} is not in this project"
                yield Left(name, why, relation.view is not None, of_gone=view)


def _model_of(relation: Relation) -> str:
    found = _MODEL.search(relation.properties)
    return found[1] if found else ""
