"""dbt's cross-database macros and type macros."""

import inspect

import pytest
from dbt.tests.adapter.utils import fixture_get_intervals_between
from dbt.tests.adapter.utils.data_types.test_type_bigint import BaseTypeBigInt
from dbt.tests.adapter.utils.data_types.test_type_boolean import BaseTypeBoolean
from dbt.tests.adapter.utils.data_types.test_type_float import BaseTypeFloat
from dbt.tests.adapter.utils.data_types.test_type_int import BaseTypeInt
from dbt.tests.adapter.utils.data_types.test_type_numeric import BaseTypeNumeric
from dbt.tests.adapter.utils.data_types.test_type_string import BaseTypeString
from dbt.tests.adapter.utils.data_types.test_type_timestamp import BaseTypeTimestamp
from dbt.tests.adapter.utils.test_any_value import BaseAnyValue
from dbt.tests.adapter.utils.test_array_append import BaseArrayAppend
from dbt.tests.adapter.utils.test_array_concat import BaseArrayConcat
from dbt.tests.adapter.utils.test_array_construct import BaseArrayConstruct
from dbt.tests.adapter.utils.test_bool_or import BaseBoolOr
from dbt.tests.adapter.utils.test_cast import BaseCast
from dbt.tests.adapter.utils.test_cast_bool_to_text import BaseCastBoolToText
from dbt.tests.adapter.utils.test_concat import BaseConcat
from dbt.tests.adapter.utils.test_current_timestamp import BaseCurrentTimestampNaive
from dbt.tests.adapter.utils.test_date import BaseDate
from dbt.tests.adapter.utils.test_date_spine import BaseDateSpine
from dbt.tests.adapter.utils.test_date_trunc import BaseDateTrunc
from dbt.tests.adapter.utils.test_dateadd import BaseDateAdd
from dbt.tests.adapter.utils.test_datediff import BaseDateDiff
from dbt.tests.adapter.utils.test_equals import BaseEquals
from dbt.tests.adapter.utils.test_escape_single_quotes import BaseEscapeSingleQuotesBackslash
from dbt.tests.adapter.utils.test_except import BaseExcept
from dbt.tests.adapter.utils.test_generate_series import BaseGenerateSeries
from dbt.tests.adapter.utils.test_get_intervals_between import BaseGetIntervalsBetween
from dbt.tests.adapter.utils.test_get_powers_of_two import BaseGetPowersOfTwo
from dbt.tests.adapter.utils.test_hash import BaseHash
from dbt.tests.adapter.utils.test_intersect import BaseIntersect
from dbt.tests.adapter.utils.test_last_day import BaseLastDay
from dbt.tests.adapter.utils.test_length import BaseLength
from dbt.tests.adapter.utils.test_listagg import BaseListagg
from dbt.tests.adapter.utils.test_null_compare import BaseMixedNullCompare, BaseNullCompare
from dbt.tests.adapter.utils.test_position import BasePosition
from dbt.tests.adapter.utils.test_replace import BaseReplace
from dbt.tests.adapter.utils.test_right import BaseRight
from dbt.tests.adapter.utils.test_safe_cast import BaseSafeCast
from dbt.tests.adapter.utils.test_source_freshness_custom_info import BaseCalculateFreshnessMethod
from dbt.tests.adapter.utils.test_split_part import BaseSplitPart
from dbt.tests.adapter.utils.test_string_literal import BaseStringLiteral
from dbt.tests.adapter.utils.test_timestamps import BaseCurrentTimestamps
from dbt.tests.adapter.utils.test_validate_sql import BaseValidateSqlMethod
from dbt.tests.util import run_dbt


@pytest.fixture(scope="class")
def project_config_update():
    """Spare the time of Delta commits: what a macro means does not hang on the format."""
    return {"seeds": {"+file_format": "parquet"}}


class AnsiDates(BaseGetIntervalsBetween):
    # Override: dates as ANSI SQL writes them.
    def models(self):
        query = fixture_get_intervals_between.models__test_get_intervals_between_sql
        query = query.replace("09/01/2023", "2023-09-01").replace("09/12/2023", "2023-09-12")
        return {
            "test_get_intervals_between.yml": (
                fixture_get_intervals_between.models__test_get_intervals_between_yml
            ),
            "test_get_intervals_between.sql": query,
        }


