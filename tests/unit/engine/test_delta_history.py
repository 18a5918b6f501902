from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fake_delta import WRITER
from fake_records import record_of

from spark_dynamic.frontier.compare import history_says, row_count
from spark_dynamic.frontier.history import (
    Effect,
    between,
    changes_rows,
    counts,
    effect,
    read_tail,
    records,
    replaces_all,
    replaces_part,
    rows_left,
)
from spark_dynamic.frontier.record import empty_run_mark, write_record
from spark_dynamic.warehouse import Commit

START = datetime(2026, 1, 1, tzinfo=UTC)
OVERWRITE = {"mode": "Overwrite"}
APPEND = {"mode": "Append"}


def commit(
    version: int,
    operation: str,
    metrics: Mapping[str, str] | None = None,
    parameters: Mapping[str, str] | None = None,
    metadata: str | None = None,
) -> Commit:
    at = START + timedelta(minutes=version)
    return Commit(version, at, operation, parameters or {}, metrics or {}, metadata, WRITER)


def merge(inserted: Any, updated: Any, deleted: Any) -> dict[str, str]:
    named = {"Inserted": inserted, "Updated": updated, "Deleted": deleted}
    return {f"numTargetRows{key}": str(n) for key, n in named.items() if n is not None}


@pytest.mark.parametrize(
    ("operation", "parameters", "metrics", "expected"),
    [
        *[
            (operation, {}, {}, Effect.NOTHING)
            for operation in (
                "OPTIMIZE", "REORG", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES",
                "UNSET TBLPROPERTIES", "ADD CONSTRAINT", "DROP CONSTRAINT", "CLUSTER BY",
                "ROW TRACKING BACKFILL", "COMPUTE STATS", "UPGRADE PROTOCOL",
            )
        ],
        ("WRITE", APPEND, {"numOutputRows": "2"}, Effect.ADDED),
        ("WRITE", APPEND, {"numOutputRows": "0"}, Effect.NOTHING),
        ("WRITE", APPEND, {}, Effect.REWRITTEN),
        ("WRITE", OVERWRITE, {"numOutputRows": "0"}, Effect.REWRITTEN),
        ("WRITE", {}, {"numOutputRows": "0"}, Effect.REWRITTEN),
        ("STREAMING UPDATE", {}, {"numRemovedFiles": "0", "numOutputRows": "3"}, Effect.ADDED),
        ("STREAMING UPDATE", {}, {"numRemovedFiles": "0", "numOutputRows": "0"}, Effect.NOTHING),
        ("STREAMING UPDATE", {}, {"numRemovedFiles": "1", "numOutputRows": "3"}, Effect.REWRITTEN),
        ("STREAMING UPDATE", {}, {}, Effect.REWRITTEN),
        ("DELETE", {}, {"numDeletedRows": "2"}, Effect.REMOVED),
        ("DELETE", {}, {"numDeletedRows": "0"}, Effect.NOTHING),
        ("DELETE", {}, {"numRemovedFiles": "4"}, Effect.REMOVED),
        ("UPDATE", {}, {"numUpdatedRows": "2"}, Effect.REWRITTEN),
        ("UPDATE", {}, {"numUpdatedRows": "0"}, Effect.NOTHING),
        ("UPDATE", {}, {}, Effect.REWRITTEN),
        ("MERGE", {}, merge(0, 0, 0), Effect.NOTHING),
        ("MERGE", {}, merge(2, 0, 0), Effect.ADDED),
        ("MERGE", {}, merge(0, 0, 2), Effect.REMOVED),
        ("MERGE", {}, merge(0, 2, 0), Effect.REWRITTEN),
        ("MERGE", {}, merge(1, 0, 1), Effect.REWRITTEN),
        ("MERGE", {}, merge(0, 1, 1), Effect.REWRITTEN),
        ("MERGE", {}, merge(0, 0, None), Effect.REWRITTEN),
        *[
            (operation, {}, {"numOutputRows": "0"}, Effect.REWRITTEN)
            for operation in (
                "RESTORE", "TRUNCATE", "CLONE", "CONVERT", "REPLACE TABLE AS SELECT",
                "CREATE OR REPLACE TABLE AS SELECT", "CREATE TABLE AS SELECT", "MANUAL UPDATE",
                "SOMETHING NEW",
            )
        ],
    ],
)  # fmt: skip
def test_what_a_commit_did(
    operation: str, parameters: dict[str, str], metrics: dict[str, str], expected: Effect
) -> None:
    found = commit(1, operation, metrics, parameters)
    assert effect(found) is expected
    assert changes_rows(found) is (expected is not Effect.NOTHING)


