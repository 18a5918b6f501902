"""Tables to which nothing has happened, on a real Spark: left alone, until something does."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.functional.refreshes import actions, assert_equals_query, dbt

from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse

TOTALS = "select customer, sum(amount) as total from {{ source('shop', 'orders') }} group by 1"
LARGE = (
    "{{ config(materialized='view') }} select * from {{ source('shop', 'orders') }} "
    "where amount > {{ var('above', 5) }}"
)
THROUGH = "select customer from {{ ref('large') }}"
BEST = "select max(total) as best from {{ ref('totals') }}"
SOURCES = """
sources:
  - {name: shop, schema: "{{ target.schema }}", tables: [{name: orders}]}
"""
QUERIES = {
    "totals": "select customer, sum(amount) as total from {schema}.orders group by 1",
    "through": "select customer from {schema}.orders where amount > 5",
    "best": "select max(total) as best from "
    "(select sum(amount) as total from {schema}.orders group by customer)",
}


class TestQuietTables:
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"+materialized": "dynamic_table"}}

    @pytest.fixture(scope="class")
    def models(self):
        texts = {"totals": TOTALS, "large": LARGE, "through": THROUGH, "best": BEST}
        return {f"{name}.sql": text for name, text in texts.items()} | {"schema.yml": SOURCES}

    @pytest.fixture
    def asked(self, monkeypatch):
        """The tables whose history is asked for; time goes on five minutes with every run."""
        tables: list[str] = []
        history, minutes = DbtWarehouse.history, [0]

        def noted(warehouse, table, limit):
            tables.append(table.name)
            return history(warehouse, table, limit)

        def later(warehouse):
            return datetime.now(UTC) + timedelta(minutes=minutes[0])

        monkeypatch.setattr(DbtWarehouse, "history", noted)
        monkeypatch.setattr(DbtWarehouse, "now", later)
        self.minutes = minutes
        return tables

    def run(self, asked: list[str], *options: str) -> dict[str, str]:
        asked.clear()
        self.minutes[0] += 5
        return actions(dbt("run", *options))

    def check(self, project) -> None:
        for name, query in QUERIES.items():
            assert_equals_query(project, name, query)

    def settle(self, asked: list[str]) -> None:
        """Run until tables are left alone; the first run finds that all is right."""
        for _ in range(2):
            found = self.run(asked)
        assert set(found.values()) == {"NO_DATA"}
        # The view behind `through` is made anew in every run; not all catalogs list it as before.
        assert not {"totals__dyn", "best__dyn"} & set(asked), asked
        assert asked.count("dynamic_table_refreshes") == 1

    def test_they_are_left_alone_until_something_happens(self, project, asked):
        project.run_sql("create table {schema}.orders (customer int, amount int) using delta")
        project.run_sql("insert into {schema}.orders values (1, 10), (2, 3)")
        assert set(self.run(asked).values()) == {"FULL/INITIAL_BUILD"}
        # After the first build, properties are set, so the storage has a further commit.
        self.run(asked)
        self.settle(asked)

        project.run_sql("insert into {schema}.orders values (1, 7)")
        assert "NO_DATA" not in set(self.run(asked).values())
        self.check(project)
        self.settle(asked)

        # Somebody writes into a storage.
        project.run_sql("delete from {schema}.totals__dyn where customer = 1")
        found = self.run(asked)
        assert found["totals"] == "REINITIALIZE/FOREIGN_COMMIT"
        self.check(project)
        self.settle(asked)

        # A view on the way means something else.
        options = ("--vars", "above: 8")
        found = self.run(asked, *options)
        assert found["through"] == "REINITIALIZE/DEFINITION_CHANGED"
        assert found["totals"] == "NO_DATA"
        assert self.run(asked)["through"] == "REINITIALIZE/DEFINITION_CHANGED"
        self.check(project)
        self.settle(asked)

        # A source is another table of the same form.
        project.run_sql("drop table {schema}.orders")
        project.run_sql("create table {schema}.orders (customer int, amount int) using delta")
        assert "NO_DATA" not in set(self.run(asked).values())
        self.check(project)
