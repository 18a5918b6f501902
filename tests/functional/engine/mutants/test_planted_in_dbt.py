"""A bug planted in the commit is found by random models of a whole project as well."""

import pytest
from fuzz.commit_mutants import the_record_comes_before_the_data
from fuzz.mutants import planted
from fuzz.project import CI_SEED
from tests.functional.dynamic_table.test_fuzz_on_delta import Fuzzed


class TestPlanted(Fuzzed):
    seed = CI_SEED

    def test_every_refresh_is_right(self, project, random_project):
        """Not with this bug: the rows are a commit that has no record."""
        bug = planted(the_record_comes_before_the_data)
        with bug, pytest.raises(AssertionError, match="FOREIGN_COMMIT"):
            super().test_every_refresh_is_right(project, random_project)
