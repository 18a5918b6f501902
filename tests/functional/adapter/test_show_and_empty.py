"""`dbt show`, and runs on no rows (`--empty`) or some rows (`--sample`)."""

import pytest
from dbt.tests.adapter.dbt_show.test_dbt_show import (
    BaseShowDoesNotHandleDoubleLimit,
    BaseShowLimit,
    BaseShowSqlHeader,
)
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
    DATABASE_ERROR_MESSAGE = "Syntax error at or near 'limit'"


class TestRunEmpty(BaseTestEmpty):
    pass


class TestRunEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    pass


@pytest.mark.skip(reason="dbt-core 1.11 has no `dbt seed --empty`; the class is ahead of it")
class TestSeedEmpty(BaseTestEmptySeedFlag):
    pass


class TestSampleMode(BaseSampleModeTest):
    pass
