"""The promise, checked: every dynamic table equals its query, as bags of rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.spark_dynamic.demo.dbt_steps import Dbt, Step
from dbt.adapters.spark_dynamic.demo.refreshes import Refresh


@dataclass(frozen=True)
class Verdict:
    """How one dynamic table compares with its query."""

    name: str
    rows: int
    differences: int

    @property
    def equal(self) -> bool:
        """Whether no row is missing, left over, or there the wrong number of times."""
        return self.differences == 0


def compare(dbt: Dbt, tables: Sequence[Refresh]) -> tuple[Step, list[Verdict]]:
    """Compare tables with their queries, all in one statement."""
    sql = "\nunion all\n".join(comparison(table) for table in tables)
    step = dbt.run("show", "--limit=-1", f"--inline={sql}")
    rows = step.results[0].agate_table.rows if step.ok and step.results else []
    verdicts = [Verdict(row["name"], int(row["rows"]), int(row["differences"])) for row in rows]
    return step, sorted(verdicts, key=lambda verdict: verdict.name)


def comparison(table: Refresh) -> str:
    """Return a query with one row: the table's name, its size and how many rows differ."""
    stored, wanted = f"select * from {table.relation}", f"({table.query}\n)"
    return f"""select
    '{table.name}' as name,
    (select count(*) from {table.relation}) as rows,
    (
        select count(*) from (
            (({stored}) except all {wanted})
            union all
            ({wanted} except all ({stored}))
        )
    ) as differences"""
