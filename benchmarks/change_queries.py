"""`make bench-changes`: a change query of a join, against the general shape and the naive way.

The interval holds inserts only, so nothing has to be netted (ADDED_ONLY). One updated order more,
and the same query has to net everything (MINIMIZE). The naive way compares two whole results.
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


@click.command()
@click.option("--scale", default=1.0, help="TPC-H scale factor.")
@click.option("--repeats", default=5, help="How often each query runs.")
@click.option("--home", type=click.Path(path_type=Path), default=Path(".benchmark"))
@click.option("--output", type=click.Path(path_type=Path), help="The JSON file of the figures.")
def main(scale: float, repeats: int, home: Path, output: Path | None) -> None:
    """Measure change queries over a join of orders and their lines."""
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
    queries = _queries(dbt, spark)
    rows = {name: spark.sql(sql).count() for name, sql in queries.items()}
    if rows[INSERTS] != rows[NAIVE]:
        raise BenchmarkFailed(f"The same interval has different changes: {rows}.")
    figures = {
        "scale": scale,
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "change_queries": {
            name: {
                "rows": rows[name],
                "shape": ", ".join(shapes(sql)) or None,
                "seconds": _seconds(spark, sql, repeats),
            }
            for name, sql in queries.items()
        },
    }
    path = output or home / f"changes_{scale:g}.json"
    path.write_text(json.dumps(figures, indent=1))
    click.echo(summary(figures))
    click.echo(f"All figures are in {path}.")


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


def _queries(dbt: Dbt, spark: SparkSession) -> dict[str, str]:
    begin = datetime.now(UTC)
    old = tpch.versions(spark)
    Workload(recent=True, mixed=False).change(spark, 1)
    inserted, new = datetime.now(UTC), tpch.versions(spark)
    spark.sql(f"UPDATE {_LINES} SET l_comment = 'changed' WHERE l_orderkey = 1")
    return {
        INSERTS: _changes(dbt, begin, inserted),
        UPDATE: _changes(dbt, begin, datetime.now(UTC)),
        NAIVE: _naive(old, new),
    }


def _changes(dbt: Dbt, since: datetime, until: datetime) -> str:
    """Return what the macro `changes` makes of the join."""
    query = " ".join(_JOIN.format(orders=_ORDERS, lineitem=_LINES).split())
    points = f"since='{since.isoformat()}', until='{until.isoformat()}'"
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
