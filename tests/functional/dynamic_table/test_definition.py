"""Edited queries, configs and materializations; odd names; what is refused."""

import pytest
from dbt.tests.util import write_file
from tests.functional.refreshes import actions, assert_equals_query, dbt, history, rows

SHAPE = "{{{{ config(materialized='{kind}'{more}) }}}} select {columns} from {{{{ ref('base') }}}}"
BASE = "{{ config(materialized='table') }} select 1 as a, 'x' as b union all select 2, 'y'"


def rewrite(project, kind="dynamic_table", columns="a, b", more=""):
    write_file(
        SHAPE.format(kind=kind, columns=columns, more=more),
        project.project_root,
        "models",
        "shape.sql",
    )


def tables(project):
    found = rows(project, "show tables in {schema}")
    return sorted(row[1] for row in found if row[1].startswith("shape"))


class TestEdits:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "base.sql": BASE,
            "shape.sql": SHAPE.format(kind="view", columns="a", more=""),
            "reader.sql": "{{ config(materialized='dynamic_table', refresh_mode='incremental') }} "
            "select count(*) as n from {{ ref('shape') }}",
        }

    def test_edits_and_switches(self, project, tmp_path):
        dbt("run", "--exclude", "reader")
        run = ("run", "--select", "shape")

        # From a view, and from a table, to a dynamic table.
        rewrite(project)
        assert actions(dbt(*run)) == {"shape": "FULL/INITIAL_BUILD"}
        rewrite(project, kind="table")
        dbt(*run)
        assert tables(project) == ["shape"]
        rewrite(project)
        assert actions(dbt(*run)) == {"shape": "FULL/INITIAL_BUILD"}
        assert actions(dbt("run", "--select", "reader")) == {"reader": "FULL/INITIAL_BUILD"}

        # The same columns: rebuilt in the same storage, in one commit.
        rewrite(project, columns="a + 10 as a, b")
        assert actions(dbt(*run)) == {"shape": "REINITIALIZE/DEFINITION_CHANGED"}
        assert tables(project) == ["shape", "shape__dyn"]
        assert rows(project, "select * from {schema}.shape") == [(11, "x"), (12, "y")]

        # Other columns: a new generation, the view is switched, readers go on.
        rewrite(project, columns="a, b, true as c")
        assert actions(dbt(*run)) == {"shape": "REINITIALIZE/DEFINITION_CHANGED"}
        assert tables(project) == ["shape", "shape__dyn", "shape__dyn_2"]
        assert rows(project, "select * from {schema}.shape") == [(1, "x", True), (2, "y", True)]
        assert actions(dbt("run")) == {
            "shape": "NO_DATA",
            "reader": "NO_DATA",
        }

        # A view that disagrees with the records is repaired, a lost one comes back.
        project.run_sql("drop view {schema}.shape")
        assert actions(dbt(*run)) == {"shape": "NO_DATA"}
        project.run_sql("alter view {schema}.shape as select 1 as nonsense")
        assert actions(dbt(*run)) == {"shape": "NO_DATA"}
        assert rows(project, "select * from {schema}.shape") == [(1, "x", True), (2, "y", True)]

        # Storage layout.
        layout = ", liquid_clustered_by='a', tblproperties={'team': 'shop'}"
        layout += ", history_retention='10 days'"
        rewrite(project, columns="a, b, true as c", more=layout)
        assert actions(dbt(*run)) == {"shape": "NO_DATA"}
        properties = dict(rows(project, "show tblproperties {schema}.shape__dyn_2"))
        assert properties["team"] == "shop"
        assert properties["delta.deletedFileRetentionDuration"] == "interval 864000 seconds"
        [detail] = project.run_sql("describe detail {schema}.shape__dyn_2", fetch="all")
        assert detail["clusteringColumns"] == ["a"]
        # What is not configured any more is not there any more.
        rewrite(project, columns="a, b, true as c", more=", tblproperties={'size': 'small'}")
        assert actions(dbt(*run)) == {"shape": "NO_DATA"}
        properties = dict(rows(project, "show tblproperties {schema}.shape__dyn_2"))
        assert properties["size"] == "small" and "team" not in properties
        [detail] = project.run_sql("describe detail {schema}.shape__dyn_2", fetch="all")
        assert detail["clusteringColumns"] == []
        for how, expected in (("continue", "NO_DATA"), ("apply", "REINITIALIZE/CONFIG_CHANGED")):
            place = f", partition_by='b', location_root='{tmp_path}'"
            more = f"{place}, on_configuration_change='{how}'"
            rewrite(project, columns="a, b, true as c", more=more)
            assert actions(dbt(*run)) == {"shape": expected}
        [detail] = project.run_sql("describe detail {schema}.shape__dyn_3", fetch="all")
        assert detail["partitionColumns"] == ["b"]
        assert detail["location"] == f"file:{tmp_path}/shape__dyn_3"
        rewrite(project, columns="a, b, true as c", more=", on_configuration_change='fail'")
        failed = dbt(*run, expect_pass=False)
        assert failed["shape"].message.splitlines()[1].strip().startswith("CONFIG_CHANGED: ")

        # Someone else writes into the storage, or turns it back.
        rewrite(project, columns="a, b, true as c", more=place)
        assert actions(dbt(*run)) == {"shape": "NO_DATA"}
        project.run_sql("delete from {schema}.shape__dyn_3 where a = 1")
        assert actions(dbt(*run)) == {"shape": "REINITIALIZE/FOREIGN_COMMIT"}
        # A rebuild that nobody asked for is a warning, at which strict pipelines stop.
        project.run_sql("restore table {schema}.shape__dyn_3 to version as of 1")
        strict = dbt("--warn-error", *run, expect_pass=False)["shape"]
        assert strict.status == "error" and "FOREIGN_COMMIT" in strict.message
        project.run_sql("optimize {schema}.shape__dyn_3")
        assert actions(dbt(*run)) == {"shape": "NO_DATA"}
        assert rows(project, "select * from {schema}.shape") == [(1, "x", True), (2, "y", True)]

        # And away again: the storage goes with it.
        rewrite(project, kind="incremental")
        dbt(*run)
        assert tables(project) == ["shape"]
        assert rows(project, "select * from {schema}.shape") == [(1, "x"), (2, "y")]

    def test_a_rebuild_nobody_asked_for_can_be_forbidden(self, project):
        rewrite(project, more=", full_refresh=false")
        assert actions(dbt("run", "--select", "shape")) == {"shape": "FULL/INITIAL_BUILD"}
        rewrite(project, columns="a", more=", full_refresh=false")
        failed = dbt("run", "--select", "shape", "--full-refresh", expect_pass=False)["shape"]
        assert "DEFINITION_CHANGED: " in failed.message and "full_refresh: false" in failed.message
        assert rows(project, "select * from {schema}.shape") == [(1, "x"), (2, "y")]
        rewrite(project, kind="view")
        dbt("run", "--select", "shape")
        assert tables(project) == ["shape"]


