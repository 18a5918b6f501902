"""Contracts and constraints."""

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseIncrementalForeignKeyConstraint,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)


def spark_types(text):
    """Spark has no type `text`."""
    return text.replace("data_type: text", "data_type: string").replace("primary key", "")


class SparkTypes:
    # Override: the types of Spark, each with the name that dbt's message gives it.
    @pytest.fixture
    def string_type(self):
        return "string"

    @pytest.fixture
    def int_type(self):
        return "int"

    @pytest.fixture
    def data_types(self):
        return [
            ["1", "int", "int"],
            ["'1'", "string", "string"],
            ["timestamp '2013-11-03 00:00:00'", "timestamp", "timestamp"],
            ["array(1, 2)", "array<int>", "array"],
            ["cast(1 as decimal(5, 2))", "decimal(5, 2)", "decimal"],
        ]

    @pytest.fixture(scope="class")
    def models(self):
        wrong_order, wrong_name = self.wrong_models
        return {
            "my_model_wrong_order.sql": wrong_order,
            "my_model_wrong_name.sql": wrong_name,
            "constraints_schema.yml": spark_types(fixtures.model_schema_yml),
        }


class TestTableConstraintsColumnsEqual(SparkTypes, BaseTableConstraintsColumnsEqual):
    wrong_models = (fixtures.my_model_wrong_order_sql, fixtures.my_model_wrong_name_sql)


class TestViewConstraintsColumnsEqual(SparkTypes, BaseViewConstraintsColumnsEqual):
    wrong_models = (fixtures.my_model_view_wrong_order_sql, fixtures.my_model_view_wrong_name_sql)


class TestIncrementalConstraintsColumnsEqual(SparkTypes, BaseIncrementalConstraintsColumnsEqual):
    wrong_models = (
        fixtures.my_model_incremental_wrong_order_sql,
        fixtures.my_model_incremental_wrong_name_sql,
    )


CREATE = """
create or replace table <model_identifier>
using delta
tblproperties ('delta.enableChangeDataFeed' = 'true')
as
select id, color, date_day from (
    -- depends_on: <foreign_key_model_identifier>
    select 'blue' as color, 1 as id, '2019-01-01' as date_day
) as model_subq
"""


class SparkDdl:
    # Override: Spark adds constraints by ALTER after the table is made, so not in this statement.
    @pytest.fixture(scope="class")
    def expected_sql(self):
        return CREATE


class TestTableConstraintsDdl(SparkDdl, BaseConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": spark_types(fixtures.model_fk_constraint_schema_yml),
        }


class TestIncrementalConstraintsDdl(SparkDdl, BaseIncrementalConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_incremental_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": spark_types(fixtures.model_fk_constraint_schema_yml),
        }


class TestModelConstraintsDdl(SparkDdl, BaseModelConstraintsRuntimeEnforcement):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": spark_types(fixtures.constrained_model_schema_yml),
        }


class TestConstraintQuotedColumn(BaseConstraintQuotedColumn):
    @pytest.fixture(scope="class")
    def models(self):
        text = spark_types(fixtures.model_quoted_column_schema_yml)
        return {
            "my_model.sql": fixtures.my_model_with_quoted_column_name_sql,
            "constraints_schema.yml": text.replace('"from"', "`from`"),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return """
create or replace table <model_identifier>
using delta
tblproperties ('delta.enableChangeDataFeed' = 'true')
as
select id, `from`, date_day from (
    select 'blue' as `from`, 1 as id, '2019-01-01' as date_day
) as model_subq
"""


class AfterTheTable:
    # Override: the table is replaced before the constraint is added, so the new row is there.
    @pytest.fixture(scope="class")
    def expected_color(self):
        return "red"

    # Override: Delta's words; NOT NULL is a check constraint here.
    @pytest.fixture(scope="class")
    def expected_error_messages(self):
        return ["CHECK constraint", "id"]


class TestTableConstraintsRollback(AfterTheTable, BaseConstraintsRollback):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_sql,
            "constraints_schema.yml": spark_types(fixtures.model_schema_yml),
        }


class TestIncrementalConstraintsRollback(AfterTheTable, BaseIncrementalConstraintsRollback):
    # Override: an incremental run meets the constraint that the table already has.
    @pytest.fixture(scope="class")
    def expected_color(self):
        return "blue"

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_incremental_model_sql,
            "constraints_schema.yml": spark_types(fixtures.model_schema_yml),
        }


@pytest.mark.skip(reason="the header is a Postgres SET; dbt-spark sends a header with its query")
class TestTableContractSqlHeader(BaseTableContractSqlHeader):
    pass


@pytest.mark.skip(reason="the header is a Postgres SET; dbt-spark sends a header with its query")
class TestIncrementalContractSqlHeader(BaseIncrementalContractSqlHeader):
    pass


@pytest.mark.skip(reason="Delta has no foreign keys")
class TestIncrementalForeignKeyConstraint(BaseIncrementalForeignKeyConstraint):
    pass
