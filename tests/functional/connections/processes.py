"""dbt run as a user runs it: each command in a process of its own, with its own Spark."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]

# What Spark, its JVM and Python would print if nobody kept them from it.
NOISE = re.compile(
    r"\b(WARN(?!=)|SLF4J|incubator|log4j|Traceback|Py4J\w*)\b"
    r"|^\s+at [\w.$]+\(|\[Stage |:: loading|^\{",
    re.MULTILINE,
)

TELL = """
{% macro tell(answers) %}
  {% if execute %}
    {% for name, sql in answers.items() %}
      {% do print(name ~ '=' ~ run_query(sql).columns[0].values()[0]) %}
    {% endfor %}
  {% endif %}
{% endmacro %}
"""


@dataclass(frozen=True)
class Finished:
    """A dbt command that has ended."""

    code: int
    screen: str
    errors: str
    seconds: float

    @property
    def told(self) -> dict[str, str]:
        """What the macro `tell` printed: names and values."""
        return dict(re.findall(r"^(\w+)=(.*)$", self.screen, re.MULTILINE))


class DbtProject:
    """A dbt project in a folder; every command has Spark's home in that folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            name: value for name, value in os.environ.items() if name != "SPARK_DYNAMIC_HOME"
        }
        self.environment["DBT_USE_COLORS"] = "false"
        self.environment["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"

    @classmethod
    def new(cls, folder: Path) -> "DbtProject":
        """Make a project without models, whose profile has only what is needed."""
        project = cls(folder)
        project.write("macros/tell.sql", TELL)
        on_run_end = "{{ tell(var('answers', {})) }}"
        project.write(
            "dbt_project.yml",
            json.dumps({"name": "shop", "profile": "shop", "on-run-end": on_run_end}),
        )
        project.use_profile()
        return project

    def use_profile(self, **settings: Any) -> None:
        """Write the profile: the two settings it needs, and those given."""
        output = {"type": "spark_dynamic", "schema": "trial", **settings}
        profiles = {"shop": {"target": "dev", "outputs": {"dev": output}}}
        self.write("profiles.yml", json.dumps(profiles))

    def write(self, path: str, text: str) -> None:
        """Write a file of the project."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    @property
    def log(self) -> Path:
        """Where the embedded Spark of a plain profile logs."""
        return self.folder / ".spark_dynamic" / "logs" / "spark.log"

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start dbt in a process group of its own, as a shell does."""
        return self._python("-c", "from dbt.cli.main import cli; cli()", *arguments)

    def dbt(self, *arguments: str, answers: dict[str, str] | None = None) -> Finished:
        """Run a dbt command to its end; then `tell` the answers to some queries."""
        if answers:
            arguments += ("--vars", json.dumps({"answers": answers}))
        return finish(self.start(*arguments))

    def dbt_in_one_process(
        self, *commands: list[str], first: str = "", terminal: bool = False
    ) -> Finished:
        """Run several commands, so that they share what the first one starts.

        With `terminal`, errors and progress go to a terminal, as they do for a person.
        """
        script = f"""
{first}
from dbt.cli.main import dbtRunner
for command in {commands!r}:
    done = dbtRunner().invoke(command)
    assert done.success, (command, done.exception)
"""
        if terminal:
            return self._in_terminal("-c", script)
        return finish(self._python("-c", script))

    def _in_terminal(self, *arguments: str) -> Finished:
        ours, theirs = pty.openpty()
        with ThreadPoolExecutor() as aside:
            shown = aside.submit(_read_terminal, ours)
            process = self._python(*arguments, errors=theirs)
            os.close(theirs)
            finished = finish(process)
            return replace(finished, errors=shown.result(timeout=30))

    def _python(self, *arguments: str, errors: int = subprocess.PIPE) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            # As in a shell: whatever runs the tests in the background may ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def results(self, target: str = "target") -> dict[str, dict[str, Any]]:
        """The result of each node, by name, of the last run with this target path."""
        found = json.loads((self.folder / target / "run_results.json").read_text())["results"]
        return {result["unique_id"].split(".")[2]: result for result in found}


def finish(process: "subprocess.Popen[str]") -> Finished:
    """Wait until a command has ended."""
    begin = time.monotonic()
    try:
        screen, errors = process.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return Finished(process.returncode, screen, errors or "", time.monotonic() - begin)


def _read_terminal(terminal: int) -> str:
    """Read what is shown on a terminal until the last process has closed it."""
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            # How Linux says that nobody can write any more.
            part = b""
        if not part:
            os.close(terminal)
            return shown.decode()
        shown += part
