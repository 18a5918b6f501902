"""`make bench-changes`: change queries, against the general shape and the naive way.

The interval holds inserts only, so nothing has to be netted (ADDED_ONLY). One updated order more,
and the same query has to net everything (MINIMIZE). The naive way compares two whole results.

Of a join, the changes are few and the other side is large. Of a single table, there is nothing
else to read than the changes, and these are many: a tenth of the table.
"""

import json
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import click
from pyspark.sql import SparkSession

from benchmarks import tpch
from benchmarks.measure import BenchmarkFailed
from benchmarks.project import write_project
from benchmarks.workloads import Workload
from dbt.adapters.spark_dynamic.demo.dbt_steps import Dbt
from spark_dynamic.changes.layout import shapes

_JOIN = """
select o.o_orderkey, o.o_custkey, l.l_linenumber, l.l_extendedprice
from {orders} as o join {lineitem} as l on o.o_orderkey = l.l_orderkey
"""
_ORDERS, _LINES = f"{tpch.SCHEMA}.orders", f"{tpch.SCHEMA}.lineitem"


INSERTS, UPDATE, NAIVE = "inserts only", "with one updated order", "`EXCEPT ALL` of two versions"
UPDATED_ROW = "with one updated row"
# What names a row of the single table.
KEYS = {"none": "", "`unique_key`": ", unique_key=['l_orderkey', 'l_linenumber']"}
_SHARE = 10


@click.command()
@click.option("--scale", default=1.0, help="TPC-H scale factor.")
@click.option("--repeats", default=5, help="How often each query runs.")
@click.option("--home", type=click.Path(path_type=Path), default=Path(".benchmark"))
@click.option("--output", type=click.Path(path_type=Path), help="The JSON file of the figures.")
def main(scale: float, repeats: int, home: Path, output: Path | None) -> None:
    """Measure change queries over a join of orders and their lines, and over the lines alone."""
    home = home.resolve()
    home.mkdir(exist_ok=True)
    data = tpch.generate(scale, home)
    write_project(home / "project", [], home / "spark", "6g")
    dbt = Dbt(home / "project")
    for command in ("deps", "debug"):
        if not dbt.run(command).ok:
            raise BenchmarkFailed(f"dbt {command} failed.")
    spark = SparkSession.builder.getOrCreate()
    click.echo("Loading the sources ...")
    tpch.load(spark, data)
    facts = {
        "scale": scale,
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
    }
    of_join = {**facts, "change_queries": _join(dbt, spark, repeats)}
    path = output or home / f"changes_{scale:g}.json"
    path.write_text(json.dumps(of_join, indent=1))
    click.echo(summary(of_join))
    of_table = {**facts, "one_table": _one_table(dbt, spark, repeats)}
    beside = path.with_name(f"{path.stem}_of_one_table.json")
    beside.write_text(json.dumps(of_table, indent=1))
    click.echo(summary_of_one_table(of_table))
    click.echo(f"All figures are in {path} and {beside}.")


Figures = dict[str, dict[str, Any]]


def _join(dbt: Dbt, spark: SparkSession, repeats: int) -> Figures:
    """Measure the changes of orders joined with their lines."""
    queries = _queries(dbt, spark)
    found = {name: _figures(spark, sql, repeats) for name, sql in queries.items()}
    rows = {name: one["rows"] for name, one in found.items()}
    if rows[INSERTS] != rows[NAIVE]:
        raise BenchmarkFailed(f"The same interval has different changes: {rows}.")
    return found


def _one_table(dbt: Dbt, spark: SparkSession, repeats: int) -> dict[str, Figures]:
    """Measure the changes of all lines after many were inserted, with a key and without."""
    begin = datetime.now(UTC)
    [(highest,)] = spark.sql(f"SELECT max(l_orderkey) FROM {_LINES}").collect()
    columns = ", ".join(
        f"l_orderkey + {highest}" if name == "l_orderkey" else name
        for name in spark.table(_LINES).columns
    )
    spark.sql(
        f"INSERT INTO {_LINES} SELECT {columns} FROM {_LINES} "
        f"WHERE pmod(xxhash64(l_orderkey), {_SHARE}) = 0"
    )
    inserted = datetime.now(UTC)
    one_row = "l_orderkey = 1 AND l_linenumber = 1"
    spark.sql(f"UPDATE {_LINES} SET l_comment = 'changed again' WHERE {one_row}")
    updated = datetime.now(UTC)
    query = f"select * from {_LINES}"
    found = {
        name: {
            interval: _figures(spark, _changes(dbt, query, begin, until, key), repeats)
            for interval, until in ((INSERTS, inserted), (UPDATED_ROW, updated))
        }
        for name, key in KEYS.items()
    }
    for name, intervals in found.items():
        rows = {interval: one["rows"] for interval, one in intervals.items()}
        # The old row and the new one.
        if rows[UPDATED_ROW] != rows[INSERTS] + 2:
            raise BenchmarkFailed(f"The changes by {name} do not fit: {rows}.")
    return found


