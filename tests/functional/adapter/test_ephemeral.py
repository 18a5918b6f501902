"""Ephemeral models as common table expressions."""

from pathlib import Path

from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.util import check_relations_equal, run_dbt


def written(name):
    """Return the statement that dbt ran for a model, with single spaces."""
    return " ".join(Path(f"target/run/test/models/{name}.sql").read_text().split())


class TestEphemeralMulti(BaseEphemeralMulti):
    # Override: dbt compares the whole statement, which is Postgres' there.
    def test_ephemeral_multi(self, project):
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for name in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", name])
        statement = written("double_dependent")
        assert statement.count("__dbt__cte__base as (") == 1
        assert statement.count("__dbt__cte__base_copy as (") == 1


class TestEphemeralNested(BaseEphemeralNested):
    # Override: as above.
    def test_ephemeral_nested(self, project):
        assert len(run_dbt(["run"])) == 2
        check_relations_equal(project.adapter, ["source_table", "root_view"])
        statement = written("root_view")
        first = statement.index("__dbt__cte__ephemeral_level_two as (")
        assert first < statement.index("__dbt__cte__ephemeral as (")


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass
