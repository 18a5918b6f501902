"""Incremental models: strategies, predicates, excluded columns, schema changes, microbatches."""

import pytest
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import (
    BaseMergeExcludeColumns,
)
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import (
    BaseIncrementalOnSchemaChangeSetup,
)
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey
from dbt.tests.util import check_relations_equal, run_dbt

ROWS_OF_TWO_RUNS = """
{% if not is_incremental() %}
select cast(1 as bigint) as id, 'first' as msg, 'one' as run
union all
select cast(2 as bigint) as id, 'second' as msg, 'one' as run
{% else %}
select cast(2 as bigint) as id, 'second again' as msg, 'two' as run
union all
select cast(3 as bigint) as id, 'third' as msg, 'two' as run
{% endif %}
"""


def model(**config):
    """Return an incremental model of these rows."""
    config["materialized"] = "incremental"
    return "{{ config(" + repr(config) + ") }}" + ROWS_OF_TWO_RUNS


def rows_of(project, name):
    query = f"select id, msg, run from {project.test_schema}.{name} order by id, msg"
    return [tuple(row) for row in project.run_sql(query, fetch="all")]


FIRST = (1, "first", "one")
SECOND = (2, "second", "one")
SECOND_AGAIN = (2, "second again", "two")
THIRD = (3, "third", "two")


class TestStrategies:
    """Every strategy that dbt-spark tests, on this adapter's default format."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "by_default.sql": model(),
            "append.sql": model(incremental_strategy="append"),
            "merge_without_key.sql": model(incremental_strategy="merge"),
            "merge_on_key.sql": model(incremental_strategy="merge", unique_key="id"),
            "merge_some_columns.sql": model(
                incremental_strategy="merge", unique_key="id", merge_update_columns=["msg"]
            ),
            "overwrite_all.sql": model(incremental_strategy="insert_overwrite"),
            "overwrite_partitions.sql": model(
                incremental_strategy="insert_overwrite", partition_by="id"
            ),
            "overwrite_parquet.sql": model(
                incremental_strategy="insert_overwrite", partition_by="id", file_format="parquet"
            ),
        }

    def test_what_a_second_run_leaves(self, project):
        run_dbt(["run"])
        run_dbt(["run"])
        everything = [FIRST, SECOND, SECOND_AGAIN, THIRD]
        assert rows_of(project, "by_default") == everything
        assert rows_of(project, "append") == everything
        assert rows_of(project, "merge_without_key") == everything
        assert rows_of(project, "merge_on_key") == [FIRST, SECOND_AGAIN, THIRD]
        updated = (2, "second again", "one")
        assert rows_of(project, "merge_some_columns") == [FIRST, updated, THIRD]
        assert rows_of(project, "overwrite_all") == [SECOND_AGAIN, THIRD]
        assert rows_of(project, "overwrite_partitions") == [FIRST, SECOND_AGAIN, THIRD]
        assert rows_of(project, "overwrite_parquet") == [FIRST, SECOND_AGAIN, THIRD]


class TestBadStrategies:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "bad_format.sql": model(file_format="something_else"),
            "bad_strategy.sql": model(incremental_strategy="something_else"),
            "merge_needs_delta.sql": model(incremental_strategy="merge", file_format="parquet"),
        }

    def test_each_is_refused_before_anything_runs(self, project):
        results = run_dbt(["run"], expect_pass=False)
        assert len(results) == 3
        for result in results:
            assert result.status == "error"
            assert "Compilation Error in model" in result.message


# dbt-spark also tests Hudi: its jars are not part of the embedded Spark.


class MergeOnAllModels:
    """The class expects an upsert; without a strategy dbt-spark appends."""

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"+incremental_strategy": "merge"}}


class TestUniqueKey(MergeOnAllModels, BaseIncrementalUniqueKey):
    pass


class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


PREDICATE = "dbt_internal_dest.id != 2"


class MergePredicates(BaseIncrementalPredicates):
    # Override: Spark has no delete+insert; merge names its target DBT_INTERNAL_DEST.
    strategy = {"+incremental_strategy": "merge"}


class TestIncrementalPredicates(MergePredicates):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {**self.strategy, "+incremental_predicates": [PREDICATE]}}


class TestPredicates(MergePredicates):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {**self.strategy, "+predicates": [PREDICATE]}}


class IgnoresOrFails(BaseIncrementalOnSchemaChangeSetup):
    """What append and insert_overwrite can do: they never change a table's columns."""

    def test_run_incremental_ignore(self, project):
        names = "model_a incremental_ignore incremental_ignore_target"
        self.run_twice_and_assert(
            names, "incremental_ignore", "incremental_ignore_target", project
        )

    def test_run_incremental_fail_on_schema_change(self, project):
        names = "model_a incremental_fail"
        run_dbt(["run", "--select", names, "--full-refresh"])
        results = run_dbt(["run", "--select", names], expect_pass=False)
        assert "Compilation Error" in results[1].message


