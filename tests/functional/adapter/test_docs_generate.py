"""`dbt docs generate`: the catalog of tables, views and sources."""

import pytest
from dbt.tests.adapter.basic import expected_catalog
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.catalog import files
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes
from dbt.tests.util import run_dbt


class AnyOwner:
    """Whoever runs the tests, in a Hive catalog; one in memory keeps no owners of views."""

    def __eq__(self, other):
        return other is None or isinstance(other, str)

    def __repr__(self):
        return "AnyOwner"


class BigInt:
    """Spark's two names for it: `bigint` where a relation is described, `long` where listed."""

    def __eq__(self, other):
        return other in ("bigint", "long")

    def __repr__(self):
        return "BigInt"


class AnyStatistics:
    """Delta tables have sizes, which change with the data's layout; views have none."""

    def __eq__(self, other):
        return "has_stats" in other

    def __repr__(self):
        return "AnyStatistics"


class TestDocsGenerate(BaseDocsGenerate):
    # Override: names of types and kinds of relation are Spark's, and Spark knows the owner.
    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        return expected_catalog.base_expected_catalog(
            project,
            role=AnyOwner(),
            id_type=BigInt(),
            text_type="string",
            time_type="timestamp",
            view_type="view",
            table_type="table",
            model_stats=AnyStatistics(),
        )


class TestDocsGenReferences(BaseDocsGenReferences):
    # Override: as above; Spark counts columns from 0.
    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        catalog = expected_catalog.expected_references_catalog(
            project,
            role=AnyOwner(),
            id_type=BigInt(),
            text_type="string",
            time_type="timestamp",
            bigint_type=BigInt(),
            view_type="view",
            table_type="table",
            model_stats=AnyStatistics(),
        )
        for relation in [*catalog["nodes"].values(), *catalog["sources"].values()]:
            relation["columns"] = {
                name: {**column, "index": column["index"] - 1}
                for name, column in relation["columns"].items()
            }
        return catalog


class TestCatalogRelationTypes(CatalogRelationTypes):
    # Override: Spark has no materialized views, and dbt-spark names the kinds in lower case.
    @pytest.fixture(scope="class", autouse=True)
    def models(self):
        return {"my_table.sql": files.MY_TABLE, "my_view.sql": files.MY_VIEW}

    @pytest.fixture(scope="class", autouse=True)
    def docs(self, project):
        run_dbt(["seed"])
        run_dbt(["run"])
        return run_dbt(["docs", "generate"])

    @pytest.mark.parametrize(
        "node_name,relation_type",
        [
            ("seed.test.my_seed", "table"),
            ("model.test.my_table", "table"),
            ("model.test.my_view", "view"),
        ],
    )
    def test_relation_types_populate_correctly(self, docs, node_name, relation_type):
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)
