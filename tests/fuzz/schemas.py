"""Random tables: few columns, and few values for each, so that keys meet and rows repeat."""

import datetime
import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]

# One object, so that rows with it are equal in Python as they are in SQL.
NAN = math.nan


@dataclass(frozen=True)
class Kind:
    """A type with its name in DuckDB, and the values that occur."""

    spark: str
    duck: str
    values: tuple[Any, ...]


# Texts that are easily broken while SQL is written: line breaks, quotes, backslashes, and what
# Python takes for a line break though SQL does not.
ODD = ("a\n b", "'\\", '"\u00e9\u2028b', "\\n")

# A text of which large and small letters are alike. No Delta table has such a column yet.
COLLATED = "string collate UTF8_LCASE"
# The plain ones come up more often, so that they meet.
_TEXTS = ("", *("a", "b", "ab", "B") * 2, *ODD)

# Doubles are small sums of powers of two: adding them up is exact in any order.
KINDS = {
    kind.spark: kind
    for kind in (
        Kind("int", "INTEGER", (-1, 0, 1, 2, 3)),
        Kind("bigint", "BIGINT", (0, 1, 2, 10_000_000_000)),
        Kind(
            "decimal(10,2)", "DECIMAL(10,2)", tuple(map(Decimal, ("0.00", "1.00", "1.50", "-2")))
        ),
        Kind("string", "VARCHAR", _TEXTS),
        Kind("boolean", "BOOLEAN", (True, False)),
        Kind("date", "DATE", tuple(datetime.date(2024, 2, day) for day in (27, 28, 29))),
        Kind(
            "timestamp",
            "TIMESTAMP",
            tuple(datetime.datetime(2024, 2, 29, 23, 59, 59, micro) for micro in (0, 1, 999_999)),
        ),
        Kind("double", "DOUBLE", (0.0, -0.0, 1.5, -0.5, NAN)),
        Kind(COLLATED, "VARCHAR COLLATE NOCASE", ("A", *_TEXTS)),
    )
}
NUMBERS = {"int", "bigint", "decimal(10,2)", "double"}
# The kinds that a column of a Delta table can have.
STORED = tuple(kind for kind in KINDS if kind != COLLATED)
_NAMES = ("a", "b", "c", "d", "e")


@dataclass(frozen=True)
class Table:
    """A table's columns by name, and the rows before the changes."""

    columns: Mapping[str, str]
    rows: tuple[Row, ...]


def random_tables(rng: random.Random) -> dict[str, Table]:
    """Return one to four tables; all have an int column `k`, for USING."""
    tables = {}
    for number in range(1, rng.choice((1, 2, 2, 3, 3, 4)) + 1):
        names = rng.sample(_NAMES, rng.randint(1, 4))
        names.insert(rng.randint(0, len(names)), "k")
        columns = {name: "int" if name == "k" else random_kind(rng) for name in names}
        count = rng.choice((0, 1, 2, 4, 6, 8))
        tables[f"t{number}"] = Table(
            columns, tuple(random_row(rng, columns) for _ in range(count))
        )
    return tables


def collated(rng: random.Random, tables: dict[str, Table]) -> dict[str, Table]:
    """Return tables in which some texts have a collation."""
    return {
        name: Table(
            {
                column: COLLATED if kind == "string" and rng.random() < 0.5 else kind
                for column, kind in table.columns.items()
            },
            table.rows,
        )
        for name, table in tables.items()
    }


def random_kind(rng: random.Random) -> str:
    return rng.choice(("int", "int", *STORED))


def random_row(rng: random.Random, columns: Mapping[str, str]) -> Row:
    return tuple(random_value(rng, kind) for kind in columns.values())


def random_value(rng: random.Random, kind: str) -> Any:
    return None if rng.random() < 0.2 else rng.choice(KINDS[kind].values)


def changed(rows: Iterable[Row], changes: Iterable[tuple[int, Row]]) -> list[Row]:
    """Return rows after changes; 0.0 and -0.0 are two values, though Python takes them for one."""
    counts: Counter[str] = Counter()
    known: dict[str, Row] = {}
    for weight, row in (*((1, row) for row in rows), *changes):
        counts[repr(row)] += weight
        known.setdefault(repr(row), row)
    return [known[text] for text in counts.elements()]


def literal(value: Any, kind: str) -> str:
    """Write a value of a kind in Spark's words."""
    match kind:
        case _ if value is None:
            return "NULL"
        case _ if kind in ("string", COLLATED):
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case "date":
            return f"date'{value}'"
        case "timestamp":
            return f"timestamp_ntz'{value}'"
        case "double":
            return f"CAST('{value}' AS double)"
        case "boolean":
            return "true" if value else "false"
    return str(value)
