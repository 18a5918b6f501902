"""Random statements that change a Delta table, of every kind that Delta has."""

import random

from fuzz.schemas import Table, literal, random_row, random_value

# How statements of each kind begin, or what stands in them.
DML = (
    "INSERT INTO", "INSERT OVERWRITE", "DELETE", "UPDATE", "MERGE", "TRUNCATE", "RESTORE",
    "OPTIMIZE", "REPLACE WHERE", "dynamic",
)  # fmt: skip
_RARE = ("optimize", "truncate", "restore")
_KINDS = ("insert",) * 4 + ("delete", "update", "merge", "overwrite", "again")
_DYNAMIC = "WITH ('partitionOverwriteMode' = 'dynamic')"


class Deck:
    """Kinds of changes in random order; all of them have come before one comes again."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._kinds: list[str] = []

    def deal(self) -> str:
        """Return the next kind."""
        if not self._kinds:
            self._kinds = [*_KINDS, *_RARE]
            self._rng.shuffle(self._kinds)
        return self._kinds.pop()


def random_statements(
    rng: random.Random, name: str, table: Table, versions: int, deck: Deck | None = None
) -> list[str]:
    """Return a few statements; `versions` is how many the table has had, at least."""
    return [
        _statement(rng, name, table, versions, deck.deal() if deck else _random_kind(rng))
        for _ in range(rng.choice((0, 1, 2, 3)))
    ]


def _random_kind(rng: random.Random) -> str:
    kind = rng.choice((*_KINDS, "rare"))
    return rng.choice(_RARE) if kind == "rare" else kind


def kind_of(statement: str) -> str:
    """Return which kind of change a statement is."""
    if statement.startswith("INSERT"):
        kinds = {" REPLACE WHERE ": "REPLACE WHERE", _DYNAMIC: "dynamic"}
        if found := [kind for mark, kind in kinds.items() if mark in statement]:
            return found[0]
    return next(kind for kind in DML if statement.startswith(kind))


def insert(rng: random.Random, name: str, table: Table, count: int) -> str:
    """Return an INSERT of random rows."""
    rows = [random_row(rng, table.columns) for _ in range(count)]
    return f"INSERT INTO {name} {_values(table, rows)}"


def _statement(rng: random.Random, name: str, table: Table, versions: int, change: str) -> str:
    column = rng.choice(list(table.columns))
    kind = table.columns[column]
    where = f"{column} <=> {literal(random_value(rng, kind), kind)}"
    match change:
        case "insert":
            return insert(rng, name, table, rng.randint(1, 3))
        case "delete":
            return f"DELETE FROM {name} WHERE {where}"
        case "update":
            changed = rng.choice(list(table.columns))
            value = literal(random_value(rng, table.columns[changed]), table.columns[changed])
            return f"UPDATE {name} SET {changed} = {value} WHERE {where}"
        case "merge":
            rows = [random_row(rng, table.columns)]
            matched = rng.choice(("DELETE", "UPDATE SET *"))
            return (
                f"MERGE INTO {name} t USING ({_values(table, rows)}) s ON t.{column} <=> "
                f"s.{column} WHEN MATCHED THEN {matched} WHEN NOT MATCHED THEN INSERT *"
            )
        case "overwrite":
            return f"INSERT OVERWRITE {name} SELECT * FROM {name} WHERE NOT ({where})"
        case "again":
            # The same rows, written anew.
            return f"INSERT OVERWRITE {name} SELECT * FROM {name}"
        case "restore":
            return f"RESTORE TABLE {name} TO VERSION AS OF {rng.randrange(1, versions)}"
        case "truncate":
            return f"TRUNCATE TABLE {name}"
    return f"OPTIMIZE {name}"


def overwritten_part(rng: random.Random, name: str, table: Table) -> str:
    """Return a statement that overwrites a part of a table, where rows are alike in a column."""
    if rng.random() < 0.5:
        part = _again(rng, name, table, rng.choice(list(table.columns)))
        return f"INSERT INTO {name} REPLACE WHERE {part}"
    # Where a table has partitions, they are those of `k`.
    _, rows = _again(rng, name, table, "k").split(" SELECT ", 1)
    return f"INSERT OVERWRITE {name} {_DYNAMIC} SELECT {rows}"


def _again(rng: random.Random, name: str, table: Table, column: str) -> str:
    """Return the condition of a part of a table, and what is in it: the same, or a row more."""
    value, kind = random_value(rng, table.columns[column]), table.columns[column]
    part = f"{column} <=> {literal(value, kind)}"
    rows = f"SELECT * FROM {name} WHERE {part}"
    if rng.random() < 0.5:
        row = dict(zip(table.columns, random_row(rng, table.columns), strict=True))
        rows += f" UNION ALL {_values(table, [tuple({**row, column: value}.values())])}"
    return f"{part} {rows}"


def _values(table: Table, rows: list[tuple[object, ...]]) -> str:
    kinds = table.columns.values()
    texts = [
        ", ".join(f"CAST({literal(v, k)} AS {k})" for v, k in zip(row, kinds, strict=True))
        for row in rows
    ]
    values = ", ".join(f"({text})" for text in texts)
    return f"SELECT * FROM VALUES {values} AS v({', '.join(table.columns)})"
