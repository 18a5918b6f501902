"""Everything else that dbt does with a model, done with a dynamic table."""

import json
from pathlib import Path

import pytest
import yaml
from dbt.tests.util import run_dbt, write_file
from tests.functional.refreshes import actions, dbt, rows

from dbt.adapters.spark_dynamic.connections import SessionHandle

SALES = """
{{ config(
    materialized='dynamic_table', tags=['daily'], meta={'owner': 'shop'}, event_time='at',
    group='finance', persist_docs={'relation': true, 'columns': true},
    pre_hook="insert into {{ target.schema }}.hooked values ('before')",
    post_hook=["insert into {{ target.schema }}.hooked values ('after')",
               "optimize {{ dynamic_table_storage(this) }}"],
) }}
select id, amount, at from {{ ref('raw_sales') }} where amount > 0
"""
STRICT = "{{ config(materialized='dynamic_table') }} select id, amount from {{ ref('sales') }}"
GROWN = """{{ config(materialized='incremental', incremental_strategy='append') }}
select id from {{ ref('sales') }}
{% if is_incremental() %} where id not in (select id from {{ this }}) {% endif %}"""
BATCHES = """{{ config(materialized='incremental', incremental_strategy='microbatch',
  event_time='at', begin='2026-01-01', batch_size='year', partition_by='y') }}
select id, at, year(at) as y from {{ ref('sales') }}"""
SNAPSHOT = """
snapshots:
  - name: sales_history
    relation: ref('sales')
    config: {unique_key: id, strategy: check, check_cols: [amount]}
"""
SCHEMA = """
groups:
  - name: finance
    owner: {name: Finance}
models:
  - name: sales
    description: "What was sold; it's final."
    columns:
      - {name: id, description: "The sale's id.", data_tests: [unique, not_null]}
  - name: strict
    config: {contract: {enforced: true}}
    columns:
      - {name: id, data_type: int, constraints: [{type: not_null}]}
      - {name: amount, data_type: int}
  - name: versioned
    latest_version: 2
    versions: [{v: 1}, {v: 2}]
unit_tests:
  - name: keeps_positive_amounts
    model: sales
    given:
      - input: ref('raw_sales')
        rows: [{id: 1, amount: 5}, {id: 2, amount: -5}]
    expect: {rows: [{id: 1, amount: 5}]}
"""
RAW_TYPES = """
seeds:
  - name: raw_sales
    config: {event_time: at, column_types: {id: int, amount: int, at: timestamp}}
"""
FRAGILE = """{{ config(materialized='dynamic_table') }}
select id, 1 / (amount - 9) as x from {{ ref('sales') }}"""
# What a hook sets does not reach the query: in Tokyo this would be 10.
VERSIONED = """{{ config(materialized='dynamic_table',
  pre_hook="set spark.sql.session.timeZone=Asia/Tokyo") }}
select hour(timestamp'2026-01-01 00:00:00Z') + 1 as v"""
RAW = "id,amount,at\n1,5,2026-01-05\n2,7,2026-02-05\n3,-1,2026-03-05\n"


