"""`make bench-changes`: a change query of a join, against the general shape and the naive way.

The interval holds inserts only, so nothing has to be netted (ADDED_ONLY). One updated row more,
and the same query has to net everything (MINIMIZE). The naive way compares two whole results.
"""

import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import click
from pyspark.sql import SparkSession

from benchmarks import tpch
from benchmarks.measure import BenchmarkFailed
from benchmarks.project import write_project
from benchmarks.workloads import Workload
from dbt.adapters.spark_dynamic.demo.dbt_steps import Dbt

_JOIN = """
select o.o_orderkey, o.o_custkey, l.l_linenumber, l.l_extendedprice
from {orders} as o join {lineitem} as l on o.o_orderkey = l.l_orderkey
"""
_ORDERS, _LINES = f"{tpch.SCHEMA}.orders", f"{tpch.SCHEMA}.lineitem"


@click.command()
@click.option("--scale", default=1.0, help="TPC-H scale factor.")
@click.option("--repeats", default=5, help="How often each query runs.")
@click.option("--home", type=click.Path(path_type=Path), default=Path(".benchmark"))
def main(scale: float, repeats: int, home: Path) -> None:
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
    seconds = {name: _seconds(spark, sql, repeats) for name, sql in queries.items()}
    rows = {name: spark.sql(sql).count() for name, sql in queries.items()}
    click.echo("| query | rows | seconds | times as long |")
    click.echo("|---|---|---|---|")
    for name, took in seconds.items():
        ratio = took / seconds["inserts only"]
        click.echo(f"| {name} | {rows[name]} | {took:.2f} | {ratio:.1f}× |")


def _queries(dbt: Dbt, spark: SparkSession) -> dict[str, str]:
    begin = datetime.now(UTC)
    old = tpch.versions(spark)
    Workload(recent=True, mixed=False).change(spark, 1)
    inserted, new = datetime.now(UTC), tpch.versions(spark)
    spark.sql(f"UPDATE {_LINES} SET l_comment = 'changed' WHERE l_orderkey = 1")
    return {
        "inserts only": _changes(dbt, begin, inserted),
        "with one updated row": _changes(dbt, begin, datetime.now(UTC)),
        "EXCEPT ALL of two versions": _naive(old, new),
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


def _seconds(spark: SparkSession, sql: str, repeats: int) -> float:
    """Run a query once to warm up, then measure it."""
    taken = []
    for _ in range(repeats + 1):
        begin = time.monotonic()
        spark.sql(sql).write.format("noop").mode("overwrite").save()
        taken.append(time.monotonic() - begin)
    return median(taken[1:])


if __name__ == "__main__":
    main()
