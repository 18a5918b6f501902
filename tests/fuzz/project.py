"""A random dbt project with its changes: tables, models over them, rounds of statements."""

import random
from dataclasses import dataclass

from fuzz.case import SCHEMA, Case
from fuzz.dml import Deck, insert, overwritten_part, random_statements
from fuzz.queries import random_query
from fuzz.schemas import Table, random_tables
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.pin import Query
from spark_dynamic.sql.references import find_references
from spark_dynamic.support import NotIncremental

MODELS, ROUNDS = 7, 3
# Models for those that the types of their columns rule out, which only Spark knows.
SPARES = 4
# Longer than all texts that occur: Spark fills up a char with spaces when it reads it.
LENGTHS = ("varchar(9)", "char(9)")
# What `make test` runs: all kinds of changes and of columns occur.
CI_SEED = 24


@dataclass(frozen=True)
class RandomProject:
    """What a seed stands for, in full; `{schema}` is where the tables are."""

    tables: dict[str, Table]
    # The queries of the models, by name.
    texts: dict[str, str]
    spares: dict[str, str]
    fill: list[str]
    # What happens before each run.
    rounds: list[list[str]]
    # The columns of each table as it is created.
    declared: dict[str, str]

    def column_kinds(self) -> set[str]:
        """Return the types that columns of the tables have."""
        return {kind for table in self.tables.values() for kind in table.columns.values()}


def random_project(seed: int) -> RandomProject:
    """Return the project of a seed, always the same one."""
    rng = random.Random(seed)
    tables = {name: Table(table.columns, ()) for name, table in random_tables(rng).items()}
    texts = {f"model_{i}": sql for i, sql in enumerate(_queries(rng, tables, MODELS))}
    fill = [insert(rng, f"{{schema}}.{name}", table, 6) for name, table in tables.items()]
    deck = Deck(rng)
    rounds = [
        [
            statement
            for name, table in tables.items()
            for statement in random_statements(rng, f"{{schema}}.{name}", table, 2 + round_, deck)
        ]
        for round_ in range(ROUNDS)
    ]
    # By numbers of their own, so that a seed stands for the same queries as without them.
    aside = random.Random(f"{seed} parts")
    for statements in rounds:
        name = aside.choice(list(tables))
        statements.append(overwritten_part(aside, f"{{schema}}.{name}", tables[name]))
    spares = {f"spare_{i}": sql for i, sql in enumerate(_queries(rng, tables, SPARES))}
    declared = {name: _declared(seed, name, table) for name, table in tables.items()}
    return RandomProject(tables, texts, spares, fill, rounds, declared)


def _declared(seed: int, name: str, table: Table) -> str:
    """Return the columns of a table for Spark; some texts have a length, which DuckDB has not."""
    rng = random.Random(f"{seed} {name} lengths")
    types = {
        column: rng.choice(("string", *LENGTHS)) if kind == "string" else kind
        for column, kind in table.columns.items()
    }
    return ", ".join(f"{column} {type}" for column, type in types.items())


def _queries(rng: random.Random, tables: dict[str, Table], count: int) -> list[str]:
    """Return so many queries that can be refreshed incrementally."""
    found: list[str] = []
    case = Case(0, tables, {}, "")
    while len(found) < count:
        sql = random_query(rng, tables)
        try:
            bind(Query(sql, find_references(sql, SCHEMA), {}), SCHEMA, case.columns_of)
        except NotIncremental:
            continue
        found.append(sql)
    return found
