"""Incremental refreshes by dbt: chains, diamonds, staging models, and the operations."""

import re
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from tests.functional.refreshes import actions, assert_equals_query, dbt, rows

INCREMENTAL = "{{ config(materialized='dynamic_table', refresh_mode='incremental') }}\n"
ORDERS = INCREMENTAL + (
    "select o.id, o.region, l.amount from {{ ref('stg_orders') }} o "
    "join {{ source('raw', 'lines') }} l on l.order_id = o.id"
)
BY_REGION = INCREMENTAL + (
    "select region, sum(amount) as amount, count(*) as n, max(amount) as largest "
    "from {{ ref('orders') }} group by region having count(*) > 0"
)
LARGE = (
    "{{ config(pre_hook='insert into {{ target.schema }}.hooked values (1)') }}"
    + INCREMENTAL
    + "select id, region from {{ ref('orders') }} where amount >= 10"
)
BOTH = INCREMENTAL + (
    "select r.region, r.amount, l.id from {{ ref('by_region') }} r "
    "join {{ ref('large') }} l on l.region = r.region"
)
COUNTED = INCREMENTAL + "select count(*) as n, min(id) as first from {{ ref('shown') }}"
SCHEMA = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables: [{name: raw_orders}, {name: lines}]
models:
  - {name: orders, data_tests: [equals_full_refresh]}
  - {name: by_region, data_tests: [equals_full_refresh]}
  - {name: both, data_tests: [equals_full_refresh]}