APPENDED = commit(1, "WRITE", {"numOutputRows": "2"}, APPEND)
DELETED = commit(2, "DELETE", {"numDeletedRows": "2"})
OPTIMISED = commit(3, "OPTIMIZE")
RESTORED = commit(4, "RESTORE")


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        ([], False),
        ([OPTIMISED], False),
        ([APPENDED], True),
        ([APPENDED, OPTIMISED], True),
        ([DELETED, DELETED], True),
        # Put in and taken out again, perhaps: only a comparison can tell.
        ([APPENDED, DELETED], None),
        ([RESTORED], None),
    ],
)
def test_history_answers_what_it_can(commits: list[Commit], expected: bool | None) -> None:
    assert history_says(commits) is expected


def test_commits_between_are_all_there_or_none() -> None:
    commits = [commit(v, "OPTIMIZE") for v in (5, 4, 2, 1)]
    assert between(commits, 4, 5) == [commits[0]]
    assert between(commits, 5, 5) == []
    assert between(commits, 1, 4) is None
    assert between(commits, 0, 2) == commits[2:]


def recorded(version: int, attempt: str, **more: Any) -> Commit:
    record = replace(record_of("totals"), attempt=attempt, **more)
    return commit(version, "WRITE", {"numOutputRows": "1"}, OVERWRITE, write_record(record))


def tail_of(*commits: Commit) -> tuple[str, int | None]:
    tail = read_tail(sorted(commits, key=lambda c: c.version, reverse=True))
    return tail.problem, tail.newest.commit.version if tail.newest else None


def test_the_newest_record_is_found_behind_maintenance() -> None:
    first, second = recorded(0, "a", incarnation="1"), recorded(2, "b", incarnation="2")
    commits = (first, commit(1, "OPTIMIZE"), second, commit(3, "VACUUM END"))
    assert tail_of(*commits) == ("", 2)
    assert [r.record.attempt for r in records(commits)] == ["b", "a"]


def test_auto_compaction_repeats_the_metadata_and_is_no_record() -> None:
    first = recorded(0, "a")
    compacted = replace(commit(1, "OPTIMIZE"), user_metadata=first.user_metadata)
    assert tail_of(first, compacted) == ("", 0)


@pytest.mark.parametrize(
    "foreign",
    [
        commit(1, "DELETE", {"numDeletedRows": "1"}),
        commit(1, "WRITE", {"numOutputRows": "1"}, APPEND),
        commit(1, "RESTORE"),
        commit(1, "TRUNCATE"),
        commit(1, "UPDATE", {"numUpdatedRows": "1"}, metadata="theirs"),
    ],
)
def test_somebody_elses_rows_are_a_problem(foreign: Commit) -> None:
    tail = read_tail([foreign, recorded(0, "a")])
    assert tail.problem == "FOREIGN_COMMIT"
    assert tail.detail == f"{foreign.operation} at version 1"


def test_a_foreign_commit_under_a_rebuild_is_forgotten() -> None:
    rebuilt = recorded(2, "b", incarnation="2", based_on=0)
    assert tail_of(recorded(0, "a", incarnation="1"), RESTORED, replace(rebuilt, version=5)) == (
        "",
        5,
    )


def test_a_foreign_commit_under_a_continued_table_is_a_problem() -> None:
    first = recorded(0, "a")
    foreign = commit(1, "DELETE", {"numDeletedRows": "1"})
    assert tail_of(first, foreign, recorded(2, "b", based_on=0))[0] == "FOREIGN_COMMIT"
    harmless = commit(1, "OPTIMIZE")
    assert tail_of(first, harmless, recorded(2, "b", based_on=0))[0] == ""


def test_a_record_that_passes_over_the_one_before_is_a_problem() -> None:
    commits = (recorded(0, "a"), recorded(1, "b", based_on=0), recorded(2, "c", based_on=0))
    assert tail_of(*commits)[0] == "FOREIGN_COMMIT"


def test_an_empty_run_leaves_its_mark() -> None:
    empty = commit(1, "WRITE", {"numOutputRows": "0"}, OVERWRITE, empty_run_mark())
    assert tail_of(recorded(0, "a"), empty) == ("AFTER_EMPTY_RUN", 0)
    assert tail_of(replace(empty, version=0)) == ("AFTER_EMPTY_RUN", None)
    rebuilt = recorded(2, "b", incarnation="2")
    assert tail_of(recorded(0, "a"), empty, rebuilt) == ("", 2)


def test_a_log_without_a_record_is_lost() -> None:
    assert tail_of(commit(0, "CREATE TABLE AS SELECT")) == ("RECORD_LOST", None)
    assert tail_of() == ("RECORD_LOST", None)


