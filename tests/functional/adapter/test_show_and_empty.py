"""`dbt show`, and runs on no rows (`--empty`) or some rows (`--sample`)."""

import pytest
from dbt.tests.adapter.dbt_show.test_dbt_show import (
    BaseShowDoesNotHandleDoubleLimit,
    BaseShowLimit,
    BaseShowSqlHeader,
)
from dbt.tests.adapter.empty import _models
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty,
    BaseTestEmptyInlineSourceRef,
    BaseTestEmptySeedFlag,
    MetadataWithEmptyFlag,
)
from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest


class TestShowLimit(BaseShowLimit):
    pass


class TestShowSqlHeader(BaseShowSqlHeader):
    pass


class TestShowDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    # Override: Spark's words for a syntax error.
    DATABASE_ERROR_MESSAGE = "PARSE_SYNTAX_ERROR"


class TestRunEmpty(BaseTestEmpty):
    pass


class TestRunEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    # Override: dbt-spark drops no column and changes no type; the others in one run.
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "schema.yml": _models.SCHEMA,
            "control.sql": _models.CONTROL,
            "get_columns_in_relation.sql": _models.GET_COLUMNS_IN_RELATION,
            "alter_relation_comment.sql": _models.ALTER_RELATION_COMMENT,
            "alter_column_comment.sql": _models.ALTER_COLUMN_COMMENT,
            "truncate_relation.sql": _models.TRUNCATE_RELATION,
        }

    @pytest.mark.parametrize("model", ["*"])
    def test_run(self, project, model):
        super().test_run(project, model)


@pytest.mark.skip(reason="dbt-core 1.11 has no `dbt seed --empty`; the class is ahead of it")
class TestSeedEmpty(BaseTestEmptySeedFlag):
    pass


class TestSampleMode(BaseSampleModeTest):
    pass
