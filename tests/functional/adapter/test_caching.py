"""dbt's cache of relations."""

from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.util import run_dbt


class CacheWithoutDatabase:
    # Override: dbt compares names of databases, which Spark has not.
    def run_and_inspect_cache(self, project, run_args=None):
        found = []
        for _ in range(2):
            run_dbt(list(run_args))
            (relation,) = project.adapter.cache.relations
            assert relation.schema == project.test_schema
            found.append((relation.schema.lower(), relation.identifier.lower()))
        assert found[0] == found[1]


class TestCachingLowercaseModel(CacheWithoutDatabase, BaseCachingLowercaseModel):
    pass


class TestCachingUppercaseModel(CacheWithoutDatabase, BaseCachingUppercaseModel):
    pass


class TestCachingSelectedSchemaOnly(CacheWithoutDatabase, BaseCachingSelectedSchemaOnly):
    pass


class TestNoPopulateCache(CacheWithoutDatabase, BaseNoPopulateCache):
    pass
