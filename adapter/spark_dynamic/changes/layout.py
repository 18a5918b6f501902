"""The columns of changed rows on their way to the result, and the SELECTs that show them.

Inside, the result's columns are c0, c1, … and those that name a row k0, k1, …, so that names of
any kind meet no others. Nothing is indented: a text of the user's may have line breaks inside of
quotes. Consolidation goes by a hash of the row; columns that GROUP BY leaves as
they are stand beside it, so that Spark can push predicates on them down to the sources.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spark_dynamic.apply.identity import HASH, row_hash
from spark_dynamic.changes.columns import ACTION, IS_UPDATE, ROW_ID
from spark_dynamic.literals import literal
from spark_dynamic.names import quote
from spark_dynamic.sql.write import WEIGHT
from spark_dynamic.warehouse import Column

NET, COPY = "__dyn_net", "__dyn_copy"
_ID = ("__dyn_id_1", "__dyn_id_2")
_SHAPES = "ADDED_ONLY|REMOVED_ONLY|MINIMAL|MINIMIZE|DIFFERENCE|APPEND_ONLY|INITIAL_ROWS"
_SHAPE = re.compile(rf"SELECT /\* ({_SHAPES}) \*/")
# As a group key, -0.0 would come out as 0.0, and a map cannot be one of a window function.
_CHANGED_BY_GROUPING = re.compile(r"\b(float|double)\b|\bmap<")


@dataclass(frozen=True)
class Layout:
    """What changed rows look like."""

    columns: tuple[Column, ...]
    # What names a row: columns inside, and their types.
    keys: tuple[tuple[str, str], ...] = ()
    # How the user declared it; "" if the query itself guarantees it.
    declared: str = ""
    # Whether rows have names at all; a query of one row is named by nothing.
    is_named: bool = False
    # The column inside that has the names of rows, if they were given before; copies share one.
    named_by: str = ""

    @property
    def has_ids(self) -> bool:
        """Tell whether rows have names other than their contents."""
        return self.is_named or bool(self.keys)

    @property
    def inside(self) -> list[tuple[str, str]]:
        """The columns inside with their types."""
        own = [(f"c{i}", column.type) for i, column in enumerate(self.columns)]
        names = ((self.named_by, "string"),) if self.named_by else ()
        return own + [key for key in dict.fromkeys((*self.keys, *names)) if key not in own]

    def of_text(self, sql: str) -> str:
        """Return the rows of a query as they are called inside."""
        names = [f"{quote(column.name)} AS c{i}" for i, column in enumerate(self.columns)]
        return f"SELECT {', '.join(names)} FROM (\n{sql}\n)"

    def consolidated(self, rows: str, by: Sequence[str] = ()) -> str:
        """Return the net change of every row; `by` keeps rows apart that are else the same."""
        inner = self._hashed(rows, by, WEIGHT)
        kept = [name if is_kept(type) else f"any_value({name}) AS {name}"
                for name, type in self.inside]  # fmt: skip
        groups = [*by, *HASH, *(name for name, type in self.inside if is_kept(type))]
        return (
            f"SELECT {', '.join([*kept, *by, *HASH])}, sum({WEIGHT}) AS {NET} FROM (\n"
            f"{inner}\n)\nGROUP BY {', '.join(groups)} HAVING sum({WEIGHT}) <> 0"
        )

    def _hashed(self, rows: str, by: Sequence[str], *more: str) -> str:
        names = [name for name, _ in self.inside]
        hashes = [f"{sql} AS {n}" for sql, n in zip(row_hash(self.inside), HASH, strict=True)]
        return f"SELECT {', '.join([*names, *by, *hashes, *more])} FROM (\n{rows}\n)"

    def remaining(self, rows: str) -> str:
        """Return what remains of weighted rows that are known to add up to copies."""
        names = ", ".join(name for name, _ in self.inside)
        return (
            f"SELECT {names}, explode(sequence(1L, {NET})) AS {COPY} FROM (\n"
            f"{self.consolidated(rows)}\n)"
        )

    def net(
        self,
        rows: str,
        by: Sequence[str] = (),
        more: Sequence[str] = (),
        shape: str = "MINIMIZE",
        is_net: bool = False,
    ) -> str:
        """Show weighted rows: what remains of them, with their ids.

        With `is_net` every row is there once already, so that all of them remain.
        """
        if is_net:
            shape, net = "MINIMAL", self._hashed(rows, by, f"{WEIGHT} AS {NET}")
        else:
            net = self.consolidated(rows, by)
        if not self.has_ids:
            names = [name for name, _ in self.inside]
            each = f"explode(sequence(1L, abs({NET}))) AS {COPY}"
            copies = f"SELECT {', '.join([*names, *by, *HASH, NET])}, {each} FROM (\n{net}\n)"
            return self._shown(shape, copies, _action(), "false", self._content_id(), more)
        same, versions = "__dyn_same", "__dyn_versions"
        partition = [*by, *_ID, *(n for n, t in self.keys if is_kept(t))]
        counts = (
            f"count(*) OVER (PARTITION BY {', '.join([*partition, '__dyn_added'])}) AS {same}, "
            f"count(*) OVER (PARTITION BY {', '.join(partition)}) AS {versions}"
        )
        added = f"SELECT *, {NET} > 0 AS __dyn_added, {self._key_hash()} FROM (\n{net}\n)"
        counted = f"SELECT *, {counts} FROM (\n{added}\n)"
        is_update, id = f"{versions} = 2", self.named_by or _text_of(_ID)
        if self.declared:
            # Copies show that the key names no row; whoever does not ask for it gets them all.
            counted = f"SELECT *, explode(sequence(1L, abs({NET}))) AS {COPY} FROM (\n{counted}\n)"
            twice = f"{same} > 1 OR abs({NET}) > 1"
            is_update, id = (f"IF({twice}, {self._violated()}, {v})" for v in (is_update, id))
        return self._shown(shape, counted, _action(), is_update, id, more)

    def added(
        self,
        rows: str,
        by: Sequence[str] = (),
        more: Sequence[str] = (),
        shape: str = "ADDED_ONLY",
    ) -> str:
        """Show rows that were only added."""
        return self._as_they_are(shape, rows, "'INSERT'", by, more)

    def removed(self, rows: str, by: Sequence[str] = (), more: Sequence[str] = ()) -> str:
        """Show rows that were only removed."""
        return self._as_they_are("REMOVED_ONLY", rows, "'DELETE'", by, more)

    def _as_they_are(
        self, shape: str, rows: str, action: str, by: Sequence[str], more: Sequence[str]
    ) -> str:
        """Show rows that cannot cancel out: nothing to consolidate, and no updates to be found.

        A key names the row, as was promised: to check it would take a shuffle. Without one,
        copies are numbered; Spark leaves that away where nobody reads the id.
        """
        names = [name for name, _ in self.inside]
        if self.has_ids:
            inner = f"SELECT {', '.join([*names, *by])}, {self._key_hash()} FROM (\n{rows}\n)"
            id = self.named_by or _text_of(_ID)
            return self._shown(shape, inner, action, "false", id, more)
        inner = self._hashed(rows, by)
        partition = [*by, *HASH, *(n for n, t in self.inside if is_kept(t))]
        number = f"row_number() OVER (PARTITION BY {', '.join(partition)} ORDER BY {HASH[0]})"
        inner = f"SELECT *, {number} AS {COPY} FROM (\n{inner}\n)"
        return self._shown(shape, inner, action, "false", self._content_id(), more)

    def _shown(
        self, shape: str, rows: str, action: str, is_update: str, id: str, more: Sequence[str]
    ) -> str:
        """Return rows under their own names, with the change columns."""
        columns = [f"c{i} AS {quote(column.name)}" for i, column in enumerate(self.columns)]
        columns += [f"{action} AS {ACTION}", f"{is_update} AS {IS_UPDATE}", f"{id} AS {ROW_ID}"]
        return f"SELECT /* {shape} */ {', '.join([*columns, *more])} FROM (\n{rows}\n)"

    def _key_hash(self) -> str:
        pairs = zip(row_hash(self.keys), _ID, strict=True)
        return ", ".join(f"{sql} AS {name}" for sql, name in pairs)

    def _content_id(self) -> str:
        return f"concat({self.named_by or _text_of(HASH)}, '-', {COPY})"

    def _violated(self) -> str:
        told = (
            f"ROW_KEY_NOT_UNIQUE: two changed rows have the same {self.declared}, so it does not "
            "name a row. Declare columns that do, or none."
        )
        return f"raise_error({literal(told)})"


def shapes(sql: str) -> list[str]:
    """Return how the change reads in a text are computed, each way once.

    >>> shapes("SELECT /* INITIAL_ROWS */ a FROM t UNION ALL SELECT /* MINIMIZE */ a FROM t")
    ['INITIAL_ROWS', 'MINIMIZE']
    """
    return list(dict.fromkeys(_SHAPE.findall(sql)))


def is_kept(type: str) -> bool:
    """Tell whether GROUP BY gives a value of this type back as it was.

    >>> [is_kept(type) for type in ("array<string>", "array<double>", "map<string,int>")]
    [True, False, False]
    """
    return _CHANGED_BY_GROUPING.search(type) is None


def looks_the_same(type: str) -> bool:
    """Tell whether equal values of a type are the same: not 0.0 and -0.0, nor 'a' and 'A'."""
    return is_kept(type) and "collate" not in type


def _action() -> str:
    return f"IF({NET} > 0, 'INSERT', 'DELETE')"


def _text_of(hashes: Sequence[str]) -> str:
    return f"lower(concat({', '.join(f'''lpad(hex({name}), 16, '0')''' for name in hashes)}))"
