"""In which rows do two queries differ? Both are bags of rows with the same columns.

Everything is compared exactly, but for floating-point numbers and what is computed from their
sums, which depend on the order of rows. Rows that are equal otherwise make pairs, in the order of
their floating-point numbers, and a pair that is as good as equal is no difference.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_dynamic.apply.identity import HASH, row_hash
from spark_dynamic.apply.rounding import TOLERANCE, Rounding
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.names import quote
from spark_dynamic.plan.types import is_float
from spark_dynamic.support import NotIncremental

COPIES = "copies"
_REST = ("rest_1", "rest_2")


@dataclass
class Differing:
    """A row that is there `copies` times too often, or is missing if that is negative."""

    copies: int
    values: tuple[Any, ...]
    # How far rounding may move some of the values, by their positions.
    moves: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """How the rows of two queries are compared, and the columns that may be close.

    Two numbers are close if they differ by a billionth of the greater one or of `scale`, or by
    what rounding explains.
    """

    columns: tuple[StoredColumn, ...]
    scale: float = 1.0
    rounding: Rounding | None = None

    @property
    def inexact(self) -> list[int]:
        """The positions of the columns in which two equal rows may differ."""
        moved = self.rounding.columns if self.rounding else frozenset()
        return [i for i, c in enumerate(self.columns) if is_float(c.type) or i in moved]

    def query(self, one: str, other: str) -> str:
        """Return the rows of one query that are not in another, and the other way round.

        Columns are called c0, c1 and so on, and what rounding explains of them n0, n1.
        """
        values = [f"{quote(column.name)} AS c{i}" for i, column in enumerate(self.columns)]
        hashes = _named(self._hashes(range(len(self.columns))), HASH)
        rest = _named(self._rest(), _REST) if self.inexact else []
        both = " UNION ALL ".join(
            f"SELECT *, {', '.join([*hashes, *rest])}, {weight} AS w "
            f"FROM (SELECT {', '.join(values)} FROM (\n{sql}\n))"
            for sql, weight in ((one, 1), (other, -1))
        )
        kept = [*(f"c{i}" for i in range(len(values))), *(_REST if rest else ())]
        chosen = ", ".join(f"any_value({name}) AS {name}" for name in kept)
        found = (
            f"SELECT {chosen}, sum(w) AS {COPIES} FROM ({both}) GROUP BY {', '.join(HASH)} "
            "HAVING sum(w) <> 0"
        )
        return self._without_close_pairs(self._with_rounding(found)) if rest else found

    def _rest(self) -> tuple[str, str]:
        """Return the hash of all columns that have to be equal."""
        inexact = set(self.inexact)
        return self._hashes([i for i in range(len(self.columns)) if i not in inexact])

    def _hashes(self, positions: Iterable[int]) -> tuple[str, str]:
        columns = [(f"c{i}", self.columns[i].type) for i in positions]
        try:
            return row_hash(columns)
        except NotIncremental:
            # No hash for a type such as a map: its text has to do.
            return row_hash((f"cast({name} AS string)", "string") for name, _ in columns)

    def _with_rounding(self, found: str) -> str:
        """Join what rounding explains; where several rows are equal otherwise, the most."""
        if self.rounding is None:
            return found
        moves = [f"max(n{i}) AS n{i}" for i in sorted(self.rounding.columns)]
        hashes = ", ".join(_named(self._rest(), _REST))
        by = ", ".join(_REST)
        moved = (
            f"SELECT {by}, {', '.join(moves)} FROM (SELECT *, {hashes} FROM (\n"
            f"{self.rounding.query}\n)) GROUP BY {by}"
        )
        most = ", ".join(f"n.n{i}" for i in sorted(self.rounding.columns))
        same = " AND ".join(f"f.{name} = n.{name}" for name in _REST)
        return f"SELECT f.*, {most} FROM ({found}) AS f LEFT JOIN ({moved}) AS n ON {same}"

    def _without_close_pairs(self, found: str) -> str:
        rest = ", ".join(_REST)
        order = ", ".join(f"c{i}" for i in self.inexact)
        ranked = (
            f"SELECT *, row_number() OVER (PARTITION BY {rest}, {COPIES} > 0 ORDER BY {order}) "
            f"AS k FROM ({found})"
        )
        is_pair = ["count(*) OVER pair = 2", f"sum({COPIES}) OVER pair = 0"]
        close = " AND ".join([*is_pair, *map(self._close, self.inexact)])
        paired = (
            f"SELECT *, {close} AS is_close FROM ({ranked}) "
            f"WINDOW pair AS (PARTITION BY {rest}, k)"
        )
        return f"SELECT * EXCEPT ({rest}, k, is_close) FROM ({paired}) WHERE NOT is_close"

    def _close(self, i: int) -> str:
        """Return the condition that both values of a pair are NULL, or as good as equal."""
        low, high = (f"double({end}(c{i}) OVER pair)" for end in ("min", "max"))
        allowed = f"{TOLERANCE!r}D * greatest({self.scale!r}D, abs({low}), abs({high}))"
        if self.rounding and i in self.rounding.columns:
            allowed += f" + coalesce(max(n{i}) OVER pair, 0D)"
        near = f"{high} - {low} <= {allowed}"
        # Neither infinite, which is near to everything, nor NaN, which is greater still.
        near += f" AND {low} > double('-infinity') AND {high} < double('infinity')"
        values = f"count(c{i}) OVER pair"
        return f"({values} = 0 OR ({values} = 2 AND ({low} = {high} OR ({near}))))"

    def differing(self, rows: Iterable[Mapping[str, Any]]) -> list[Differing]:
        """Read the rows of `query`, and leave out those that have a partner after all.

        The partner may be in another order, or come in another number of copies.
        """
        moved = sorted(self.rounding.columns) if self.rounding else []
        found = [
            Differing(
                int(row[COPIES]),
                tuple(row[f"c{i}"] for i in range(len(self.columns))),
                {i: float(row[f"n{i}"] or 0) for i in moved},
            )
            for row in rows
        ]
        return self.beyond_tolerance(found) if self.inexact else found

    def beyond_tolerance(self, found: Iterable[Differing]) -> list[Differing]:
        """Leave out rows that have a partner."""
        inexact = set(self.inexact)
        alike: dict[str, list[Differing]] = defaultdict(list)
        for row in found:
            rest = repr([value for i, value in enumerate(row.values) if i not in inexact])
            alike[rest].append(row)
        for rows in alike.values():
            missing = [row for row in rows if row.copies < 0]
            for one in (row for row in rows if row.copies > 0):
                for other in missing:
                    if one.copies and other.copies and self._are_close(one, other):
                        pairs = min(one.copies, -other.copies)
                        one.copies -= pairs
                        other.copies += pairs
        return [row for rows in alike.values() for row in rows if row.copies]

    def _are_close(self, one: Differing, other: Differing) -> bool:
        for i in self.inexact:
            a, b = one.values[i], other.values[i]
            if a is None or b is None:
                if a is not b:
                    return False
                continue
            a, b = float(a), float(b)
            both_nan = math.isnan(a) and math.isnan(b)
            allowed = TOLERANCE * self.scale + one.moves.get(i, 0.0)
            if not both_nan and not math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=allowed):
                return False
        return True


def _named(values: Sequence[str], names: Sequence[str]) -> list[str]:
    return [f"{value} AS {name}" for value, name in zip(values, names, strict=True)]