"""
NAMES = ["orders", "by_region", "large", "both", "counted"]


class TestChain:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "stg_orders.sql": "{{ config(materialized='table') }} "
            "select id, upper(region) as region from {{ source('raw', 'raw_orders') }}",
            "orders.sql": ORDERS,
            "by_region.sql": BY_REGION,
            "large.sql": LARGE,
            "both.sql": BOTH,
            "shown.sql": "{{ config(materialized='view') }} select id from {{ ref('both') }}",
            "counted.sql": COUNTED,
            "schema.yml": SCHEMA,
        }

    def check(self, project) -> None:
        orders = (
            "select o.id, upper(o.region) as region, l.amount from {schema}.raw_orders o "
            "join {schema}.lines l on l.order_id = o.id"
        )
        assert_equals_query(project, "orders", orders)
        by_region = (
            "select region, sum(amount) as amount, count(*) as n, max(amount) as largest "
            f"from ({orders}) group by region"
        )
        assert_equals_query(project, "by_region", by_region)
        both = (
            f"select r.region, r.amount, l.id from ({by_region}) r join ({orders}) l "
            "on l.region = r.region where l.amount >= 10"
        )
        assert_equals_query(project, "both", both)
        assert_equals_query(project, "counted", f"select count(*), min(id) from ({both})")

    def test_every_table_follows_its_sources(self, project):
        feed = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
        project.run_sql(f"create table {{schema}}.raw_orders (id int, region string) {feed}")
        project.run_sql(
            f"create table {{schema}}.lines (order_id int, amount decimal(10,2)) {feed}"
        )
        project.run_sql("create table {schema}.hooked (n int) using delta")
        project.run_sql("insert into {schema}.raw_orders values (1, 'n'), (2, 's'), (3, 's')")
        project.run_sql("insert into {schema}.lines values (1, 5), (1, 50), (2, 10), (3, 1)")

        # Before the first run it is known what comes first, but not yet what can be made of it.
        assert self.forecast(project, "stg_orders+") == {
            "orders": "DEPENDS on what stg_orders will bring",
            "by_region": "DEPENDS on what orders will bring",
            "large": "DEPENDS on what orders will bring",
            "both": "DEPENDS on what by_region, large will bring",
            "counted": "DEPENDS on what both, shown will bring",
        }
        shown = self.operation("dynamic_table_explain", "{model: large}", passes=False)
        assert "SOURCE_MISSING" in shown
        assert actions(dbt("run")) == dict.fromkeys(NAMES, "FULL/INITIAL_BUILD")

        project.run_sql("insert into {schema}.lines values (2, 20), (2, 20), (3, 2)")
        project.run_sql("insert into {schema}.raw_orders values (4, 'w')")
        forecast = self.forecast(project, "orders+")
        assert forecast["orders"] == "INCREMENTAL"
        assert forecast["counted"] == "DEPENDS on what both will bring"
        assert actions(dbt("run")) == dict.fromkeys(NAMES, "INCREMENTAL")
        self.check(project)

        project.run_sql("delete from {schema}.lines where amount = 20")
        project.run_sql("update {schema}.raw_orders set region = 'e' where id = 1")
        explained = self.operation("explain", "{model: orders}")
        assert actions(dbt("build")) == dict.fromkeys(NAMES, "INCREMENTAL")
        self.check(project)
        self.check_explained(project, explained)
        # A staging table is always written; whether with other rows, nobody knows yet.
        assert self.forecast(project, "stg_orders orders")["orders"].startswith("DEPENDS on ")
        assert actions(dbt("run")) == dict.fromkeys(NAMES, "NO_DATA")

        # Changes that cancel out are no data, and no reason for a hook.
        project.run_sql("update {schema}.lines set amount = 60 where amount = 50")
        assert actions(dbt("run", "--select", "orders", "large")) == {
            "orders": "INCREMENTAL",
            "large": "NO_DATA",
        }
        assert rows(project, "select count(*) from {schema}.hooked") == [(3,)]

        # Only a part is refreshed; the rest follows later, at one cut.
        project.run_sql("insert into {schema}.lines values (1, 11)")
        assert actions(dbt("run", "--select", "orders", "by_region")) == {
            "orders": "INCREMENTAL",
            "by_region": "INCREMENTAL",
        }
        assert actions(dbt("run", "--select", "both")) == {"both": "WAITING"}
        assert actions(dbt("run", "--select", "large+")) == dict.fromkeys(
            ["large", "both", "counted"], "INCREMENTAL"
        )
        self.check(project)

        assert "both equals its query" in self.operation("verify", "{model: both}")
        project.run_sql("delete from {schema}.by_region__dyn where region = 'S'")
        shown = self.operation("verify", "{model: by_region}", passes=False)
        assert "only in the query | 1 | S" in shown
        failures = {r.node.name: r.failures for r in run_dbt(["test"], expect_pass=False)}
        assert sorted(failures.values()) == [0, 0, 1]

    def check_explained(self, project, explained: str) -> None:
        """What was explained of `orders`, of which one source had changed, is what was done."""
        schema = project.test_schema
        found = re.findall(r"^(\w+) \| (.*?)(?=\n\w+ \| |\Z)", explained, re.MULTILINE | re.DOTALL)
        said = dict(found)
        assert said["table"] == f"{schema}.orders"
        assert (said["mode"], said["action"], said["reason"]) == (
            "incremental",
            "INCREMENTAL",
            "-",
        )
        assert said["shape"] == f"MINIMIZE ({schema}.lines: changes)"
        sources = [text for part, text in found if part == "source"]
        assert sources[0].endswith(": changes since version 2") and "lines" in sources[0]
        assert sources[1].endswith(": no change") and "stg_orders" in sources[1]
        assert f"`{schema}`.`lines` /* delta */" in said["delta"]
        assert f"`{schema}`.`stg_orders` /* new */" in said["delta"]
        assert "`stg_orders` /* delta */" not in said["delta"]
        read, *_, written = [text for part, text in found if part == "sql"]
        [run] = Path("target/run").rglob("models/orders.sql")
        assert read.startswith("CACHE LAZY TABLE __dyn_delta_1 AS") and read in run.read_text()
        assert written.startswith(f"MERGE INTO `{schema}`.`orders__dyn` AS t USING")

    def forecast(self, project, select: str) -> dict[str, str]:
        """Return what is foreseen of each dynamic table of a selection."""
        shown = self.operation("dynamic_table_plan", f"{{select: {select.split()}}}")
        line = rf"^{project.test_schema}\.(\w+) \| (.*?) \| (.*)$"
        found = re.findall(line, shown, re.MULTILINE)
        return {table: f"{action} {why}".removesuffix(" -") for table, action, why in found}

    def operation(self, name: str, arguments: str, passes: bool = True) -> str:
        command = ["run-operation", name, "--args", arguments]
        _, shown = run_dbt_and_capture(command, expect_pass=passes)
        return shown


@pytest.mark.nightly
class TestOneCut:
    """A writer commits n to `a`, then n to `b`: at every cut, b has nothing that a has not."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "from_a.sql": INCREMENTAL + "select n from {{ source('raw', 'raw_orders') }}",
            "pairs.sql": INCREMENTAL
            + "select a.n as a, b.n as b from {{ ref('from_a') }} a "
            + "cross join {{ source('raw', 'lines') }} b",
            "schema.yml": SCHEMA.partition("models:")[0],
        }

    def test_no_version_shows_b_ahead_of_a(self, project):
        feed = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
        for table in ("raw_orders", "lines"):
            project.run_sql(f"create table {{schema}}.{table} (n int) {feed}")
        selections = ["from_a+", "from_a", "pairs", "from_a+", "pairs", "from_a+"]
        for n, selected in enumerate(selections, 1):
            project.run_sql(f"insert into {{schema}}.raw_orders values ({n})")
            project.run_sql(f"insert into {{schema}}.lines values ({n})")
            dbt("run", "--select", selected)
        versions = project.run_sql("describe history {schema}.pairs__dyn", fetch="all")
        assert len(versions) >= 3
        for version in [row[0] for row in versions]:
            [(a, b)] = rows(
                project,
                f"select max(a), max(b) from {{schema}}.pairs__dyn version as of {version}",
            )
            assert (a or 0) >= (b or 0)