class TestAppendOnSchemaChange(IgnoresOrFails):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"+incremental_strategy": "append"}}


class TestInsertOverwriteOnSchemaChange(IgnoresOrFails):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {
            "models": {
                "+file_format": "parquet",
                "+partition_by": "id",
                "+incremental_strategy": "insert_overwrite",
            }
        }


class TestMergeOnSchemaChange(BaseIncrementalOnSchemaChangeSetup):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"+incremental_strategy": "merge", "+unique_key": "id"}}

    def test_new_columns_are_appended(self, project):
        self.run_incremental_append_new_columns(project)

    # Override: dbt-spark never drops a column, and says so.
    @pytest.mark.parametrize(
        "name", ["incremental_sync_all_columns", "incremental_sync_remove_only"]
    )
    def test_columns_are_not_dropped(self, project, name):
        names = f"model_a {name}"
        run_dbt(["run", "--select", names, "--full-refresh"])
        results = run_dbt(["run", "--select", names], expect_pass=False)
        assert "does not support dropping columns" in results[1].message


ODD_COLUMNS = "`a space`, `select`, `a-dash`, `a.dot`"


class TestNewColumnsWithOddNames:
    @pytest.fixture(scope="class")
    def project_config_update(self):
        # Without it Delta takes no spaces in names.
        return {"models": {"+tblproperties": {"delta.columnMapping.mode": "name"}}}

    @pytest.fixture(scope="class")
    def models(self):
        table = "{{ config(materialized='table') }} "
        source = (
            "select id, concat('s', id) as `a space`, concat('k', id) as `select`, "
            "id * 10 as `a-dash`, concat('d', id) as `a.dot` from range(1, 7) as numbers(id)"
        )
        grown = (
            "{{ config(materialized='incremental', incremental_strategy='append', "
            "on_schema_change='append_new_columns') }}"
            "{% if is_incremental() %}"
            f"select id, {ODD_COLUMNS} from {{{{ ref('source') }}}} where id > 3"
            "{% else %}"
            "select id, `a space`, `select` from {{ ref('source') }} where id <= 3"
            "{% endif %}"
        )
        expected = (
            f"{table} select id, `a space`, `select`, "
            "case when id > 3 then `a-dash` end as `a-dash`, "
            "case when id > 3 then `a.dot` end as `a.dot` from {{ ref('source') }}"
        )
        return {"source.sql": table + source, "grown.sql": grown, "expected.sql": expected}

    def test_they_are_added(self, project):
        run_dbt(["run"])
        run_dbt(["run"])
        check_relations_equal(project.adapter, ["grown", "expected"])


class TestMicrobatch(BaseMicrobatch):
    # Override: on Spark a microbatch overwrites a partition, so it has one and has no key.
    @pytest.fixture(scope="class")
    def microbatch_model_sql(self):
        return """
        {{ config(
            materialized='incremental', incremental_strategy='microbatch',
            event_time='event_time', batch_size='day', partition_by=['date_day'],
            begin=modules.datetime.datetime(2020, 1, 1, 0, 0, 0)
        ) }}
        select *, cast(event_time as date) as date_day from {{ ref('input_model') }}
        """
