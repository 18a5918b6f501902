"""Runs dbt commands in this process, so that the JVM starts once, and collects what they say."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner, dbtRunnerResult


@dataclass
class Step:
    """One finished dbt command."""

    outcome: dbtRunnerResult
    seconds: float
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether dbt called it a success."""
        return self.outcome.success

    @property
    def results(self) -> Sequence[Any]:
        """dbt's result of each node, in the order in which they ended."""
        return getattr(self.outcome.result, "results", None) or ()

    @property
    def complaints(self) -> list[str]:
        """Everything that went wrong, in dbt's words."""
        raised = self.outcome.exception
        return self.errors or ([str(raised)] if raised is not None else [])


class Dbt:
    """dbt on one project, silent on the screen: its events go to whoever listens."""

    def __init__(self, project: Path) -> None:
        self._options = [f"--project-dir={project}", f"--profiles-dir={project}"]

    def run(self, *command: str, on_node: Callable[[str], None] = lambda name: None) -> Step:
        """Run a command; `on_node` hears the name of each node as it starts."""
        errors: list[str] = []
        warnings: list[str] = []

        def listen(event: Any) -> None:
            if event.info.name == "NodeStart":
                on_node(event.data.node_info.node_name)
            elif event.info.level == "error":
                errors.append(event.info.msg)
            elif event.info.level == "warn":
                warnings.append(event.info.msg)

        started = time.monotonic()
        outcome = dbtRunner(callbacks=[listen]).invoke(
            ["--log-level=none", "--no-use-colors", *command, *self._options]
        )
        if isinstance(outcome.exception, KeyboardInterrupt):
            raise outcome.exception
        return Step(outcome, time.monotonic() - started, errors, warnings)
