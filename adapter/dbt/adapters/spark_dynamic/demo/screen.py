"""What the demo shows: headings, a spinner while dbt works, tables of what happened."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dbt.adapters.spark_dynamic.demo.equality import Verdict
from dbt.adapters.spark_dynamic.demo.refreshes import Refresh

_NO_TERMINAL_WIDTH = 140
_ACTION_STYLES = {"NO_DATA": "green", "FULL": "yellow", "INCREMENTAL": "cyan", "ERROR": "bold red"}


class Screen:
    """The terminal, or a plain text file when the output goes there."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        if not self._console.is_terminal:
            self._console = Console(highlight=False, width=_NO_TERMINAL_WIDTH)

    def heading(self, title: str, text: str = "") -> None:
        """Open a new step."""
        self._console.print()
        self._console.print(f"[bold]{escape(title)}[/]")
        self.note(text)

    def note(self, text: str) -> None:
        """Print a side remark."""
        if text:
            self._console.print(f"[dim]{escape(text)}[/]")

    def warning(self, text: str) -> None:
        """Print a warning of dbt."""
        self._console.print(f"[yellow]{escape(text)}[/]")

    @contextmanager
    def spinner(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show that work goes on; the function given to the block adds what is being done."""
        with self._console.status(escape(text)) as status:
            yield lambda detail: status.update(escape(f"{text} · {detail}"))

    def refreshes(self, refreshes: Sequence[Refresh]) -> None:
        """Print what happened to each model, and below it each reason once, in full."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("model", no_wrap=True)
        table.add_column("action", no_wrap=True)
        table.add_column("rows", justify="right", no_wrap=True)
        table.add_column("seconds", justify="right", no_wrap=True)
        table.add_column("data timestamp (UTC)", no_wrap=True)
        table.add_column("reason", no_wrap=True)
        for one in refreshes:
            style = _ACTION_STYLES.get(one.action, "")
            table.add_row(
                one.name,
                f"[{style}]{one.action}[/]" if style else one.action,
                one.rows,
                f"{one.seconds:.1f}",
                one.data_timestamp,
                one.reason_code,
                style="" if one.is_dynamic or not one.ok else "dim",
            )
        self._console.print(table)
        for reason in dict.fromkeys(one.reason for one in refreshes):
            self.note(reason)

    def verdicts(self, verdicts: Sequence[Verdict]) -> None:
        """Print whether each table equals its query."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("dynamic table", no_wrap=True)
        table.add_column("rows", justify="right")
        table.add_column("equals its query")
        for verdict in verdicts:
            difference = f"[bold red]✗ {verdict.differences} rows differ[/]"
            mark = "[green]✓[/]" if verdict.equal else difference
            table.add_row(verdict.name, str(verdict.rows), mark)
        self._console.print(table)

    def success(self, text: str) -> None:
        """Close with good news."""
        self._console.print(f"[bold green]✓[/] {escape(text)}")

    def failure(self, text: str, complaints: Sequence[str], log: Path) -> None:
        """Say what failed, in dbt's words, and where Spark's own words are."""
        self._console.print(f"[bold red]✗ {escape(text)}[/]")
        for complaint in complaints:
            self._console.print(escape(complaint), soft_wrap=True)
        self._console.print(f"Spark log: {escape(str(log))}", soft_wrap=True)