@pytest.mark.parametrize(
    ("version", "before", "expected"),
    [
        # From a rewrite on, or from a version of which it is known.
        (4, None, 12),
        (3, (2, 40), 45),
        (3, (3, 40), 40),
        (4, (3, 40), 42),
        # A rewrite that came later counts; what is known of a later version does not.
        (4, (0, 1000), 12),
        (3, (4, 40), 10),
        # History alone does not tell.
        (6, None, None),
        (6, (4, 40), None),
        (6, (5, 40), 40),
        # Of a version that is not looked at any more, nothing can be told.
        (0, (-1, 5), None),
    ],
)
def test_rows_are_counted_from_history(
    version: int, before: tuple[int, int] | None, expected: int | None
) -> None:
    commits = [
        commit(6, "OPTIMIZE"),
        commit(5, "RESTORE"),
        commit(4, "MERGE", merge(3, 9, 1)),
        commit(3, "WRITE", {"numOutputRows": "5"}, APPEND),
        commit(2, "UPDATE", {"numUpdatedRows": "2"}),
        commit(1, "WRITE", {"numOutputRows": "5"}, OVERWRITE),
        commit(0, "DELETE", {"numDeletedRows": "2"}),
    ]
    assert row_count(commits, version, before) == expected


PART = {"mode": "Overwrite", "predicate": "d = 4"}
DYNAMIC = {"mode": "Overwrite", "isDynamicPartitionOverwrite": "true"}
OF_A_PART = {"predicate", "isDynamicPartitionOverwrite", "replaceUsingCols", "replaceOnCond"}
WRITTEN = {"numOutputRows": "7", "numRemovedFiles": "1"}
REPLACED = {**WRITTEN, "numCopiedRows": "4", "numDeletedRows": "1"}
SAVED = "CREATE OR REPLACE TABLE AS SELECT"


@pytest.mark.parametrize(
    ("operation", "parameters", "metrics", "left", "changed"),
    [
        ("WRITE", OVERWRITE, WRITTEN, 7, None),
        ("WRITE", {**OVERWRITE, "partitionBy": "[]", "canMergeSchema": "true"}, WRITTEN, 7, None),
        (SAVED, {"isManaged": "true", "description": None}, WRITTEN, 7, None),
        ("WRITE", OVERWRITE, {}, None, None),
        *((operation, {}, {}, 0, None) for operation in ("TRUNCATE", "CREATE TABLE")),
        # A part: nothing is known without the number of rows that went.
        ("WRITE", PART, REPLACED, None, (3, 0, 1)),
        ("WRITE", {**OVERWRITE, "replaceUsingCols": "(d)"}, REPLACED, None, (3, 0, 1)),
        ("WRITE", {**OVERWRITE, "replaceOnCond": "d = 1"}, REPLACED, None, (3, 0, 1)),
        ("WRITE", PART, WRITTEN, None, None),
        ("WRITE", PART, {"numRemovedFiles": "2"}, None, None),
        ("WRITE", DYNAMIC, WRITTEN, None, None),
        (SAVED, {"isDynamicPartitionOverwrite": "true"}, WRITTEN, None, None),
        # What an unknown parameter stands for is not known.
        ("WRITE", {**OVERWRITE, "replaceLike": "d"}, REPLACED, None, None),
        ("RESTORE", {"version": "1"}, {}, None, None),
        ("CLONE", {}, {"numCopiedFiles": "0"}, None, None),
        ("CONVERT", {}, {"numConvertedFiles": "6"}, None, None),
    ],
)
def test_what_history_counts(
    operation: str,
    parameters: dict[str, str],
    metrics: dict[str, str],
    left: int | None,
    changed: tuple[int, int, int] | None,
) -> None:
    found = commit(1, operation, metrics, parameters)
    assert (rows_left(found), counts(found)) == (left, changed)
    is_part = bool(parameters.keys() & OF_A_PART)
    assert replaces_part(found) is is_part
    assert replaces_all(found) is not is_part


@pytest.mark.parametrize(
    "writer", ["", "Apache-Spark/3.5.0 Delta-Lake/3.2.0", "delta-rs:1.0", "Databricks-Runtime/16"]
)
def test_other_writers_do_not_tell_what_they_overwrote(writer: str) -> None:
    found = replace(commit(1, "WRITE", WRITTEN, OVERWRITE), writer=writer)
    assert rows_left(found) is None
    created = replace(commit(0, "CREATE TABLE AS SELECT", WRITTEN), writer=writer)
    assert rows_left(created) == 7
