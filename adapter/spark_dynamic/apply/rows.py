"""Results that are bags of rows: appended blindly, or merged by hash and ordinal.

Every stored row carries the hash of its contents and an ordinal (the refresh that wrote it and
a running number), which is unique without looking at the table. Duplicates differ by their
ordinals; a delete of k copies picks k of them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from spark_dynamic.apply.identity import ENCODING, HASH, row_hash
from spark_dynamic.apply.storage import insert_rows, stored_value, without_length
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.names import TableName, quote
from spark_dynamic.plan.types import is_ordered
from spark_dynamic.sql.write import WEIGHT, indented

REFRESH, ROW = "__dyn_refresh", "__dyn_row"
# The lowest and the highest value of columns, as SQL.
Ranges = Mapping[str, tuple[str, str]]
# The first bits of a hash: as good as all of it to tell few rows from many, and short enough for
# Delta's history, which keeps conditions. No expression of this kind reaches the Parquet reader,
# which a long list overflows.
_PREFIX = f"shiftright({{table}}{HASH[0]}, 44)"
_SAME_ROW = " AND ".join(f"t.{column} = s.{column}" for column in (*HASH, REFRESH, ROW))
_LOST = "raise_error('DELETED_ROW_MISSING: a row to be deleted is not in the storage')"
_TWICE = "raise_error('ROW_STORED_TWICE: a row to be deleted is in the storage twice')"


def between(bounds: Ranges, table: str = "") -> list[str]:
    """Return the conditions that columns lie between their bounds.

    >>> between({"a": ("1", "9")}, "t.")
    ['t.`a` BETWEEN 1 AND 9']
    """
    return [f"{table}{quote(c)} BETWEEN {low} AND {high}" for c, (low, high) in bounds.items()]


def _among(prefixes: Collection[int], table: str = "") -> list[str]:
    """Return the condition that a row's hash begins with one of the prefixes, if there are any.

    It belongs before all others: it is quick, and true of few rows.
    """
    listed = ", ".join(map(str, sorted(prefixes)))
    return [f"{_PREFIX.format(table=table)} IN ({listed})"] if prefixes else []


@dataclass(frozen=True)
class Rows:
    """The storage of a bag of rows."""

    columns: tuple[StoredColumn, ...]
    # The columns that a declared key, partitions and clusters are made of; none without a key.
    narrowed_by: frozenset[str] = frozenset()
    # The columns that files are partitioned by.
    partitions: frozenset[str] = frozenset()

    @property
    def narrowing(self) -> tuple[StoredColumn, ...]:
        """The columns whose bounds are worth finding: all of them if no key is declared, or of a
        type without bounds.

        The key is a hint here. Bounds are those that deleted rows have, and what is deleted is
        found by hash and ordinal, so that a key that names no row deletes no other row either.
        """
        ordered = (column for column in self.columns if is_ordered(column.type))
        named = tuple(c for c in ordered if c.name.lower() in self.narrowed_by)
        return named or self.columns

    @property
    def state(self) -> dict[str, object]:
        """What the record keeps: storage of another form cannot be carried on."""
        return {"kind": "rows", "encoding": ENCODING}

    def build(self, query: str, refresh: int) -> str:
        """Return the query of a rebuild, with the hidden columns."""
        return self._append(query, refresh, [column.name for column in self.columns])

    def append(self, storage: TableName, delta: str, ids: Sequence[str], refresh: int) -> str:
        """Return the statement that adds rows; `ids` are the delta's columns."""
        return insert_rows(storage, self._append(delta, refresh, ids))

    def _append(self, query: str, refresh: int, ids: Sequence[str]) -> str:
        columns = [
            *self._values(ids),
            *self._hashes(ids),
            f"{refresh}L AS {REFRESH}",
            f"monotonically_increasing_id() AS {ROW}",
        ]
        # Not indented: a text of the user's may have line breaks inside of quotes.
        return f"SELECT {', '.join(columns)} FROM (\n{query}\n)"

    def _values(self, ids: Sequence[str]) -> list[str]:
        return [
            f"{stored_value(sql, column, self.partitions)} AS {quote(column.stored_as)}"
            for id, column in zip(ids, self.columns, strict=True)
            for sql in [without_length(quote(id), column.type)]
        ]

    def _hashes(self, ids: Sequence[str]) -> list[str]:
        typed = [(quote(id), column.type) for id, column in zip(ids, self.columns, strict=True)]
        return [f"{sql} AS {name}" for sql, name in zip(row_hash(typed), HASH, strict=True)]

    def net(self, delta: str, ids: Sequence[str]) -> str:
        """Return a delta that has every row once, as it is, with the hashes."""
        columns = [*self._values(ids), *self._hashes(ids), WEIGHT]
        return f"SELECT {', '.join(columns)} FROM (\n{delta}\n)"

    def consolidated(self, delta: str, ids: Sequence[str]) -> str:
        """Return the net change of every row that changed at all."""
        inner = self.net(delta, ids)
        values = ", ".join(f"any_value({c}) AS {c}" for c in self._names())
        keys = ", ".join(HASH)
        return (
            f"SELECT {values}, {keys}, sum({WEIGHT}) AS {WEIGHT} FROM {indented(inner)}"
            f"\nGROUP BY {keys} HAVING sum({WEIGHT}) <> 0"
        )

    def append_net(self, storage: TableName, net: str, refresh: int) -> str:
        """Return the statement that adds net changes, none of which deletes."""
        return insert_rows(storage, self._inserts(net, refresh))

    def merge(
        self,
        storage: TableName,
        version: int,
        net: str,
        refresh: int,
        bounds: Ranges,
        *,
        are_few: bool = False,
        prefixes: Collection[int] = (),
    ) -> str:
        """Return the statement that deletes and adds net changes in one commit.

        `bounds` hold for every deleted row; with them Delta skips files. Of what `are_few`, Spark
        cannot tell how few they are once they were joined: it would sort the whole storage. Delta
        still sorts all rows of the files that it changes, unless it has the `prefixes` of the
        deleted ones.
        """
        where = [*_among(prefixes), *between(bounds)]
        picks, inserts = self._picks(storage, version, net, where), self._inserts(net, refresh)
        source = f"{picks}\nUNION ALL\n{inserts}"
        if are_few:
            source = f"SELECT /*+ BROADCAST(changed) */ * FROM {indented(source)} AS changed"
        columns = [*self._names(), *HASH, REFRESH, ROW]
        values = [f"s.{column}" for column in columns]
        fresh = f"IF(s.{REFRESH} = {refresh}L, s.{REFRESH}, {_LOST})"
        values[columns.index(REFRESH)] = fresh
        return (
            f"MERGE INTO {storage.sql} AS t USING {indented(source)} AS s\n"
            f"ON {' AND '.join([*_among(prefixes, 't.'), _SAME_ROW, *between(bounds, 't.')])}\n"
            "WHEN MATCHED THEN DELETE\n"
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) VALUES ({', '.join(values)})"
        )

    def prefixes(self, net: str) -> str:
        """Return the query for the prefixes of the rows that net changes delete."""
        return (
            f"SELECT DISTINCT {_PREFIX.format(table='')} AS prefix FROM {net} WHERE {WEIGHT} < 0"
        )

    def _inserts(self, net: str, refresh: int) -> str:
        """Return the rows to add, each as often as its weight says."""
        columns = ", ".join([*self._names(), *HASH])
        return (
            f"SELECT {columns}, {refresh}L AS {REFRESH}, "
            f"explode(sequence(1L, {WEIGHT})) AS {ROW} FROM {net} WHERE {WEIGHT} > 0"
        )

    def _picks(self, storage: TableName, version: int, net: str, where: Sequence[str]) -> str:
        """Return which stored rows go: of each hash, the oldest as many as its weight says."""
        order = f"PARTITION BY n.{HASH[0]}, n.{HASH[1]}"
        stored = (
            f"SELECT {', '.join((*HASH, REFRESH, ROW))} FROM {storage.sql} "
            f"VERSION AS OF {version} WHERE {' AND '.join(['true', *where])}"
        )
        same = " AND ".join(f"o.{column} = n.{column}" for column in HASH)
        # Of all that is stored only these are joined, which Spark knows to be few.
        wanted = f"SELECT {', '.join(HASH)} FROM {net} WHERE {WEIGHT} < 0"
        found = f"SELECT o.* FROM ({stored}) AS o LEFT SEMI JOIN ({wanted}) AS n ON {same}"
        ranked = (
            f"SELECT n.*, o.{REFRESH}, o.{ROW}, "
            f"row_number() OVER ({order} ORDER BY o.{REFRESH}, o.{ROW}) AS __dyn_rank, "
            f"count(o.{ROW}) OVER ({order}) AS __dyn_available, "
            f"count(o.{ROW}) OVER ({order}, o.{REFRESH}, o.{ROW}) AS __dyn_same\n"
            f"FROM (SELECT * FROM {net} WHERE {WEIGHT} < 0) AS n\n"
            f"LEFT JOIN ({found}) AS o ON {same}"
        )
        columns = ", ".join([*self._names(), *HASH, REFRESH])
        checked = f"IF(__dyn_same > 1, {_TWICE}, {ROW})"
        checked = f"IF(__dyn_available < -{WEIGHT}, {_LOST}, {checked}) AS {ROW}"
        return (
            f"SELECT {columns}, {checked} FROM {indented(ranked)}\nWHERE __dyn_rank <= -{WEIGHT}"
        )

    def _names(self) -> list[str]:
        return [quote(column.stored_as) for column in self.columns]
