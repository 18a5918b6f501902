"""`make bench-engine`: how long the engine itself takes, from a text to its statements.

Takes the 99 queries of TPC-DS, as an older DuckDB has them built in, and does with each what a
refresh does before and between its statements, without any Spark: read the text, bind it, find
its types and its fingerprint, differentiate it with changes of every kind in all its sources, and
write all statements. Queries that the engine refuses are timed until it does. Most of them end in
LIMIT, which it does, so all are timed without it as well.
"""

import json
import platform
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
import sqlglot
from sqlglot import exp

from spark_dynamic.apply.groups import Groups
from spark_dynamic.apply.rows import Rows
from spark_dynamic.apply.shape import check_floats, group_shape
from spark_dynamic.changes.interval import Interval, Kind
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.names import TableName
from spark_dynamic.plan.fingerprint import fingerprint
from spark_dynamic.plan.nodes import Plan
from spark_dynamic.plan.types import measure_types, typed_nodes, with_union_types
from spark_dynamic.refresh.incremental import Work, incremental_statement
from spark_dynamic.refresh.maintenance import Maintenance, Pinned
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.dialect import SparkDynamic, parsed
from spark_dynamic.sql.pin import Query
from spark_dynamic.sql.references import Unreadable, find_references
from spark_dynamic.sql.write import Writer
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column, Commit

_SCHEMA: Final = "tpcds"
# Run by a Python that finds the older DuckDB first.
_READ: Final = """
import duckdb, json
connection = duckdb.connect()
connection.execute("CALL dsdgen(sf = 0)")
columns = "SELECT table_name, column_name, lower(data_type) FROM information_schema.columns"
print(json.dumps({
    "texts": connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall(),
    "columns": connection.execute(f"{columns} ORDER BY ALL").fetchall(),
}))
"""
# Of every value that is computed. Which type it is makes no difference to the time.
_TYPE: Final = "decimal(17,2)"

Tables = Mapping[TableName, tuple[Column, ...]]


@dataclass(frozen=True)
class Timed:
    """One query: processor time of the best try, and why it is refused, if it is."""

    query: str
    milliseconds: float
    refused: str
    # The length of all statements together.
    characters: int


class Changed:
    """A warehouse in which ten rows of every source have changed, in all ways."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def execute(self, sql: str) -> None:
        """Take a statement."""
        self.statements.append(sql)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Answer the question how many rows there are, and between which bounds."""
        self.statements.append(sql)
        return [_Measured()]

    def history(self, table: TableName, limit: int) -> list[Commit]:
        """Nobody asks for it."""
        raise NotImplementedError

    def now(self) -> datetime:
        """Nobody asks for it."""
        raise NotImplementedError


