"""`make bench-many`: what a run of many dynamic tables costs when there is nothing to do.

Four projects of the same models, run one after the other in one process and one warm Spark:

- `nothing`: a materialization that does nothing at all, the least that dbt can run;
- `view`: dbt-spark's views, the cheapest models of its own;
- `held`: dynamic tables of which none is due;
- `due`: dynamic tables that are all due, over sources in which nothing has changed.
"""

import cProfile
import json
import os
import platform
import pstats
import random
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
from dbt.cli.main import dbtRunner
from pyspark import SparkContext
from pyspark.sql import SparkSession

from benchmarks.measure import BenchmarkFailed
from dbt.adapters.spark_dynamic.demo.dbt_steps import Dbt, Step

NOTHING, VIEW, HELD, DUE = "nothing", "view", "held", "due"
KINDS: Final = (NOTHING, VIEW, HELD, DUE)
_SOURCES: Final = 10
# Every fifth model reads the one before it.
_CHAINED: Final = 5

_CONFIGS: Final = {
    NOTHING: {"+materialized": "nothing"},
    VIEW: {"+materialized": "view"},
    HELD: {"+materialized": "dynamic_table", "+target_lag": "3650 days"},
    DUE: {"+materialized": "dynamic_table"},
}
# The tables of `held` are those of `due`: when a table is due is not part of what it is. `nothing`
# has the same target, because dbt lists what exists in a target whatever its models do.
_SCHEMAS: Final = {NOTHING: "many", VIEW: "many_views", HELD: "many", DUE: "many"}
_MATERIALIZATION: Final = """
{% materialization nothing, default %}
  {%- do store_result('main', response='OK') -%}
  {{ return({'relations': []}) }}
{% endmaterialization %}
"""

# So often each kind is run first: until the JVM has compiled what runs often, and no table is so
# new that it is looked at closely.
_WARM_UP: Final = 2


def model_text(number: int) -> str:
    """Return the text of one model; it is the same in all projects."""
    source = f"many_sources.events_{number % _SOURCES}"
    if number % _CHAINED == _CHAINED - 1:
        source = f"{{{{ ref('model_{number - 1:03}') }}}}"
    return f"select id, amount, {number} as number from {source} where id % 7 <> 1\n"


def write_project(folder: Path, kind: str, models: int, home: Path) -> None:
    """Write the project of one kind anew; what dbt keeps of its last parse stays."""
    shutil.rmtree(folder / "models", ignore_errors=True)
    (folder / "models").mkdir(parents=True)
    (folder / "macros").mkdir(exist_ok=True)
    for number in range(models):
        path = folder / "models" / f"model_{number:03}.sql"
        path.write_text(model_text(number))
    if kind == NOTHING:
        (folder / "macros" / "nothing.sql").write_text(_MATERIALIZATION)
    models_of = {"many": _CONFIGS[kind]}
    project = {"name": "many", "version": "1.0", "profile": "many", "models": models_of}
    profile = {"type": "spark_dynamic", "schema": _SCHEMAS[kind], "threads": 4, "home": str(home)}
    # YAML reads JSON.
    (folder / "dbt_project.yml").write_text(json.dumps(project))
    outputs = {"many": {"target": "dev", "outputs": {"dev": profile}}}
    (folder / "profiles.yml").write_text(json.dumps(outputs))


class Many:
    """The projects of some kinds on one session."""

    def __init__(self, home: Path, models: int, kinds: Sequence[str] = KINDS) -> None:
        self._home = home
        self._models = models
        self._kinds = kinds
        self._dbt: dict[str, Dbt] = {}
        for kind in kinds:
            folder = home / kind
            write_project(folder, kind, models, home / "spark")
            self._dbt[kind] = Dbt(folder)

    def prepare(self) -> None:
        """Load the sources, build all tables, and run everything once."""
        # dbt starts the session, with the adapter's own settings.
        self._must("debug", self._kinds[0])
        spark = SparkSession.builder.getOrCreate()
        spark.sql("CREATE SCHEMA IF NOT EXISTS many_sources")
        for number in range(_SOURCES):
            name = f"many_sources.events_{number}"
            if not spark.catalog.tableExists(name):
                rows = "SELECT id, id % 13 AS amount FROM range(100)"
                spark.sql(f"CREATE TABLE {name} USING delta AS {rows}")
        # `held` looks at the tables of `due`, so these are built first, and twice settled.
        built = [kind for kind in (DUE, DUE, DUE) if kind in self._kinds]
        for kind in (*built, *self._kinds * _WARM_UP):
            click.echo(f"{kind}: {self._must('run', kind).seconds:.1f} s")

    def measure(self, repeats: int, shuffle: bool = False) -> list[dict[str, Any]]:
        """Run every kind so many times, in turns, so that all see the same machine.

        Each run waits until the JVM has compiled and cleaned up after the one before. What is left
        of that falls on whoever comes next, so the order of a round can be `shuffle`d.
        """
        rounds: list[dict[str, Any]] = []
        for number in range(repeats):
            entry: dict[str, Any] = {"round": number + 1, "cpu": {}}
            order = random.sample(self._kinds, len(self._kinds)) if shuffle else self._kinds
            for kind in order:
                _rest()
                before = _cpu_seconds()
                entry[kind] = round(self._run(kind), 3)
                entry["cpu"][kind] = round(_cpu_seconds() - before, 3)
            click.echo(json.dumps(entry))
            rounds.append(entry)
        return rounds

    def statements(self, kind: str) -> dict[str, int]:
        """Count the statements of one more run, by their first words."""
        found: Counter[str] = Counter()

        def listen(event: Any) -> None:
            if event.info.name == "SQLQuery":
                text = event.data.sql.rpartition("*/")[2].split()
                found[" ".join(text[:2])] += 1

        folder = self._home / kind
        options = ["--log-level=none", f"--project-dir={folder}", f"--profiles-dir={folder}"]
        dbtRunner(callbacks=[listen]).invoke(["run", *options])
        return dict(found.most_common())

    def profile(self, kind: str, lines: int = 60) -> None:
        """Write down where a run in a single thread spends its time."""
        profiler = cProfile.Profile()
        profiler.enable()
        self._must("run", kind, "--single-threaded")
        profiler.disable()
        with (self._home / f"profile_{kind}.txt").open("w") as file:
            for order in ("cumulative", "tottime"):
                pstats.Stats(profiler, stream=file).sort_stats(order).print_stats(lines)

    def _run(self, kind: str) -> float:
        step = self._must("run", kind)
        if len(step.results) != self._models:
            raise BenchmarkFailed(f"{kind}: {len(step.results)} models were run.")
        wanted = {HELD: "NOT_DUE", DUE: "NO_DATA"}.get(kind)
        found = {result.adapter_response.get("refresh_action") for result in step.results}
        if wanted and found != {wanted}:
            raise BenchmarkFailed(f"{kind}: the actions are {found}, not all {wanted}.")
        return step.seconds

    def _must(self, command: str, kind: str, *options: str) -> Step:
        step = self._dbt[kind].run(command, *options)
        if not step.ok:
            raise BenchmarkFailed(f"dbt {command}, {kind}: {'; '.join(step.complaints[:3])}")
        return step


