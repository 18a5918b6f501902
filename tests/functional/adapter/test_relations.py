"""Relations: their columns, a change of kind, a dropped schema."""

import pytest
from dbt.tests.adapter.column_types import fixtures
from dbt.tests.adapter.column_types.test_column_types import BasePostgresColumnTypes
from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.util import check_relations_equal, run_dbt


class TestChangeRelationType(BaseChangeRelationTypeValidator):
    pass


class TestDropSchemaNamed(BaseDropSchemaNamed):
    pass


class TestColumnTypes(BasePostgresColumnTypes):
    # Override: the types of Spark.
    @pytest.fixture(scope="class")
    def models(self):
        query = """
        select
            cast(1 as smallint) as smallint_col,
            cast(2 as int) as int_col,
            cast(3 as bigint) as bigint_col,
            cast(4 as float) as real_col,
            cast(5 as double) as double_col,
            cast(6 as decimal(5, 2)) as numeric_col,
            cast('7' as string) as text_col,
            cast('8' as varchar(20)) as varchar_col
        """
        return {"model.sql": query, "schema.yml": fixtures.schema_yml}


class TestColumnsInRelation:
    """Columns of a relation that the same run has just built."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "child.sql": "select 1, 'two' as `odd name`",
            "parent.sql": (
                "select {% for column in adapter.get_columns_in_relation(ref('child')) %}"
                "{{ adapter.quote(column.column) }}{{ ',' if not loop.last }}"
                "{% endfor %} from {{ ref('child') }}"
            ),
        }

    def test_they_can_be_selected(self, project):
        run_dbt(["run"])
        check_relations_equal(project.adapter, ["child", "parent"])


class TestThreePartNames:
    """A project may name the catalog: `spark_catalog.schema.table`."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "one.sql": "select 1 as id",
            "two.sql": "select * from spark_catalog.{{ ref('one') }}",
        }

    def test_they_are_read(self, project):
        run_dbt(["run"])
        check_relations_equal(project.adapter, ["one", "two"])