class _Measured(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return "20" if name == "total" else "10"


def statements(text: str, tables: Tables) -> list[str]:
    """Do all the work of a refresh that is not Spark's; return its statements."""
    query = Query(text, find_references(text, _SCHEMA), {})
    versions = dict.fromkeys(query.tables(), 2)
    maintenance = maintenance_of(query, tables, versions)
    intervals = {table: Interval(table, 1, 2, Kind.CHANGES) for table in versions}
    warehouse = Changed()
    storage = TableName(_SCHEMA, "result__dyn")
    work = Work(maintenance, storage, 7, 8, intervals, versions)
    with incremental_statement(work, warehouse) as write:
        assert write is not None
        return [*warehouse.statements, write.statement]


def maintenance_of(query: Query, tables: Tables, versions: Mapping[TableName, int]) -> Maintenance:
    """Do what `maintain` does, with types that need no Spark."""
    bound = bind(query, _SCHEMA, lambda table: tables[table])
    writer = Writer(Pinned(versions))

    def describe(plan: Plan) -> tuple[Column, ...]:
        writer.select(plan)
        return tuple(Column(id, _TYPE) for id in plan.columns)

    bound = replace(bound, plan=with_union_types(bound.plan, describe))
    describe(bound.plan)
    nodes = typed_nodes(bound.plan)
    types = measure_types(nodes, [describe(node) for node in nodes])
    check_floats(bound, types)
    names = [name or f"column_{i}" for i, name in enumerate(bound.names)]
    columns = tuple(StoredColumn(name, name, _TYPE) for name in names)
    shape = group_shape(bound)
    target = Groups(shape, types, columns) if shape else Rows(columns)
    return Maintenance(bound, fingerprint(bound, tuple(names)), target)


def timed(query: str, text: str, tables: Tables, tries: int) -> Timed:
    """Time one query, each time from its text."""
    taken, refused, length = [], "", 0
    for _ in range(tries):
        parsed.cache_clear()
        begin = time.process_time()
        try:
            length = sum(map(len, statements(text, tables)))
        except NotIncremental as error:
            refused = error.reason.code
        except Unreadable:
            refused = "TEXT_NOT_READABLE"
        taken.append(time.process_time() - begin)
    return Timed(query, round(1000 * min(taken), 2), refused, length)


def read_queries(package: Path) -> tuple[dict[str, str], Tables]:
    """Return the queries in Spark's words, and the columns of the tables."""
    # Isolated from this environment, which has a newer DuckDB.
    command = [
        sys.executable,
        "-I",
        "-c",
        f"import sys; sys.path.insert(0, {str(package)!r})\n{_READ}",
    ]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    tables: dict[TableName, tuple[Column, ...]] = {}
    for table, name, kind in found["columns"]:
        column = Column(name, kind.replace("integer", "int").replace("varchar", "string"))
        tables[TableName(_SCHEMA, table)] = (*tables.get(TableName(_SCHEMA, table), ()), column)
    texts = {
        f"{number:02}": sqlglot.parse_one(text, dialect="duckdb").sql(dialect=SparkDynamic)
        for number, text in found["texts"]
    }
    return texts, tables


def without_limit(text: str) -> str:
    """Return a query without the LIMIT of its result."""
    tree = sqlglot.parse_one(text, dialect=SparkDynamic)
    if isinstance(tree, exp.Query):
        tree.set("limit", None)
    return tree.sql(dialect=SparkDynamic)


def summary(figures: Mapping[str, Any]) -> str:
    """Return the figures as a table in Markdown."""
    lines = ["| texts | queries | median ms | worst ms | worst query |", "|---|---|---|---|---|"]
    for form, every in figures["engine_time"].items():
        kept = [one for one in every if not one["refused"]]
        for kind, part in (("all", every), ("differentiated", kept)):
            if not part:
                continue
            worst = max(part, key=lambda one: one["milliseconds"])
            middle = median(one["milliseconds"] for one in part)
            shown = f"{len(part)} | {middle:.1f} | {worst['milliseconds']:.1f} | {worst['query']}"
            lines.append(f"| {form}, {kind} | {shown} |")
    return "\n".join(lines)


@click.command(help=__doc__)
@click.option("--package", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--tries", default=3, show_default=True)
@click.option("--output", type=click.Path(path_type=Path))
def main(package: Path, tries: int, output: Path | None) -> None:
    """Time all queries, print a table, and keep the figures."""
    texts, tables = read_queries(package)
    forms = {
        "as they are": texts,
        "without LIMIT": {n: without_limit(t) for n, t in texts.items()},
    }
    # The first reading of any text takes longer.
    statements(f"SELECT ss_item_sk FROM {_SCHEMA}.store_sales", tables)
    found = {
        form: [vars(timed(name, text, tables, tries)) for name, text in every.items()]
        for form, every in forms.items()
    }
    figures = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "sqlglot": sqlglot.__version__,
        "engine_time": found,
    }
    click.echo(summary(figures))
    for form, every in found.items():
        codes = Counter(one["refused"] for one in every if one["refused"])
        click.echo(f"Refused, {form}: {', '.join(f'{n} {c}' for c, n in codes.most_common())}")
    if output:
        # One query per line.
        text = re.sub(r"\n {4}\s*|\n {3}(?=})", " ", json.dumps(figures, indent=1))
        output.write_text(text + "\n")


if __name__ == "__main__":
    main()