def _cpu_seconds() -> float:
    """Return the processor time of this process and its JVM: other work beside it counts less."""
    context: Any = SparkContext._gateway
    stat = Path(f"/proc/{context.proc.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(os.times()[:2]) + (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def _rest(limit: float = 30) -> None:
    """Wait until nothing is left to do in the background."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        before = _cpu_seconds()
        time.sleep(1)
        if _cpu_seconds() - before < 0.05:
            return


def summary(figures: Mapping[str, Any]) -> str:
    """Return the figures as a table in Markdown: medians, and ratios to dbt's own runs."""
    rounds = figures["rounds"]
    kinds = [kind for kind in KINDS if all(kind in entry for entry in rounds)]
    measured = {"s": {kind: median(entry[kind] for entry in rounds) for kind in kinds}}
    if all("cpu" in entry for entry in rounds):
        measured["s of processor time"] = {
            kind: median(entry["cpu"][kind] for entry in rounds) for kind in kinds
        }
    heads = [f"{figures['models']} models"]
    bases = [kind for kind in (NOTHING, VIEW) if kind in kinds]
    for unit in measured:
        heads += [unit, *(f"/ `{base}`" for base in bases)]
    heads.append("statements")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for kind in kinds:
        cells = [f"`{kind}`"]
        for seconds in measured.values():
            ratios = (seconds[kind] / seconds[base] for base in bases)
            cells += [f"{seconds[kind]:.1f}", *(f"{ratio:.2f}" for ratio in ratios)]
        cells.append(str(sum(figures["statements"][kind].values())))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def chosen_kinds(text: str) -> list[str]:
    """Return the kinds that a text names; `held` needs the tables that `due` builds."""
    kinds = [kind.strip() for kind in text.split(",")]
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or (HELD in kinds and DUE not in kinds):
        raise click.BadParameter(
            f"--kinds {text!r}. Expected some of {', '.join(KINDS)}; {HELD} only with {DUE}."
        )
    return kinds


@click.command()
@click.option("--models", default=200, help="How many models each project has.")
@click.option("--repeats", default=5, help="How often each project is run and measured.")
@click.option("--home", type=click.Path(path_type=Path), default=Path(".benchmark/many"))
@click.option("--kinds", default=",".join(KINDS), help="The projects to run, in order.")
@click.option("--shuffle/--no-shuffle", default=False, help="Run each round in a random order.")
@click.option("--profile/--no-profile", default=False, help="Also say where the time goes.")
@click.option("--output", type=click.Path(path_type=Path), help="The JSON file of the figures.")
def main(
    models: int,
    repeats: int,
    home: Path,
    kinds: str,
    shuffle: bool,
    profile: bool,
    output: Path | None,
) -> None:
    """Compare dynamic tables that have nothing to do with dbt's own cheapest models."""
    chosen = chosen_kinds(kinds)
    home = home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    many = Many(home, models, chosen)
    many.prepare()
    figures = {
        "models": models,
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "rounds": many.measure(repeats, shuffle),
        "statements": {kind: many.statements(kind) for kind in chosen},
    }
    path = output or home / f"many_{models}.json"
    path.write_text(json.dumps(figures, indent=1))
    if profile:
        for kind in chosen:
            many.profile(kind)
    click.echo(json.dumps(figures["statements"], indent=1))
    click.echo(summary(figures))
    click.echo(f"All figures are in {path}.")


if __name__ == "__main__":
    main()
