"""The models of the dbt package: off by default, and the same with and without their source."""

from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest
import sqlglot
import yaml
from sqlglot import exp

from spark_dynamic.frontier.state import STATE_TABLE, create_state_table
from spark_dynamic.names import TableName
from spark_dynamic.sql.dialect import SparkDynamic

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "models" / "observability" / "dynamic_table_refresh_history.sql"


class Adapter:
    """An adapter whose warehouse has the state table, or has not."""

    def __init__(self, has_state: bool) -> None:
        self._has_state = has_state

    def get_relation(self, database: None, schema: str, identifier: str) -> str | None:
        return f"{schema}.{identifier}" if self._has_state else None


def rendered(has_state: bool, state_schema: str | None = None, execute: bool = True) -> exp.Select:
    sql = jinja2.Template(MODEL.read_text()).render(
        adapter=Adapter(has_state),
        config=lambda **options: "",
        execute=execute,
        target=SimpleNamespace(schema="shop", state_schema=state_schema),
    )
    query = sqlglot.parse_one(sql, dialect=SparkDynamic)
    assert isinstance(query, exp.Select)
    return query


def state_columns() -> dict[str, str]:
    statement = sqlglot.parse_one(create_state_table(TableName("s", "t")), dialect=SparkDynamic)
    return {c.name: c.args["kind"].sql(SparkDynamic) for c in statement.find_all(exp.ColumnDef)}


def sources(query: exp.Select) -> set[str]:
    return {table.sql(SparkDynamic) for table in query.find_all(exp.Table)} - {"refreshes"}


def test_the_models_are_off_unless_enabled() -> None:
    project = yaml.safe_load((ROOT / "dbt_project.yml").read_text())
    assert project["models"] == {"spark_dynamic": {"+enabled": False}}


@pytest.mark.parametrize(("state_schema", "expected"), [(None, "shop"), ("operations",) * 2])
def test_the_history_reads_the_state_table_of_the_profile(
    state_schema: str | None, expected: str
) -> None:
    query = rendered(has_state=True, state_schema=state_schema)
    assert sources(query) == {f"{expected}.{STATE_TABLE}"}


@pytest.mark.parametrize("execute", [True, False])
def test_the_history_reads_nothing_before_there_is_a_state_table(execute: bool) -> None:
    # While dbt parses, the adapter is not to be asked at all.
    assert sources(rendered(has_state=not execute, execute=execute)) == set()


def test_the_history_has_the_same_columns_with_and_without_the_state_table() -> None:
    with_state, without = rendered(has_state=True), rendered(has_state=False)
    assert with_state.named_selects == without.named_selects
    assert with_state.expressions == without.expressions


def test_the_made_up_columns_are_typed_like_those_of_the_state_table() -> None:
    query = rendered(has_state=False)
    [stand_in] = query.ctes
    made_up = {
        column.alias: column.this.to.sql(SparkDynamic) for column in stand_in.this.expressions
    }
    assert made_up.items() <= state_columns().items()
    outer = {column.name for part in query.expressions for column in part.find_all(exp.Column)}
    assert outer == made_up.keys()


def test_every_column_of_the_history_is_described() -> None:
    described, _ = yaml.safe_load((MODEL.parent / "schema.yml").read_text())["models"]
    assert described["name"] == MODEL.stem
    assert [c["name"] for c in described["columns"]] == rendered(has_state=True).named_selects
    assert all(column["description"] for column in described["columns"])
