"""Settings of the profile and variables in a text count: a table equals its query under them."""

import pytest
from tests.conftest import SMALL_AND_MANY
from tests.functional.refreshes import actions, assert_equals_query, dbt, rows

BY_REGION = "select id, region from {{ target.schema }}.orders where region = '${shop_region}'"
AS_JSON = "select id, to_json(named_struct('a', note)) as j from {{ target.schema }}.orders"
CONFIG = "{{ config(materialized='dynamic_table') }}\n"
IGNORE_NULLS = "spark.sql.jsonGenerator.ignoreNullFields"
REBUILT = "REINITIALIZE/SETTINGS_CHANGED"


class TestSettings:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self):
        return {
            "type": "spark_dynamic",
            "threads": 1,
            "server_side_parameters": {
                **SMALL_AND_MANY,
                "shop_region": "{{ env_var('SHOP_REGION', 'eu') }}",
                IGNORE_NULLS: "{{ env_var('IGNORE_NULLS', 'true') }}",
                "spark.sql.shuffle.partitions": "{{ env_var('PARTITIONS', '1') }}",
                "spark.sql.of.some.extension": "{{ env_var('EXTENSION', 'a') }}",
            },
        }

    @pytest.fixture(scope="class")
    def models(self):
        return {"by_region.sql": CONFIG + BY_REGION, "as_json.sql": CONFIG + AS_JSON}

    def test_a_table_equals_its_query_under_new_settings(self, project, monkeypatch):
        project.run_sql(
            "create table {schema}.orders (id int, region string, note string) using delta "
            "tblproperties ('delta.enableChangeDataFeed' = 'true')"
        )
        project.run_sql("insert into {schema}.orders values (1, 'eu', null), (2, 'us', 'x')")
        assert set(actions(dbt("run")).values()) == {"FULL/INITIAL_BUILD"}
        assert actions(dbt("run")) == {"by_region": "NO_DATA", "as_json": "NO_DATA"}

        monkeypatch.setenv("SHOP_REGION", "us")
        results = dbt("run")
        assert actions(results) == {"by_region": REBUILT, "as_json": "NO_DATA"}
        reason = results["by_region"].adapter_response["reason"]
        assert "shop_region was eu and is us" in reason
        assert rows(project, "select * from {schema}.by_region") == [(2, "us")]
        project.run_sql("insert into {schema}.orders values (3, 'us', null), (4, 'eu', null)")
        dbt("run")
        assert rows(project, "select id from {schema}.by_region") == [(2,), (3,)]

        monkeypatch.setenv("IGNORE_NULLS", "false")
        assert actions(dbt("run"))["as_json"] == REBUILT
        assert (1, '{"a":null}') in rows(project, "select * from {schema}.as_json")
        assert actions(dbt("run")) == {"by_region": "NO_DATA", "as_json": "NO_DATA"}

        # Harmless: a NO_DATA; not known: it may change rows.
        monkeypatch.setenv("PARTITIONS", "2")
        assert actions(dbt("run")) == {"by_region": "NO_DATA", "as_json": "NO_DATA"}
        monkeypatch.setenv("EXTENSION", "b")
        assert actions(dbt("run")) == {"by_region": REBUILT, "as_json": REBUILT}
        assert_equals_query(
            project, "by_region", "select id, region from {schema}.orders where region = 'us'"
        )
