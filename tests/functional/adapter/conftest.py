"""What dbt-tests-adapter's classes need on Spark: a profile, and their own SQL in its dialect."""

import re

import pytest
from tests.conftest import SMALL_AND_MANY

# A failing assertion in dbt's classes shows its values.
pytest.register_assert_rewrite("dbt.tests.adapter")

# dbt's fixtures are written for Postgres: what differs, and how Spark with Delta says it.
POSTGRES_TO_SPARK = [
    (re.compile(r"\{database\}\.|\bNone\.|`None`\."), ""),  # Spark has no database level
    (re.compile(r"TIMESTAMP WITHOUT TIME ZONE"), "TIMESTAMP"),
    (re.compile(r"\bTEXT\b|(?<=::)text\b"), "STRING"),
    (re.compile(r'"(\w+)"(?=[,)])'), r"`\1`"),  # names of columns
    # Delta cannot add a column with a default to a table that has rows.
    (re.compile(r"(add column \w+ \S+) default [^;]+"), r"\1"),
]


def in_spark(sql: str) -> list[str]:
    """Return the statements of a fixture's SQL, in Spark's dialect; Spark takes one at a time."""
    for pattern, replacement in POSTGRES_TO_SPARK:
        sql = pattern.sub(replacement, sql)
    statements = [statement.strip() for statement in sql.split(";")]
    return [statement for statement in statements if re.sub(r"--.*", "", statement).strip()]


@pytest.fixture(scope="class")
def dbt_profile_target():
    return {
        "type": "spark_dynamic",
        "threads": 2,
        "server_side_parameters": {
            **SMALL_AND_MANY,
            # Tables that a fixture creates by hand name no format, and some are updated later.
            "spark.sql.sources.default": "delta",
        },
    }


@pytest.fixture(scope="class", autouse=True)
def fixtures_speak_spark(project):
    """Translate the SQL that a class runs by itself, past dbt."""
    run_sql = project.run_sql

    def run_translated(sql, fetch=None):
        result = None
        for statement in in_spark(sql):
            result = run_sql(statement, fetch)
        return result

    project.run_sql = run_translated
