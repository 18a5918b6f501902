"""Functions that sqlglot would write otherwise, or does not know, stay as they are."""

import pytest
import sqlglot

from spark_dynamic.plan.fingerprint import canonical
from spark_dynamic.sql.as_written import AS_WRITTEN
from spark_dynamic.sql.dialect import SparkDynamic, parsed, rendered
from spark_dynamic.sql.measures import is_aggregate
from spark_dynamic.sql.spark_functions import CLOCK, VOLATILE


@pytest.mark.parametrize("name", sorted(AS_WRITTEN))
@pytest.mark.parametrize("arguments", ["a", "a, 'b'", "a, b, c"])
def test_names_and_arguments_stay(name: str, arguments: str) -> None:
    assert rendered(f"select {name}({arguments})") == f"SELECT {name.upper()}({arguments})"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DATE_TRUNC('month', a)",
        "SELECT TRUNC(a, 'Q')",
        "SELECT DATE_FORMAT(a, 'E')",
        "SELECT TO_DATE(a, 'yyyy-MM-dd')",
        "SELECT DATEDIFF(hour, a, b)",
        "SELECT a << 1 + b",
        "SELECT REDUCE(a, 0, (s, x) -> s + x)",
        "SELECT SUBSTRING(a, 1, 2), TRIM(BOTH 'x' FROM a), LOCATE('a', b)",
    ],
)
def test_so_do_letters_units_and_signs(text: str) -> None:
    assert rendered(text) == text


def test_substr_may_have_words_between_its_arguments() -> None:
    text = "select substr(a from 2 for 3), substr(substr(a, 2), b)"
    assert rendered(text) == "SELECT SUBSTRING(a, 2, 3), SUBSTR(SUBSTR(a, 2), b)"


def test_a_unit_is_no_column() -> None:
    tree = sqlglot.parse_one("select timestampdiff(minute, a, b)", dialect=SparkDynamic)
    assert [column.name for column in tree.find_all(sqlglot.exp.Column)] == ["a", "b"]


def test_capitals_in_the_name_of_a_function_are_cosmetic() -> None:
    texts = ("date_trunc('month', a)", "DATE_TRUNC('month', a)", "Date_Trunc('month', a)")
    trees = [sqlglot.parse_one(text, dialect=SparkDynamic) for text in texts]
    assert len({canonical(tree, {}) for tree in trees}) == 1


@pytest.mark.parametrize("name", sorted(AS_WRITTEN))
def test_all_of_them_make_one_value_of_one_row(name: str) -> None:
    [call] = parsed(f"select {name}(a)").expressions
    assert not is_aggregate(call)
    assert name not in CLOCK | VOLATILE
