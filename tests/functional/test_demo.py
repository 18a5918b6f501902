"""The demo, run as a user runs it: a process of its own, on a copy of the shop project.

It runs without a Java of the machine, so it shows `dbt-spark-dynamic[java]`, too; all other tests
use the machine's.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = shutil.ignore_patterns(".spark_dynamic", "target", "logs", "dbt_packages", "package-lock*")

REFRESHED = {
    "dt_order_values",
    "dt_payments_by_order",
    "dt_customer_revenue",
    "dt_open_balances",
}
UNTOUCHED = {"dt_customers_by_country"}


@dataclass(frozen=True)
class Demo:
    """A finished demo: its exit code and what it printed."""

    project: Path
    code: int
    screen: str
    errors: str

    def actions(self, step: int) -> dict[str, str]:
        """The action of each dynamic table in the report of a step."""
        section = re.split(r"^(?=\d\. )", self.screen, flags=re.MULTILINE)[step]
        assert section.startswith(f"{step}. "), self.screen
        lines = (line.split() for line in section.splitlines())
        return {words[0]: words[1] for words in lines if words and words[0].startswith("dt_")}


def shop_in(folder: Path) -> Path:
    project = folder / "shop"
    shutil.copytree(ROOT / "integration_tests", project, ignore=BUILT)
    (project / "packages.yml").write_text(f"packages:\n  - local: {ROOT}\n")
    return project


def commands_without_java(folder: Path) -> str:
    """A PATH with every command of this machine but `java`: Spark's launcher needs some."""
    folder.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for command in Path(directory).glob("*"):
            if command.name != "java" and not (folder / command.name).is_symlink():
                (folder / command.name).symlink_to(command)
    return str(folder)


def run_demo(project: Path) -> Demo:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("SPARK_DYNAMIC_HOME", "JAVA_HOME")
    }
    environment["PATH"] = commands_without_java(project.parent / "bin")
    run = subprocess.run(
        [sys.executable, "-m", "dbt.adapters.spark_dynamic.demo", f"--project-dir={project}"],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        cwd=project.parent,
    )
    return Demo(project, run.returncode, run.stdout, run.stderr)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return run_demo(shop_in(tmp_path_factory.mktemp("demo")))


def test_it_succeeds(demo: Demo) -> None:
    assert demo.code == 0, demo.screen + demo.errors


def test_the_build_fills_every_dynamic_table(demo: Demo) -> None:
    assert demo.actions(2) == dict.fromkeys(REFRESHED | UNTOUCHED, "FULL")


def test_a_run_after_changes_refreshes_what_reads_them_and_nothing_else(demo: Demo) -> None:
    actions = demo.actions(4)
    assert {name for name, action in actions.items() if action == "NO_DATA"} == UNTOUCHED
    assert {name for name, action in actions.items() if action != "NO_DATA"} == REFRESHED


def test_an_unchanged_run_does_nothing(demo: Demo) -> None:
    assert demo.actions(5) == dict.fromkeys(REFRESHED | UNTOUCHED, "NO_DATA")


def test_every_table_equals_its_query(demo: Demo) -> None:
    last = demo.screen.split("6. ")[-1]
    equal = {line.split()[0] for line in last.splitlines() if line.rstrip().endswith("✓")}
    assert equal == REFRESHED | UNTOUCHED
    assert "✗" not in demo.screen


def test_spark_is_silent_on_the_screen_and_has_a_log(demo: Demo) -> None:
    noise = re.compile(r"\b(WARN|ERROR|SLF4J|incubator|log4j|Exception)\b|\[Stage |:: loading")
    assert [line for line in demo.screen.splitlines() if noise.search(line)] == []
    assert demo.errors == ""
    assert (demo.project / ".spark_dynamic/logs/spark.log").is_file()


def test_a_broken_project_fails_with_dbts_words_and_the_log_path(tmp_path: Path) -> None:
    project = shop_in(tmp_path)
    (project / "models/staging/stg_lines.sql").unlink()
    broken = run_demo(project)
    assert broken.code == 1
    assert "stg_lines" in broken.screen
    assert f"Spark log: {project}/.spark_dynamic/logs/spark.log" in broken.screen
