"""Random changes of a table between two refreshes, as rows with weights."""

import random
from collections import Counter
from dataclasses import dataclass

from fuzz.schemas import Row, Table, random_row, random_value

Change = tuple[int, Row]

BOUNDED = {"int", "bigint", "decimal(10,2)", "date", "string"}


@dataclass(frozen=True)
class Batch:
    """The changes of one table, and what the refresh is told about them: only true things."""

    changes: tuple[Change, ...]
    insert_only: bool = False
    # The columns whose smallest and largest changed values are known.
    bounds: tuple[str, ...] = ()

    def is_insert_only(self) -> bool:
        return all(weight > 0 for weight, _ in self.changes)


def random_batches(rng: random.Random, tables: dict[str, Table]) -> dict[str, Batch]:
    """Return the changes of some tables; a table without an entry is known to be unchanged."""
    return {
        name: random_batch(rng, table) for name, table in tables.items() if rng.random() < 0.75
    }


def random_batch(rng: random.Random, table: Table) -> Batch:
    style = rng.choice(("mixed", "mixed", "mixed", "inserts", "inserts", "emptied", "nothing"))
    live = list(table.rows)
    changes: list[Change] = []
    if style == "emptied":
        changes = [(-1, row) for row in live]
    elif style == "inserts":
        # Often with keys above all others, alike in all tables.
        above = rng.choice((0, 0, 40))
        rows = (random_row(rng, table.columns) for _ in range(rng.randint(1, 4)))
        changes = [(1, _above(row, table, above)) for row in rows]
    elif style == "mixed":
        for _ in range(rng.randint(1, 6)):
            changes += _step(rng, table, live)
    if rng.random() < 0.5:
        changes = _consolidated(changes)
    batch = Batch(tuple(changes))
    bounds = tuple(
        name
        for place, (name, kind) in enumerate(table.columns.items())
        if kind in BOUNDED and rng.random() < 0.7 and _is_known(batch, place)
    )
    return Batch(batch.changes, batch.is_insert_only() and rng.random() < 0.8, bounds)


def _above(row: Row, table: Table, by: int) -> Row:
    kinds = table.columns.values()
    return tuple(
        value + by if kind in ("int", "bigint") and value is not None else value
        for value, kind in zip(row, kinds, strict=True)
    )


def _step(rng: random.Random, table: Table, live: list[Row]) -> list[Change]:
    """Do one thing to the live rows; the same row may be hit again by a later step."""
    action = rng.choice(("insert", "delete", "update", "again")) if live else "insert"
    if action == "insert":
        row = rng.choice(table.rows) if table.rows and rng.random() < 0.3 else None
        live.append(row or random_row(rng, table.columns))
        return [(1, live[-1])]
    old = live.pop(rng.randrange(len(live)))
    if action == "delete":
        return [(-1, old)]
    new = old
    if action == "update":
        place = rng.randrange(len(old))
        kind = list(table.columns.values())[place]
        new = (*old[:place], random_value(rng, kind), *old[place + 1 :])
    live.append(new)
    return [(-1, old), (1, new)]


def _consolidated(changes: list[Change]) -> list[Change]:
    # By what rows look like: 0.0 and -0.0 are equal, and still two rows.
    total: Counter[str] = Counter()
    for weight, row in changes:
        total[repr(row)] += weight
    rows = {repr(row): row for _, row in changes}
    return [(total[text], row) for text, row in rows.items() if total[text]]


def _is_known(batch: Batch, place: int) -> bool:
    return any(row[place] is not None for _, row in batch.changes)
