"""The first line of every error is `CODE: sentence`, on the screen and in the state table."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtDatabaseError
from fake_shop import small_shop

from dbt.adapters.spark_dynamic.state_rows import failure_row
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.schedule.remembered import Marks

DIVISION = "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL ==\nselect 1 / 0"
CHECKED = (
    "[TASK_WRITE_FAILED] Task failed.\nCaused by: "
    "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint x violated.\n - a : 1"
)


@pytest.mark.parametrize(
    ("message", "report"),
    [
        (
            DIVISION,
            "DIVIDE_BY_ZERO: Division by zero. SQLSTATE: 22012\n== SQL ==\nselect 1 / 0",
        ),
        # What caused it is what people have to know; all of it follows.
        (
            CHECKED,
            "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES: CHECK constraint x violated.\n" + CHECKED,
        ),
        ("[A_B.C_D] One line.", "A_B.C_D: One line."),
        ("The connection was lost.", "QUERY_FAILED: The connection was lost."),
        ("", "QUERY_FAILED: "),
    ],
)
def test_an_error_of_spark_begins_with_its_condition(message: str, report: str) -> None:
    assert WarehouseError.of(message).report == report


def test_the_condition_is_the_one_that_spark_names_first() -> None:
    assert WarehouseError.of(CHECKED).condition == "TASK_WRITE_FAILED"
    assert WarehouseError.of(CHECKED).breaks_constraint
    assert not WarehouseError.of(DIVISION).breaks_constraint


@pytest.mark.parametrize(
    ("message", "is_gone"),
    [
        (
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file x.parquet.",
            True,
        ),
        # A deletion vector; the error has no name of its own.
        ("Job aborted: java.io.FileNotFoundException: File deletion_vector.bin ...", True),
        ("[DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION] Old.", True),
        ("[DELTA_VERSION_NOT_FOUND] Cannot time travel Delta table to version 1.", True),
        ("[TABLE_OR_VIEW_NOT_FOUND] The table or view `x` cannot be found.", False),
        (DIVISION, False),
    ],
)
def test_what_is_no_longer_kept_is_told_from_other_errors(message: str, is_gone: bool) -> None:
    assert WarehouseError.of(message).misses_history is is_gone


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (EngineError("X", "No."), "X", "X: No."),
        (WarehouseError.of(DIVISION), "DIVIDE_BY_ZERO", "DIVIDE_BY_ZERO: Division by zero."),
        (DbtDatabaseError(DIVISION), "DIVIDE_BY_ZERO", "DIVIDE_BY_ZERO: Division by zero."),
        (CompilationError("the hook\nfailed"), "FAILED", "FAILED: the hook"),
        (RuntimeError("left"), "FAILED", "FAILED: left"),
        (KeyError(), "FAILED", "FAILED: "),
    ],
)
def test_the_state_table_has_the_same_code_in_both_columns(
    error: Exception, code: str, reason: str
) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    cycle: Any = SimpleNamespace(id="cycle", invocation="invocation")
    request = small_shop(copy="select 1").request("copy")
    row = failure_row(error, request, cycle, (now, now), Marks())
    assert row.reason_code == code
    assert row.reason is not None and row.reason.startswith(reason)
    assert row.error is not None and row.error.startswith(row.reason)
