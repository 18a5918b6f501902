"""When the self-check compares, and what it says when the comparison itself gives up."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from fake_records import recorded_at

from spark_dynamic.apply.groups import Groups
from spark_dynamic.apply.rows import Rows
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import Record
from spark_dynamic.refresh import self_check


def answer(monkeypatch: pytest.MonkeyPatch, error: EngineError) -> str:
    def give_up(*_: object) -> None:
        raise error

    monkeypatch.setattr(self_check, "_is_due", lambda *_: True)
    monkeypatch.setattr(self_check, "_is_cheap", lambda *_: True)
    monkeypatch.setattr(self_check, "verify", give_up)
    commit = recorded_at("m", 1, 1).commit
    nothing: Any = SimpleNamespace(record=None, request=None, maintenance=None, commit=commit)
    return self_check.what_differs(nothing, nothing, nothing, nothing)


def test_more_differences_than_can_be_read_are_differences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = EngineError("TOO_MANY_DIFFERENCES", "More than 10000 rows differ.")
    assert answer(monkeypatch, error) == "More than 10000 rows differ"


def test_any_other_error_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError):
        answer(monkeypatch, EngineError("HISTORY_LOST", "Gone."))


@pytest.mark.parametrize(
    ("sought", "found", "answer"),
    [(2, (1, 1, 0), ""), (2, (1, 1, 1), "several of its stored rows"), (0, (0, 0, 3), "")],
)
def test_a_merge_that_finds_more_than_it_looks_for_is_wrong(
    monkeypatch: pytest.MonkeyPatch, sought: int, found: tuple[int, int, int], answer: str
) -> None:
    monkeypatch.setattr(self_check, "_is_due", lambda *_: False)
    names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    counts = dict(zip(names, found, strict=True)) | {"numSourceRows": sought}
    metrics = {name: str(count) for name, count in counts.items()}
    written = recorded_at("m", 1, 1)
    written = replace(written, commit=replace(written.commit, metrics=metrics))
    nothing: Any = None
    said = self_check.what_differs(nothing, written, nothing, nothing)
    assert said.startswith(answer)
    assert bool(said) is bool(answer)


def is_due(target: type, *before: str) -> bool:
    """Whether a build with the fingerprint `new` is checked, after others."""
    older = [replace(recorded_at("m", 1, 1).record, fingerprint=name) for name in before]
    newest, *rest = [SimpleNamespace(record=record) for record in older] or [None]
    tail = SimpleNamespace(newest=newest, older=rest)
    plan: Any = SimpleNamespace(
        stored=SimpleNamespace(tail=tail) if before else None,
        maintenance=SimpleNamespace(target=target.__new__(target)),
    )
    built = replace(recorded_at("m", 1, 1).record, fingerprint="new")
    return self_check._is_due(plan, built)


def test_the_first_build_of_groups_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_due(Groups)
    assert is_due(Groups, "old", "older")
    assert not is_due(Groups, "old", "new")
    # Rows are built from the text as it is.
    assert not is_due(Rows)
    monkeypatch.setattr(self_check, "FIRST", 0)
    assert not is_due(Groups)


def test_refreshes_without_rows_are_compared_as_often_as_others() -> None:
    rebuilt = replace(recorded_at("m", 1, 1).record, action="FULL")
    followed = replace(rebuilt, action="INCREMENTAL", refresh_number=2)
    nothing_left = replace(rebuilt, action="NO_DATA", has_empty_delta=True, refresh_number=3)
    moved = replace(rebuilt, action="NO_DATA", refresh_number=4)

    def is_due(record: Record, *before: Record) -> bool:
        newest, *older = (SimpleNamespace(record=one) for one in before)
        stored = SimpleNamespace(tail=SimpleNamespace(newest=newest, older=older))
        plan: Any = SimpleNamespace(stored=stored, maintenance=None)
        return self_check._is_due(plan, record)

    assert is_due(nothing_left, rebuilt)
    assert is_due(nothing_left, moved, followed, rebuilt)
    assert not is_due(nothing_left, nothing_left, followed, rebuilt)
    assert not is_due(followed, nothing_left, nothing_left, rebuilt)
    # The rebuild itself is no longer in sight.
    assert not is_due(followed, moved, nothing_left)
    assert is_due(replace(nothing_left, refresh_number=self_check.EVERY), moved)
