"""What the self-check says when the comparison itself gives up."""

from typing import Any

import pytest

from spark_dynamic.errors import EngineError
from spark_dynamic.refresh import self_check


def answer(monkeypatch: pytest.MonkeyPatch, error: EngineError) -> str:
    def give_up(*_: object) -> None:
        raise error

    monkeypatch.setattr(self_check, "_is_due", lambda *_: True)
    monkeypatch.setattr(self_check, "_is_cheap", lambda *_: True)
    monkeypatch.setattr(self_check, "verify", give_up)
    nothing: Any = type("Nothing", (), {"record": None, "request": None})()
    return self_check.what_differs(nothing, nothing, nothing, nothing)


def test_more_differences_than_can_be_read_are_differences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = EngineError("TOO_MANY_DIFFERENCES", "More than 10000 rows differ.")
    assert answer(monkeypatch, error) == "More than 10000 rows differ"


def test_any_other_error_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError):
        answer(monkeypatch, EngineError("HISTORY_LOST", "Gone."))