class PowersOfTwo(BaseGetPowersOfTwo):
    # Override: dbt's file names another model, so that nothing would be checked.
    def models(self):
        found = inspect.unwrap(BaseGetPowersOfTwo.models)(self)
        text = found["test_get_powers_of_two.yml"]
        return {
            **found,
            "test_get_powers_of_two.yml": text.replace("test_powers", "test_get_powers"),
        }


# The whole test of each is a `dbt build`: one project builds them all, in a fraction of the time.
ONLY_BUILT = [
    BaseAnyValue,
    BaseBoolOr,
    BaseCast,
    BaseCastBoolToText,
    BaseConcat,
    BaseDate,
    BaseDateAdd,
    BaseDateDiff,
    BaseDateSpine,
    BaseDateTrunc,
    BaseEscapeSingleQuotesBackslash,
    BaseGenerateSeries,
    AnsiDates,
    PowersOfTwo,
    BaseHash,
    BaseLastDay,
    BaseLength,
    BaseListagg,
    BaseNullCompare,
    BasePosition,
    BaseReplace,
    BaseRight,
    BaseSafeCast,
    BaseSplitPart,
    BaseStringLiteral,
]


def files(kind, classes=ONLY_BUILT):
    """Return the files that fixtures of dbt's classes hold; no class may shadow another's."""
    found = {}
    for one in classes:
        fixture = getattr(one, kind, lambda self: {})
        for name, text in inspect.unwrap(fixture)(one()).items():
            assert found.setdefault(name, text) == text, f"{one.__name__} clashes over {name}"
    return found


class TestMacros:
    @pytest.fixture(scope="class")
    def project_config_update(self, project_config_update):
        of_dateadd = inspect.unwrap(BaseDateAdd.project_config_update)(BaseDateAdd())
        return {"seeds": {**project_config_update["seeds"], **of_dateadd["seeds"]}}

    @pytest.fixture(scope="class")
    def seeds(self):
        return files("seeds")

    @pytest.fixture(scope="class")
    def models(self):
        return files("models")

    @pytest.fixture(scope="class")
    def macros(self):
        return files("macros")

    @pytest.fixture(scope="class")
    def checked(self, project):
        """The models of which some test passed; a test that fails fails the build."""
        results = [result for result in run_dbt(["build"]) if result.status == "pass"]
        return {node.split(".")[-1] for result in results for node in result.node.depends_on_nodes}

    @pytest.mark.parametrize("one", ONLY_BUILT)
    def test_every_model_of_a_class_is_built_and_checked(self, checked, one):
        models = {name.removesuffix(".sql") for name in files("models", [one]) if ".sql" in name}
        assert models and models <= checked


class TestArrayAppend(BaseArrayAppend):
    pass


class TestArrayConcat(BaseArrayConcat):
    pass


class TestArrayConstruct(BaseArrayConstruct):
    pass


class TestCurrentTimestamp(BaseCurrentTimestampNaive):
    pass


class TestCurrentTimestamps(BaseCurrentTimestamps):
    # Override: Spark has one type of timestamp here, and its own functions.
    @pytest.fixture(scope="class")
    def expected_schema(self):
        names = ["current_timestamp", "current_timestamp_in_utc_backcompat"]
        return dict.fromkeys([*names, "current_timestamp_backcompat"], "timestamp")

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return None


class TestEquals(BaseEquals):
    pass


class TestExcept(BaseExcept):
    pass


class TestIntersect(BaseIntersect):
    pass


class TestMixedNullCompare(BaseMixedNullCompare):
    pass


class TestCalculateFreshness(BaseCalculateFreshnessMethod):
    pass


class TestValidateSql(BaseValidateSqlMethod):
    pass


class TestTypeBigInt(BaseTypeBigInt):
    pass


class TestTypeBoolean(BaseTypeBoolean):
    pass


class TestTypeFloat(BaseTypeFloat):
    # Override: numbers of a seed are double on Spark.
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"seeds": {"test": {"+column_types": {"float_col": "float"}}}}


class TestTypeInt(BaseTypeInt):
    # Override: whole numbers of a seed are bigint on Spark.
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"seeds": {"test": {"+column_types": {"int_col": "int"}}}}


class TestTypeNumeric(BaseTypeNumeric):
    pass


class TestTypeString(BaseTypeString):
    pass


class TestTypeTimestamp(BaseTypeTimestamp):
    pass
