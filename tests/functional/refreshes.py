"""Running dbt in a test project and reading what it did to the dynamic tables."""

from typing import Any

from dbt.tests.util import run_dbt
from tests.bags import bag


def dbt(*arguments: str, expect_pass: bool | None = True) -> dict[str, Any]:
    """Run dbt; return the result of each node by name."""
    results = run_dbt(list(arguments), expect_pass=expect_pass)
    return {result.node.name: result for result in results}


def actions(results: dict[str, Any]) -> dict[str, str]:
    """Return the action, with its reason code if there is one, of each dynamic table."""
    found = {}
    for name, result in results.items():
        response = result.adapter_response
        if "refresh_action" in response:
            code = response["reason_code"]
            found[name] = response["refresh_action"] + (f"/{code}" if code else "")
    return found


def rows(project: Any, sql: str) -> list[tuple[Any, ...]]:
    """Run a query in the test schema, which `{schema}` stands for; return sorted rows."""
    found = project.run_sql(sql, fetch="all")
    return sorted((tuple(row) for row in found), key=repr)


def history(project: Any, table: str) -> list[Any]:
    """Return a table's commits, newest first."""
    return project.run_sql(f"describe history {{schema}}.{table}", fetch="all")


def assert_equals_query(project: Any, name: str, query: str) -> None:
    """The oracle: the table and its query are the same bag of rows."""
    assert_same_rows(project, f"select * from {{schema}}.{name}", query)


def assert_same_rows(project: Any, one: str, other: str) -> None:
    """Two queries give the same bag of rows."""
    found, wanted = (bag(project.run_sql(sql, fetch="all")) for sql in (one, other))
    if found == wanted:
        return
    # Spark has the last word: with a collation, texts that look different may be equal.
    differing = project.run_sql(
        f"select * from (({one}) except all ({other})) union all (({other}) except all ({one}))",
        fetch="all",
    )
    assert not differing, f"{one} differs from {other}: {differing[:5]}"
