"""In which rows do two queries differ? Both are bags of rows with the same columns.

Everything is compared exactly, but for floating-point numbers: their sums depend on the order of
rows. Rows that are equal otherwise make pairs, in the order of their floating-point numbers, and a
pair that is as good as equal is no difference.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from spark_dynamic.apply.identity import HASH, row_hash
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.names import quote
from spark_dynamic.plan.types import is_float
from spark_dynamic.support import NotIncremental

COPIES = "copies"
# Relative to numbers above 1, and as it is below: what cancels out leaves a little more than 0.
TOLERANCE = 1e-9
_REST = ("rest_1", "rest_2")

# How often a row is there too often, or is missing if negative; and its values.
Row = tuple[int, tuple[Any, ...]]


def differing_rows(one: str, other: str, columns: Sequence[StoredColumn]) -> str:
    """Return the rows of one query that are not in another, and the other way round.

    Columns are called c0, c1 and so on.
    """
    names = [quote(column.name) for column in columns]
    floats = _floats(columns)
    rest = [column for i, column in enumerate(columns) if i not in floats]
    hashes = [f"{sql} AS {name}" for sql, name in zip(_hashes(columns), HASH, strict=True)]
    if floats:
        hashes += [f"{sql} AS {name}" for sql, name in zip(_hashes(rest), _REST, strict=True)]
    values = [f"{name} AS c{i}" for i, name in enumerate(names)]
    both = " UNION ALL ".join(
        f"SELECT {', '.join([*values, *hashes])}, {weight} AS w FROM (\n{sql}\n)"
        for sql, weight in ((one, 1), (other, -1))
    )
    kept = [*(f"c{i}" for i in range(len(names))), *(_REST if floats else ())]
    chosen = ", ".join(f"any_value({name}) AS {name}" for name in kept)
    found = (
        f"SELECT {chosen}, sum(w) AS {COPIES} FROM ({both}) GROUP BY {', '.join(HASH)} "
        "HAVING sum(w) <> 0"
    )
    return _without_close_pairs(found, floats) if floats else found


def _hashes(columns: Sequence[StoredColumn]) -> tuple[str, str]:
    names = [quote(column.name) for column in columns]
    try:
        return row_hash(zip(names, (column.type for column in columns), strict=True))
    except NotIncremental:
        # No hash for a type such as a map: its text has to do.
        return row_hash((f"cast({name} AS string)", "string") for name in names)


def _without_close_pairs(found: str, floats: Sequence[int]) -> str:
    rest = ", ".join(_REST)
    order = ", ".join(f"c{i}" for i in floats)
    ranked = (
        f"SELECT *, row_number() OVER (PARTITION BY {rest}, {COPIES} > 0 ORDER BY {order}) AS k "
        f"FROM ({found})"
    )
    close = " AND ".join(
        ["count(*) OVER pair = 2", f"sum({COPIES}) OVER pair = 0", *map(_close, floats)]
    )
    paired = (
        f"SELECT *, {close} AS is_close FROM ({ranked}) WINDOW pair AS (PARTITION BY {rest}, k)"
    )
    return f"SELECT * EXCEPT ({rest}, k, is_close) FROM ({paired}) WHERE NOT is_close"


def _close(number: int) -> str:
    """Return the condition that both values of a pair are NULL, or as good as equal."""
    low, high = (f"double({end}(c{number}) OVER pair)" for end in ("min", "max"))
    near = f"{high} - {low} <= {TOLERANCE!r}D * greatest(1D, abs({low}), abs({high}))"
    # Neither infinite, which is near to everything, nor NaN, which is greater still.
    near = f"{near} AND {low} > double('-infinity') AND {high} < double('infinity')"
    values = f"count(c{number}) OVER pair"
    return f"({values} = 0 OR ({values} = 2 AND ({low} = {high} OR ({near}))))"


def beyond_tolerance(found: Iterable[Row], columns: Sequence[StoredColumn]) -> list[Row]:
    """Leave out rows that have a partner after all, in another order or number of copies."""
    floats = _floats(columns)
    if not floats:
        return list(found)
    alike: dict[str, list[list[Any]]] = defaultdict(list)
    for copies, row in found:
        rest = repr([value for i, value in enumerate(row) if i not in floats])
        alike[rest].append([copies, row])
    for rows in alike.values():
        missing = [row for row in rows if row[0] < 0]
        for one in (row for row in rows if row[0] > 0):
            for other in missing:
                if one[0] and other[0] and _are_close(one[1], other[1], floats):
                    pairs = min(one[0], -other[0])
                    one[0] -= pairs
                    other[0] += pairs
    return [(copies, row) for rows in alike.values() for copies, row in rows if copies]


def _are_close(one: tuple[Any, ...], other: tuple[Any, ...], floats: Sequence[int]) -> bool:
    for a, b in ((one[i], other[i]) for i in floats):
        if a is None or b is None:
            if a is not b:
                return False
            continue
        a, b = float(a), float(b)
        both_nan = math.isnan(a) and math.isnan(b)
        if not both_nan and not math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            return False
    return True


def _floats(columns: Sequence[StoredColumn]) -> list[int]:
    return [i for i, column in enumerate(columns) if is_float(column.type)]
