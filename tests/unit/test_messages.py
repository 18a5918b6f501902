"""What is left of an error text of Spark."""

import pytest

from dbt.adapters.spark_dynamic.messages import readable

STACK = (
    "\n\tat org.apache.spark.sql.Dataset$.ofRows(Dataset.scala:9)\n\tat java.base/java.lang.A(B)"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[A] No. SQLSTATE: 42703", "[A] No. SQLSTATE: 42703", id="a message alone"),
        pytest.param(
            "\n[A] Syntax error at 'x'. SQLSTATE: 42601 (line 1, pos 0)\n\n== SQL ==\nx\n^^^\n",
            "[A] Syntax error at 'x'. SQLSTATE: 42601 (line 1, pos 0)\n\n== SQL ==\nx\n^^^",
            id="empty lines around it go",
        ),
        pytest.param(
            "[A] No. SQLSTATE: 42703; line 1 pos 7;\n'Project ['x]\n+- OneRowRelation\n",
            "[A] No. SQLSTATE: 42703; line 1 pos 7",
            id="the plan goes",
        ),
        pytest.param(
            "[A] No. SQLSTATE: 22018\n== SQL (line 1, position 8) ==\nselect 'x'\n       ^^^",
            "[A] No. SQLSTATE: 22018\n== SQL (line 1, position 8) ==\nselect 'x'\n       ^^^",
            id="the place in the query stays",
        ),
        pytest.param(
            "org.apache.hive.service.cli.HiveSQLException: Error running query: "
            "[A.B] org.apache.spark.sql.AnalysisException: [A.B] No." + STACK,
            "[A.B] No.",
            id="the Thrift server's words go",
        ),
        pytest.param(
            "An error occurred while calling z:org.apache.A$.b.\n"
            f": org.apache.spark.SparkException: [A] Task failed.{STACK}\n"
            f"Caused by: java.io.IOException: disk{STACK}\n\t... 9 more\n"
            f"Caused by: org.apache.spark.SparkRuntimeException: [B] row 7{STACK}\n\t... 3 more\n",
            "[A] Task failed.\nCaused by: [B] row 7",
            id="the first cause is kept",
        ),
        pytest.param(
            f"java.lang.IllegalStateException: odd{STACK}\nCaused by: a.B: odd{STACK}",
            "java.lang.IllegalStateException: odd",
            id="an exception that is not Spark's keeps its class",
        ),
    ],
)
def test_the_sentences_stay_and_the_rest_goes(text: str, expected: str) -> None:
    assert readable(text) == expected
    assert readable(expected) == expected
