"""A case: tables, their changes, and a query; kept as JSON once it has failed."""

import datetime
import json
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from fuzz.batches import Batch, random_batches
from fuzz.queries import random_query
from fuzz.schemas import NAN, Row, Table, changed, collated, random_tables
from spark_dynamic.delta.facts import Bounds, Changes, Facts
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Column

SCHEMA = "shop"
CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """A query over tables with changes. `refused` is the code it is refused with, if it is."""

    seed: int
    tables: Mapping[str, Table]
    batches: Mapping[str, Batch]
    sql: str
    note: str = ""
    refused: str = ""

    def columns_of(self, table: TableName) -> tuple[Column, ...]:
        return tuple(Column(*pair) for pair in self.tables[table.name].columns.items())

    def new_rows(self, name: str) -> list[Row]:
        changes = self.batches[name].changes if name in self.batches else ()
        return changed(self.tables[name].rows, changes)

    def is_possible(self) -> bool:
        """Tell whether only rows are deleted that are there, and bounds have values."""
        for name, batch in self.batches.items():
            columns, counts = list(self.tables[name].columns), Counter[str]()
            for weight, row in (*((1, row) for row in self.tables[name].rows), *batch.changes):
                counts[repr(row)] += weight
            if min(counts.values(), default=0) < 0:
                return False
            places = [columns.index(column) for column in batch.bounds]
            if not all(any(row[p] is not None for _, row in batch.changes) for p in places):
                return False
        return True

    def facts(self) -> Facts:
        """What a refresh may know about the changes."""
        return {
            TableName(SCHEMA, name): Changes(
                batch.insert_only,
                {column: self._bounds(name, column) for column in batch.bounds},
            )
            for name, batch in self.batches.items()
        }

    def _bounds(self, name: str, column: str) -> Bounds:
        place = list(self.tables[name].columns).index(column)
        values = [row[place] for _, row in self.batches[name].changes]
        known = [value for value in values if value is not None]
        return Bounds(min(known), max(known))

    def to_json(self) -> str:
        tables = {
            name: {"columns": table.columns, "rows": [_encoded(row) for row in table.rows]}
            for name, table in self.tables.items()
        }
        batches = {
            name: {
                "changes": [[weight, _encoded(row)] for weight, row in batch.changes],
                "insert_only": batch.insert_only,
                "bounds": batch.bounds,
            }
            for name, batch in self.batches.items()
        }
        content = {
            "seed": self.seed,
            "note": self.note,
            "refused": self.refused,
            "sql": self.sql,
            "tables": tables,
            "batches": batches,
        }
        return _compact(content)


def _compact(content: dict[str, Any]) -> str:
    """Write JSON with one row per line."""
    text = json.dumps(content, indent=1)
    inner = re.compile(r"\[[^\[\]{}\"]*(?:\"[^\"\\]*\"[^\[\]{}\"]*)*\]")
    rows = re.compile(r"\[\s*(-?\d+),\s*(\[[^\n]*\])\s*\]")
    text = inner.sub(lambda found: " ".join(found[0].split()), text)
    return rows.sub(r"[\1, \2]", text) + "\n"


def random_case(seed: int, has_collations: bool = True) -> Case:
    """Return the case of a seed, always the same one."""
    rng = random.Random(seed)
    tables = random_tables(rng)
    if has_collations:
        tables = collated(random.Random(f"collations of {seed}"), tables)
    return Case(seed, tables, random_batches(rng, tables), random_query(rng, tables))


def read_case(text: str) -> Case:
    """Read a case from its file."""
    content = json.loads(text)
    tables = {
        name: Table(table["columns"], _decoded_rows(table["rows"], table["columns"]))
        for name, table in content["tables"].items()
    }
    batches = {}
    for name, batch in content["batches"].items():
        rows = _decoded_rows([row for _, row in batch["changes"]], tables[name].columns)
        weights = [weight for weight, _ in batch["changes"]]
        changes = tuple(zip(weights, rows, strict=True))
        batches[name] = Batch(changes, batch["insert_only"], tuple(batch["bounds"]))
    return Case(
        content["seed"], tables, batches, content["sql"], content["note"], content["refused"]
    )


def _encoded(row: Row) -> list[Any]:
    plain = (bool, int, str, type(None))
    return [value if isinstance(value, plain) else str(value) for value in row]


def _decoded_rows(rows: list[list[Any]], columns: Mapping[str, str]) -> tuple[Row, ...]:
    kinds = list(columns.values())
    return tuple(tuple(map(_decoded, row, kinds)) for row in rows)


def _decoded(value: Any, kind: str) -> Any:
    if value is None:
        return None
    match kind:
        case "decimal(10,2)":
            return Decimal(value)
        case "double":
            return NAN if value == "nan" else float(value)
        case "date":
            return datetime.date.fromisoformat(value)
        case "timestamp":
            return datetime.datetime.fromisoformat(value)
    return value
