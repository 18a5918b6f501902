"""Grants. Spark outside of Databricks has no GRANT statement: dbt's classes cannot run."""

import pytest
from dbt.tests.adapter.grants.test_incremental_grants import BaseIncrementalGrants
from dbt.tests.adapter.grants.test_invalid_grants import BaseInvalidGrants
from dbt.tests.adapter.grants.test_model_grants import BaseModelGrants
from dbt.tests.adapter.grants.test_seed_grants import BaseSeedGrants
from dbt.tests.adapter.grants.test_snapshot_grants import BaseSnapshotGrants
from dbt.tests.util import run_dbt

no_grants = pytest.mark.skip(reason="Spark has no GRANT statement")


class TestGrantsAreNotSilentlyIgnored:
    """A project that asks for grants must not believe that it has them."""

    @pytest.fixture(scope="class")
    def models(self):
        config = "{{ config(materialized='table', grants={'select': ['reader']}) }}"
        return {"granted.sql": f"{config} select 1 as id"}

    def test_the_model_fails(self, project):
        (result,) = run_dbt(["run"], expect_pass=False)
        assert "GRANT is not valid" in result.message


@no_grants
class TestModelGrants(BaseModelGrants):
    pass


@no_grants
class TestIncrementalGrants(BaseIncrementalGrants):
    pass


@no_grants
class TestSeedGrants(BaseSeedGrants):
    pass


@no_grants
class TestSnapshotGrants(BaseSnapshotGrants):
    pass


@no_grants
class TestInvalidGrants(BaseInvalidGrants):
    pass