class TestFeatures:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {"raw_sales.csv": RAW, "raw_sales.yml": RAW_TYPES}

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"history.yml": SNAPSHOT}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "sales.sql": SALES,
            "strict.sql": STRICT,
            "grown.sql": GROWN,
            "batches.sql": BATCHES,
            "versioned_v1.sql": VERSIONED,
            "versioned_v2.sql": "{{ config(materialized='dynamic_table') }} "
            "select v + 1 as v from {{ ref('versioned', v=1) }}",
            "schema.yml": SCHEMA,
        }

    @pytest.fixture
    def granted(self, monkeypatch):
        """The statements that grant something; Spark itself has none of them."""
        found: list[str] = []
        execute = SessionHandle.execute

        def noted(handle, sql, bindings=None):
            text = sql.partition("*/")[2].strip() or sql
            if text.startswith("show grants"):
                sql = "select '' as Principal, '' as ActionType, '' as ObjectType where false"
            elif text.startswith(("grant ", "revoke ")):
                found.append(text)
                sql = "select 1"
            execute(handle, sql, bindings)

        monkeypatch.setattr(SessionHandle, "execute", noted)
        return found

    def test_build_and_everything_around_it(self, project, granted):
        project.run_sql("create table {schema}.hooked (moment string) using delta")
        built = dbt("build")
        assert set(actions(built).values()) == {"FULL/INITIAL_BUILD"}
        assert rows(project, "select * from {schema}.hooked") == [("after",), ("before",)]
        assert rows(project, "select id from {schema}.grown") == [(1,), (2,)]
        assert rows(project, "select id from {schema}.batches") == [(1,), (2,)]
        assert rows(project, "select v from {schema}.versioned_v2") == [(2,)]

        # Hooks only when rows are written; the OPTIMIZE of the hook is no foreign write.
        again = dbt("build")
        assert set(actions(again).values()) == {"NO_DATA"}
        assert len(rows(project, "select * from {schema}.hooked")) == 2

        project.run_sql("insert into {schema}.raw_sales values (4, 9, timestamp'2026-04-01')")
        changed = dbt("build", "--exclude", "raw_sales")
        assert actions(changed)["sales"] == "FULL/CHEAPER"
        assert rows(project, "select id from {schema}.grown") == [(1,), (2,), (4,)]
        assert rows(project, "select id from {schema}.sales_history") == [(1,), (2,), (4,)]

        # A snapshot, too, may be read as it changes.
        properties = dict(rows(project, "show tblproperties {schema}.sales_history"))
        assert properties["delta.enableChangeDataFeed"] == "true"

        # Docs and grants are applied under any action.
        described = {row[0]: row for row in rows(project, "describe extended {schema}.sales")}
        assert described["id"][2] == "The sale's id."
        assert described["Comment"][1] == "What was sold; it's final."
        final = 'description: "What was sold; it\'s final."'
        assert final in SCHEMA and granted == []
        corrected = SCHEMA.replace(final, "description: What was sold; corrected.")
        corrected = corrected.replace(', description: "The sale\'s id."', "")
        granting = "    config: {grants: {select: [reader]}}\n    columns:\n"
        text = corrected.replace("    columns:\n", granting, 1)
        write_file(text, project.project_root, "models", "schema.yml")
        selected = "tag:daily,config.meta.owner:shop"
        assert actions(dbt("run", "--select", selected)) == {"sales": "NO_DATA"}
        assert granted == [f"grant select on {project.test_schema}.sales to `reader`"]
        write_file(corrected, project.project_root, "models", "schema.yml")
        described = {row[0]: row for row in rows(project, "describe extended {schema}.sales")}
        assert described["Comment"][1] == "What was sold; corrected."
        assert not described["id"][2]

        # A contract that the query does not keep.
        text = STRICT.replace("id, amount", "id, cast(amount as string) as amount")
        write_file(text, project.project_root, "models", "strict.sql")
        broken = dbt("run", "--select", "strict", expect_pass=False)
        assert "contract" in broken["strict"].message.lower()
        write_file(STRICT, project.project_root, "models", "strict.sql")

        # One that its rows do not keep: every run says so, and nothing changes.
        assert "constraints.not_null" in str(
            rows(project, "show tblproperties {schema}.strict__dyn")
        )
        further = "{type: not_null}, {type: check, expression: 'id < 4'}"
        checked = corrected.replace("[{type: not_null}]", f"[{further}]")
        write_file(checked, project.project_root, "models", "schema.yml")
        for _ in range(2):
            broken = dbt("run", "--select", "strict", expect_pass=False)
            assert "\n  CONSTRAINT_VIOLATED: Rows of" in broken["strict"].message
        assert rows(project, "select id from {schema}.strict") == [(1,), (2,), (4,)]
        write_file(corrected, project.project_root, "models", "schema.yml")

        for command in (["compile"], ["docs", "generate"], ["show", "--select", "sales"]):
            run_dbt(command)
        with open("target/catalog.json") as file:
            catalog = json.load(file)["nodes"]
        assert list(catalog["model.test.sales"]["columns"]) == ["id", "amount", "at"]
        found = run_dbt(
            ["ls", "--resource-type", "model", "--select", "config.materialized:dynamic_table"]
        )
        assert len(found) == 4

    def test_partial_runs_leave_no_state(self, project):
        for flag in (["--empty"], ["--sample", "{'start': '2026-02-01', 'end': '2026-02-28'}"]):
            partial = dbt("run", "--select", "sales", *flag)
            assert actions(partial) == {"sales": "FULL/EMPTY_RUN"}
            expected = [] if flag == ["--empty"] else [(2,)]
            assert rows(project, "select id from {schema}.sales") == expected
            # A reader goes by the last record: what that stands for is kept, and still right.
            assert actions(dbt("run", "--select", "strict")) == {"strict": "NO_DATA"}
            assert rows(project, "select id from {schema}.strict") == [(1,), (2,), (4,)]
            rebuilt = actions(dbt("run", "--select", "sales"))
            assert rebuilt == {"sales": "REINITIALIZE/AFTER_EMPTY_RUN"}
            assert rows(project, "select id from {schema}.sales") == [(1,), (2,), (4,)]

    def test_defer_and_state(self, project):
        run_dbt(["compile", "--target-path", "state"])
        changed = run_dbt(["ls", "--select", "state:modified", "--state", "state"])
        assert changed == []
        write_file(STRICT + " where id > 1", project.project_root, "models", "strict.sql")
        deferred = dbt("run", "--select", "state:modified", "--defer", "--state", "state")
        assert actions(deferred) == {"strict": "REINITIALIZE/DEFINITION_CHANGED"}

        # A developer's own schema, over the dynamic table of another one.
        production = project.test_schema
        path = Path(project.profiles_dir) / "profiles.yml"
        profiles = yaml.safe_load(path.read_text())
        outputs = profiles["test"]["outputs"]
        outputs["dev"] = {**outputs["default"], "schema": f"{production}_dev"}
        path.write_text(yaml.safe_dump(profiles))
        in_dev = ("run", "--select", "strict", "--target", "dev", "--defer", "--state", "state")
        assert actions(dbt(*in_dev)) == {"strict": "FULL/INITIAL_BUILD"}
        project.run_sql(f"insert into {production}.raw_sales values (5, 2, timestamp'2026-05-01')")
        assert actions(dbt(*in_dev)) == {"strict": "WAITING"}
        dbt("run", "--select", "sales")
        assert actions(dbt(*in_dev)) == {"strict": "FULL/CHEAPER"}
        assert rows(project, f"select id from {production}_dev.strict") == [(2,), (4,), (5,)]
        assert rows(project, f"select id from {production}.strict") == [(2,), (4,)]

    def test_retry(self, project):
        write_file(FRAGILE, project.project_root, "models", "fragile.sql")
        failed = dbt("run", "--select", "fragile", expect_pass=False)
        assert "\n  DIVIDE_BY_ZERO: Division by zero." in failed["fragile"].message
        mended = FRAGILE.replace("1 / (amount - 9)", "try_divide(1, amount - 9)")
        write_file(mended, project.project_root, "models", "fragile.sql")
        assert actions(dbt("retry")) == {"fragile": "FULL/INITIAL_BUILD"}
        found = rows(
            project,
            "select state, reason_code, reason like 'DIVIDE_BY_ZERO: %', "
            "startswith(error, reason) from {schema}.dynamic_table_refreshes "
            "where relation like '%fragile'",
        )
        assert found == [
            ("FAILED", "DIVIDE_BY_ZERO", True, True),
            ("SUCCEEDED", "INITIAL_BUILD", False, None),
        ]
