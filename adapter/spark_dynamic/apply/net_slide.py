"""A window of net changes that moves: of each row that came or went, all changes are shown anew.

What a window holds are the rows at its end minus those at its beginning. So it becomes what it
has to be by adding what changed since its former end, and taking away what changed between its
former beginning and the new one. Only rows that are named in either are read and written.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

from spark_dynamic.apply.storage import view_query
from spark_dynamic.changes.columns import ACTION, ROW_ID
from spark_dynamic.changes.layout import NET, Layout
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.names import TableName, quote
from spark_dynamic.sql.write import WEIGHT

_DELTA, _STORED, _ENDS = "__dyn_delta", "__dyn_stored", "__dyn_ends"
# Copies of a row share the hash at the beginning of their ids.
_STEM, _NAME = "k0", f"left({ROW_ID}, 32)"


@dataclass(frozen=True)
class NetSlide:
    """How a window of net changes moves, and until when it then stays as it is."""

    # What a record keeps about the window.
    facts: dict[str, Any] = field(default_factory=dict)
    # Changes that come in, as SELECTs, and those that are taken away.
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    layout: Layout = Layout(())
    # Whether all changes are inserts, each of a row of its own, also if they have the same key.
    only_inserts: bool = False
    holds_until: datetime | None = None
    # A change that was taken back at the end will be one at the beginning, later on.
    by_commit: ClassVar[bool] = True

    @property
    def ages(self) -> bool:
        """Tell whether anything is taken away."""
        return bool(self.removed)

    def statement(
        self, storage: TableName, version: int, columns: tuple[StoredColumn, ...]
    ) -> str:
        """Return the statement that moves the window, from a version of its storage."""
        layout = _named(self.layout)
        names = ", ".join(name for name, _ in layout.inside)
        signed = [*((sql, 1) for sql in self.added), *((sql, -1) for sql in self.removed)]
        rows = "\nUNION ALL\n".join(_weighted(sql, layout, sign) for sql, sign in signed)
        before = _weighted(view_query(columns, storage, version=version), layout, 1, ROW_ID)
        everything = (
            f"SELECT {names}, {WEIGHT} FROM {_DELTA}\nUNION ALL\n"
            f"SELECT {names}, {WEIGHT} FROM {_STORED}"
        )
        changes = layout.net(everything)
        if self.only_inserts:
            changes = layout.added(layout.remaining(everything))
        own = [quote(c.name) for c in columns]
        ends = ", ".join(ROW_ID if c.name == ROW_ID else "NULL" for c in columns)
        stored = [quote(c.stored_as) for c in columns]
        shown = ", ".join(f"{name} AS {at}" for name, at in zip(own, stored, strict=True))
        values = ", ".join(f"s.{name}" for name in stored)
        return (
            f"MERGE INTO {storage.sql} AS t USING (\n"
            f"WITH {_DELTA} AS (\n"
            f"SELECT {names}, {NET} AS {WEIGHT} FROM (\n{layout.consolidated(rows)}\n)\n"
            f"), {_STORED} AS (\n"
            f"SELECT * FROM (\n{before}\n) WHERE {_STEM} IN (SELECT {_STEM} FROM {_DELTA})\n)\n"
            f"SELECT {shown}, false AS {_ENDS} FROM (\n{changes}\n)\n"
            f"UNION ALL\n"
            f"SELECT {ends}, true FROM (SELECT DISTINCT {ROW_ID} FROM {_STORED})\n"
            f") AS s\n"
            f"ON t.{ROW_ID} = s.{ROW_ID} AND s.{_ENDS}\n"
            f"WHEN MATCHED THEN DELETE\n"
            f"WHEN NOT MATCHED AND NOT s.{_ENDS} THEN INSERT ({', '.join(stored)}) "
            f"VALUES ({values})"
        )


def _named(layout: Layout) -> Layout:
    """Return a layout of rows whose names are known, also where what they are made of is not."""
    keys = ((_STEM, "string"),) if layout.has_ids else ()
    return replace(layout, keys=keys, is_named=False, named_by=_STEM)


def _weighted(select: str, layout: Layout, sign: int, *more: str) -> str:
    """Return shown changes as rows with weights, as they are called inside."""
    columns = [f"{quote(column.name)} AS c{i}" for i, column in enumerate(layout.columns)]
    weight = f"IF({ACTION} = 'INSERT', {sign}, {-sign}) AS {WEIGHT}"
    shown = ", ".join([*columns, f"{_NAME} AS {_STEM}", weight, *more])
    return f"SELECT {shown} FROM (\n{select}\n)"