SCHEMA_NAMES = """
{% macro generate_schema_name(custom_schema_name, node) -%}
  {{ target.schema }}{{ '_for_' ~ custom_schema_name if custom_schema_name }}
{%- endmacro %}
"""
ODD = "a as `a b`, a + 1 as `a.b`, 3 as `select`, 4 as `größe`, 5 as `x``y`, 6 as `p,q=(r);`"
INCREMENTAL = "materialized='dynamic_table', refresh_mode='incremental'"


class TestNames:
    @pytest.fixture(scope="class")
    def macros(self):
        return {"generate_schema_name.sql": SCHEMA_NAMES}

    @pytest.fixture(scope="class")
    def place(self, tmp_path_factory):
        """Where a table is that no catalog knows."""
        return tmp_path_factory.mktemp("tables") / "Numbers"

    @pytest.fixture(scope="class")
    def models(self, place):
        return {
            "order.sql": f"{{{{ config({INCREMENTAL}) }}}} select {ODD} "
            "from {{ target.schema }}.numbers",
            "reader.sql": f"{{{{ config({INCREMENTAL}, alias='group', schema='other', "
            "clustered_by=['p,q=(r);']) }} select * from {{ ref('order') }}",
            "grouped.sql": f"{{{{ config({INCREMENTAL}) }}}} select `a.b`, "
            "max(`a b`) as `largest a` from {{ ref('order') }} group by `a.b`",
            "by_path.sql": f"{{{{ config({INCREMENTAL}) }}}} select a from delta.`{place}`",
            "own.sql": "{{ config(materialized='dynamic_table') }} select * from {{ this }}",
            "reserved.sql": "{{ config(materialized='dynamic_table') }} select 1 as __dyn_x",
            "twice.sql": "{{ config(materialized='dynamic_table') }} select 1 as x, 2 as X",
            "missing.sql": "{{ config(materialized='dynamic_table') }} select * from nowhere.x",
            "unknown_key.sql": "{{ config(materialized='dynamic_table', partition_by='nope') }} "
            "select 1 as x",
        }

    def test_names(self, project, place):
        numbers = [f"{project.test_schema}.numbers", f"delta.`{place}`"]
        for table in numbers:
            project.run_sql(f"create table {table} (a int) using delta")
            project.run_sql(f"insert into {table} values (1)")
        results = dbt("run", expect_pass=False)
        good = ["order", "reader", "grouped", "by_path"]
        assert actions(results) == dict.fromkeys(good, "FULL/INITIAL_BUILD")
        for table in numbers:
            project.run_sql(f"insert into {table} values (7), (8)")
            project.run_sql(f"delete from {table} where a = 1")
        assert actions(dbt("run", "--select", *good)) == dict.fromkeys(good, "INCREMENTAL")
        assert rows(project, "select `a b`, `a.b`, `select`, `größe`, `x``y`, `p,q=(r);` "
                    "from {schema}.order") == [(7, 8, 3, 4, 5, 6), (8, 9, 3, 4, 5, 6)]  # fmt: skip
        assert_equals_query(project, "order", "select * from {schema}_for_other.group")
        assert rows(project, "select `largest a` from {schema}.grouped") == [(7,), (8,)]
        assert rows(project, "select a from {schema}.by_path") == [(7,), (8,)]
        project.run_sql("drop schema {schema}_for_other cascade")
        for model, code in {
            "own": "READS_ITSELF",
            "reserved": "COLUMN_NAME_RESERVED",
            "twice": "COLUMN_NAME_TWICE",
            "missing": "SOURCE_MISSING",
            "unknown_key": "COLUMN_UNKNOWN",
        }.items():
            assert results[model].status == "error"
            assert f"{code}: " in results[model].message, results[model].message
        stored = [
            name for model in ("by_path", "grouped", "order") for name in (model, f"{model}__dyn")
        ]
        assert tables_of(project) == sorted([*stored, "dynamic_table_refreshes", "numbers"])
        assert len(history(project, "order__dyn")) >= 1


def tables_of(project):
    return sorted(row[1] for row in rows(project, "show tables in {schema}"))
