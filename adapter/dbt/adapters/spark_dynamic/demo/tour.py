"""The story: build, change the sources, refresh, find nothing to do, compare."""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from dbt.adapters.spark_dynamic.demo.dbt_steps import Dbt, Step
from dbt.adapters.spark_dynamic.demo.equality import compare
from dbt.adapters.spark_dynamic.demo.refreshes import Refresh, passed_tests, refreshes
from dbt.adapters.spark_dynamic.demo.screen import Screen
from dbt.adapters.spark_dynamic.embedded import Home
from dbt.adapters.spark_dynamic.files import claim


class DemoFailed(Exception):
    """A step went wrong, and the screen has already said so."""


class Tour:
    """The demo on one project directory."""

    def __init__(self, project: Path, screen: Screen) -> None:
        self._project, self._screen = project, screen
        self._dbt = Dbt(project)
        self._home = Home.at(None)

    def run(self) -> None:
        """Go through all steps, or raise `DemoFailed` at the first that goes wrong."""
        started = time.monotonic()
        self._start()
        self._build()
        self._change_sources()
        self._refresh()
        self._find_nothing_to_do()
        self._screen.success(f"Done in {time.monotonic() - started:.0f} seconds.")

    def clear(self) -> None:
        """Remove what an earlier demo left, unless a process is working there."""
        if self._home.lock.exists():
            held = claim(self._home.lock)
            if held is None:
                owner = self._home.lock.read_text() or "unknown"
                self._fail(f"Another process (pid {owner}) is using {self._home.path}.", [])
            else:
                held.close()
        shutil.rmtree(self._home.path, ignore_errors=True)
        shutil.rmtree(self._project / "target", ignore_errors=True)

    def _start(self) -> None:
        self._screen.heading(
            "1. Starting Spark",
            "Embedded, with Delta Lake. Another system then writes the source table "
            "shop_raw.payments.",
        )
        if not (self._project / "dbt_packages").is_dir():
            self._must(self._dbt.run("deps"), "dbt deps failed.")
        # The adapter shows a spinner of its own while the JVM starts.
        step = self._dbt.run("run-operation", "load_payments")
        self._must(step, "The payments could not be loaded.")
        self._screen.note(f"Ready after {step.seconds:.0f} seconds.")

    def _build(self) -> None:
        self._step("2. dbt build", "Seeds, staging tables, dynamic tables and tests.", "build")

    def _change_sources(self) -> None:
        self._screen.heading(
            "3. The sources change",
            "Rows of orders, lines and payments are inserted, updated and deleted by plain SQL.",
        )
        with self._screen.spinner("Changing rows"):
            step = self._dbt.run("run-operation", "change_sources")
        self._must(step, "The sources could not be changed.")
        self._screen.note(f"{step.seconds:.0f} seconds.")

    def _refresh(self) -> None:
        step = self._step("4. dbt run", "What reads a changed source is refreshed.", "run")
        if not any(one.action != "NO_DATA" for one in _dynamic(step)):
            self._fail("The sources changed, but no dynamic table was refreshed.", [])

    def _find_nothing_to_do(self) -> None:
        step = self._step(
            "5. dbt run, again",
            "The staging tables are written again with the same rows, which is no change.",
            "run",
        )
        busy = [one.name for one in _dynamic(step) if one.action != "NO_DATA"]
        if busy:
            self._fail(f"Nothing changed, but these were refreshed: {', '.join(busy)}.", [])
        self._compare(_dynamic(step))

    def _compare(self, tables: Sequence[Refresh]) -> None:
        self._screen.heading("6. Every dynamic table against its query")
        with self._screen.spinner("Comparing"):
            step, verdicts = compare(self._dbt, tables)
        self._must(step, "The comparison failed.")
        self._screen.verdicts(verdicts)
        if len(verdicts) != len(tables) or not all(verdict.equal for verdict in verdicts):
            self._fail("A dynamic table differs from its query.", [])

    def _step(self, title: str, text: str, command: str) -> Step:
        self._screen.heading(title, text)
        with self._screen.spinner(f"dbt {command}") as on_node:
            step = self._dbt.run(command, on_node=on_node)
        report = refreshes(step.results)
        if report:
            self._screen.refreshes(report)
            # dbt warns of each rebuild that nobody asked for; its reason has just been shown.
            shown = {one.reason for one in report if one.reason}
            step.warnings = [w for w in step.warnings if not any(r in w for r in shown)]
        self._must(step, f"dbt {command} failed.")
        if not _dynamic(step):
            self._fail(f"dbt {command} built no dynamic table.", [])
        tests = passed_tests(step.results)
        passed = f", {tests} tests passed" if tests else ""
        self._screen.note(f"{step.seconds:.0f} seconds{passed}.")
        return step

    def _must(self, step: Step, sentence: str) -> None:
        for warning in step.warnings:
            self._screen.warning(warning)
        if not step.ok:
            self._fail(sentence, step.complaints)

    def _fail(self, sentence: str, complaints: Sequence[str]) -> None:
        self._screen.failure(sentence, complaints, self._home.log)
        raise DemoFailed(sentence)


def _dynamic(step: Step) -> list[Refresh]:
    return [one for one in refreshes(step.results) if one.is_dynamic]
