"""What the engine's own tests share."""

import pytest

from spark_dynamic.refresh import analyse, upkeep
from spark_dynamic.support import NotIncremental


@pytest.fixture(autouse=True)
def every_change_is_a_rebuild(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every query count as one with a LIMIT.

    The fake Delta answers by SQLite, which has neither hashes nor MERGE; incremental refreshes
    are tested on Spark, in tests/functional/engine.
    """

    def refuse(*_: object) -> None:
        raise NotIncremental("LIMIT", "")

    monkeypatch.setattr(upkeep, "maintain", refuse)
    monkeypatch.setattr(analyse, "_misread", lambda *_: "")
