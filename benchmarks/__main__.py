"""`make bench`: measures everything, writes the figures as JSON and as a page of the docs."""

import json
import os
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click
from pyspark.sql import SparkSession

from benchmarks import report, tpch
from benchmarks.measure import BenchmarkFailed, Measured, differing_rows, run_models
from benchmarks.project import HANDWRITTEN, QUERIES, TABLE, VARIANTS, model_name, write_project
from benchmarks.workloads import WORKLOADS, Workload
from dbt.adapters.spark_dynamic.demo.dbt_steps import Dbt


@click.command()
@click.option("--scale", default=1.0, help="TPC-H scale factor.")
@click.option("--repeats", default=5, help="How often each model is refreshed and measured.")
@click.option("--home", type=click.Path(path_type=Path), default=Path(".benchmark"))
@click.option("--queries", default=",".join(QUERIES), help="Some of the queries.")
@click.option("--variants", default=",".join(VARIANTS), help="Some of the variants.")
@click.option("--workloads", default="", help="A part of the names of the workloads to run.")
@click.option("--output", type=click.Path(path_type=Path), help="The JSON file of the figures.")
def main(
    scale: float,
    repeats: int,
    home: Path,
    queries: str,
    variants: str,
    workloads: str,
    output: Path | None,
) -> None:
    """Compare dynamic tables with rebuilt tables and hand-written incremental models."""
    home = home.resolve()
    home.mkdir(exist_ok=True)
    data = tpch.generate(scale, home)
    bench = Bench(home, queries.split(","), variants.split(","))
    bench.prepare(data)
    rounds: list[dict[str, object]] = []
    compared: list[str] = []
    figures = {
        "scale": scale,
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        # The kinds of change after which all variants were found to hold the same rows.
        "compared": compared,
        "rounds": rounds,
    }
    path = output or home / f"figures_{scale:g}.json"
    for workload in WORKLOADS:
        if workloads in workload.name:
            rounds += bench.measure(workload, repeats, warm_up=not rounds)
            # What is measured is measured, should the rest be cut short.
            path.write_text(json.dumps(figures, indent=1))
            bench.check()
            compared.append(workload.name)
            path.write_text(json.dumps(figures, indent=1))
    click.echo(report.summary(figures))
    click.echo(f"All figures are in {path}.")


class Bench:
    """One project on one warm session."""

    def __init__(self, home: Path, queries: list[str], variants: list[str]) -> None:
        self._home = home
        self._queries = queries
        self._variants = variants
        self._batch = 0
        project = home / "project"
        write_project(project, queries, home / "spark", "6g")
        self._dbt = Dbt(project)

    def prepare(self, data: Path) -> None:
        """Load the sources, build all models, and refresh them once to warm the JVM."""
        self._must("deps")
        # dbt starts the session, with the adapter's own settings.
        self._must("debug")
        self._spark = SparkSession.builder.getOrCreate()
        click.echo("Loading the sources ...")
        tpch.load(self._spark, data)
        self._spark.sql("DROP SCHEMA IF EXISTS benchmark CASCADE")
        click.echo("Building all models ...")
        self._run(self._options(tpch.versions(self._spark), False))

    def measure(
        self, workload: Workload, repeats: int, *, warm_up: bool
    ) -> list[dict[str, object]]:
        """Change and refresh so many times; a round that warms up does not count."""
        found: list[dict[str, object]] = []
        for round in range(0 if warm_up else 1, repeats + 1):
            since = tpch.versions(self._spark)
            self._batch += 1
            workload.change(self._spark, self._batch)
            measured = self._run(self._options(since, workload.mixed))
            if round:
                found += [
                    asdict(m) | {"workload": workload.name, "round": round} for m in measured
                ]
            total = sum(m.seconds for m in measured)
            click.echo(f"{workload.name}, round {round} of {repeats}: {total:.0f} s")
        return found

    def _run(self, options: list[str]) -> list[Measured]:
        found = []
        # The first one is also the first to read the sources after they changed: each in its turn.
        turn = self._batch % len(self._variants)
        for variant in self._variants[turn:] + self._variants[:turn]:
            extra = options if variant == HANDWRITTEN else []
            for one in run_models(self._dbt, self._spark, variant, *extra):
                click.echo(
                    f"  {one.model:34} {one.seconds:6.2f} s {one.jobs:4} jobs "
                    f"{one.bytes_read / 1e6:8.1f} MB  {one.action} {one.reason}"
                )
                found.append(one)
        return found

    def _options(self, since: dict[str, int], deletes: bool) -> list[str]:
        return [f"--vars={json.dumps({'since': since, 'deletes': deletes})}"]

    def check(self) -> None:
        """See that all variants of a query hold the same rows."""
        for query in self._queries:
            for variant in set(self._variants) - {TABLE}:
                name = f"benchmark.{model_name(query, variant)}"
                rows = differing_rows(self._spark, name, f"benchmark.{query}__{TABLE}")
                if rows:
                    raise BenchmarkFailed(f"{name} differs from its query in {rows} rows.")

    def _must(self, *command: str) -> None:
        step = self._dbt.run(*command)
        if not step.ok:
            raise BenchmarkFailed(f"dbt {command[0]}: {'; '.join(step.complaints)}")


if __name__ == "__main__":
    main()
