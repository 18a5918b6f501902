"""Aliases and custom schemas."""

import pytest
from dbt.tests.adapter.aliases import fixtures
from dbt.tests.adapter.aliases.test_aliases import (
    BaseAliasErrors,
    BaseAliases,
    BaseSameAliasDifferentDatabases,
    BaseSameAliasDifferentSchemas,
)


class SparkStrings:
    # Override: the literal is cast to Postgres' `text`.
    @pytest.fixture(scope="class")
    def macros(self):
        return {
            "cast.sql": fixtures.MACROS__CAST_SQL.replace("::text", "::string"),
            "expect_value.sql": fixtures.MACROS__EXPECT_VALUE_SQL,
        }


class TestAliases(SparkStrings, BaseAliases):
    pass


class TestAliasErrors(SparkStrings, BaseAliasErrors):
    pass


class TestSameAliasDifferentSchemas(SparkStrings, BaseSameAliasDifferentSchemas):
    pass


class TestSameAliasDifferentDatabases(SparkStrings, BaseSameAliasDifferentDatabases):
    pass
