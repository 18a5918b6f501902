"""Seeds: types, delimiters, empty and odd files, full refresh."""

import pytest
from dbt.tests.adapter.simple_seed import fixtures, seeds
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseSimpleSeedWithBOM,
    BaseTestEmptySeed,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.util import run_dbt


class ViewsSurvive:
    """Override: Spark drops no dependent views, and our seeds keep their table anyway."""

    def _check_relation_end_state(self, run_result, project, exists):
        super()._check_relation_end_state(run_result, project, exists=True)


class TestBasicSeed(ViewsSurvive, BaseBasicSeedTests):
    pass


class TestSeedConfigFullRefreshOn(ViewsSurvive, BaseSeedConfigFullRefreshOn):
    pass


class TestSeedConfigFullRefreshOff(BaseSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(BaseSeedCustomSchema):
    pass


class TestSeedWithUniqueDelimiter(BaseSeedWithUniqueDelimiter):
    pass


class TestSeedWithWrongDelimiter(BaseSeedWithWrongDelimiter):
    # Override: Spark's words for it.
    def test_seed_with_wrong_delimiter(self, project):
        (result,) = run_dbt(["seed"], expect_pass=False).results
        assert "seed_id|first_name" in result.message


class TestSeedWithEmptyDelimiter(BaseSeedWithEmptyDelimiter):
    pass


class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    # Override: dbt declares these for the whole session, where they would reach other classes.
    @pytest.fixture(scope="class")
    def seeds(self):
        return {
            "seed_enabled.csv": seeds.seeds__enabled_in_config_csv,
            "seed_disabled.csv": seeds.seeds__disabled_in_config_csv,
            "seed_tricky.csv": seeds.seeds__tricky_csv,
        }


class TestSeedParsing(BaseSeedParsing):
    pass


class TestSimpleSeedWithBOM(BaseSimpleSeedWithBOM):
    # Override: dbt copies this file from its own repository.
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        project.run_sql(seeds.seeds__expected_sql)
        path = project.project_root / "seeds" / "seed_bom.csv"
        path.write_text("\ufeff" + seeds.seed__actual_csv, encoding="utf-8")


class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    # Override: dbt-spark does not quote names of tables, so they have no dots.
    @pytest.fixture(scope="class")
    def seeds(self, tmp_path_factory):
        big = self._make_big_seed(tmp_path_factory.mktemp("seeds") / "big").read_text()
        return {
            "big_seed.csv": big,
            "seed_without_dots.csv": seeds.seed__with_dots_csv,
            "seed_unicode.csv": seeds.seed__unicode_csv,
        }


class TestEmptySeed(BaseTestEmptySeed):
    pass


class TestSimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    # Override: names of types are Spark's.
    @pytest.fixture(scope="class")
    def models(self):
        text = fixtures.properties__schema_yml
        for postgres, spark in [
            ("timestamp without time zone", "timestamp"),
            ("type: text", "type: string"),
            ("type: integer", "type: bigint"),
        ]:
            text = text.replace(postgres, spark)
        return {"schema.yml": text}

    @staticmethod
    def seed_enabled_types():
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types():
        return {
            "seed_id_str": "string",
            "looks_like_a_bool": "string",
            "looks_like_a_date": "string",
        }
