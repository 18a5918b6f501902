"""Relations: their columns, a change of kind, a dropped schema."""

import pytest
from dbt.tests.adapter.column_types.test_column_types import BasePostgresColumnTypes
from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.util import check_relations_equal, run_dbt


class TestChangeRelationType(BaseChangeRelationTypeValidator):
    pass


class TestDropSchemaNamed(BaseDropSchemaNamed):
    pass


@pytest.mark.skip(reason="SparkColumn of dbt-spark takes only Postgres' names of types")
class TestColumnTypes(BasePostgresColumnTypes):
    pass


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
