"""Random statements that change a Delta table, of every kind that Delta has."""

import random

from fuzz.schemas import Table, literal, random_row, random_value

_KINDS = ("insert",) * 4 + ("delete", "update", "merge", "overwrite", "again", "rare")


def random_statements(rng: random.Random, name: str, table: Table, versions: int) -> list[str]:
    """Return a few statements; `versions` is how many the table has had, at least."""
    return [_statement(rng, name, table, versions) for _ in range(rng.choice((0, 1, 2, 3)))]


def insert(rng: random.Random, name: str, table: Table, count: int) -> str:
    """Return an INSERT of random rows."""
    rows = [random_row(rng, table.columns) for _ in range(count)]
    return f"INSERT INTO {name} {_values(table, rows)}"


def _statement(rng: random.Random, name: str, table: Table, versions: int) -> str:
    column = rng.choice(list(table.columns))
    kind = table.columns[column]
    where = f"{column} <=> {literal(random_value(rng, kind), kind)}"
    match rng.choice(_KINDS):
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
    rare = (f"OPTIMIZE {name}", f"TRUNCATE TABLE {name}")
    restore = f"RESTORE TABLE {name} TO VERSION AS OF {rng.randrange(1, versions)}"
    return rng.choice((*rare, restore)) if versions > 1 else rng.choice(rare)


def _values(table: Table, rows: list[tuple[object, ...]]) -> str:
    kinds = table.columns.values()
    texts = [
        ", ".join(f"CAST({literal(v, k)} AS {k})" for v, k in zip(row, kinds, strict=True))
        for row in rows
    ]
    values = ", ".join(f"({text})" for text in texts)
    return f"SELECT * FROM VALUES {values} AS v({', '.join(table.columns)})"