def _figures(spark: SparkSession, sql: str, repeats: int) -> dict[str, Any]:
    return {
        "rows": spark.sql(sql).count(),
        "shape": ", ".join(shapes(sql)) or None,
        "seconds": _seconds(spark, sql, repeats),
    }


def summary(figures: Mapping[str, Any]) -> str:
    """Return the figures as a table in Markdown: medians, and ratios to the simplest shape."""
    queries = figures["change_queries"]
    least = median(queries[INSERTS]["seconds"])
    lines = ["| interval | shape | changes | s | times as long |", "|---|---|---|---|---|"]
    for name, query in queries.items():
        took = median(query["seconds"])
        shape = f"`{query['shape']}`" if query["shape"] else ""
        lines.append(f"| {name} | {shape} | {query['rows']} | {took:.1f} | {took / least:.1f} |")
    return "\n".join(lines)


def summary_of_one_table(figures: Mapping[str, Any]) -> str:
    """Return the figures as a table in Markdown: medians, and ratios to the simplest shape."""
    lines = [
        "| key | interval | shape | changes | s | times as long |",
        "|---|---|---|---|---|---|",
    ]
    for key, intervals in figures["one_table"].items():
        least = median(intervals[INSERTS]["seconds"])
        for name, query in intervals.items():
            took = median(query["seconds"])
            facts = f"`{query['shape']}` | {query['rows']} | {took:.1f} | {took / least:.1f}"
            lines.append(f"| {key} | {name} | {facts} |")
    return "\n".join(lines)


def _queries(dbt: Dbt, spark: SparkSession) -> dict[str, str]:
    begin = datetime.now(UTC)
    old = tpch.versions(spark)
    Workload(recent=True, mixed=False).change(spark, 1)
    inserted, new = datetime.now(UTC), tpch.versions(spark)
    spark.sql(f"UPDATE {_LINES} SET l_comment = 'changed' WHERE l_orderkey = 1")
    query = " ".join(_JOIN.format(orders=_ORDERS, lineitem=_LINES).split())
    return {
        INSERTS: _changes(dbt, query, begin, inserted),
        UPDATE: _changes(dbt, query, begin, datetime.now(UTC)),
        NAIVE: _naive(old, new),
    }


def _changes(dbt: Dbt, query: str, since: datetime, until: datetime, more: str = "") -> str:
    """Return what the macro `changes` makes of a query; all of its columns are read."""
    points = f"since='{since.isoformat()}', until='{until.isoformat()}'{more}"
    step = dbt.run("compile", "--inline", f"select * from {{{{ changes('{query}', {points}) }}}}")
    if not step.ok:
        raise BenchmarkFailed("; ".join(step.complaints))
    return str(step.results[0].node.compiled_code)


def _naive(old: dict[str, int], new: dict[str, int]) -> str:
    """Return the rows that only one of two versions of the result has."""
    one, other = (
        _JOIN.format(
            orders=f"{_ORDERS} VERSION AS OF {versions['orders']}",
            lineitem=f"{_LINES} VERSION AS OF {versions['lineitem']}",
        )
        for versions in (new, old)
    )
    added, removed = f"({one} EXCEPT ALL {other})", f"({other} EXCEPT ALL {one})"
    return f"SELECT *, 'INSERT' FROM {added} UNION ALL SELECT *, 'DELETE' FROM {removed}"


def _seconds(spark: SparkSession, sql: str, repeats: int) -> list[float]:
    """Run a query once to warm up, then measure it."""
    taken = []
    for _ in range(repeats + 1):
        begin = time.monotonic()
        spark.sql(sql).write.format("noop").mode("overwrite").save()
        taken.append(time.monotonic() - begin)
    return [round(seconds, 3) for seconds in taken[1:]]


if __name__ == "__main__":
    main()
