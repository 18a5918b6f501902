"""What a run is asked for: `refresh` in the environment and among dbt's variables."""

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.config.project import VarProvider
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.spark_dynamic.asked import is_forced


def adapter(project: dict[str, Any], command_line: dict[str, Any] | None = None) -> Any:
    """An adapter of the project my_shop, with these variables."""
    return SimpleNamespace(
        config=SimpleNamespace(
            project_name="my_shop", vars=VarProvider(project), cli_vars=command_line or {}
        )
    )


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_DYNAMIC_REFRESH", raising=False)


@pytest.mark.parametrize(
    ("project", "command_line", "expected"),
    [
        ({}, {}, False),
        ({"refresh": "all"}, {}, True),
        ({"refresh": " ALL "}, {}, True),
        ({"refresh": None}, {}, False),
        ({"my_shop": {"refresh": "all"}}, {}, True),
        # As dbt does it, the nearest counts.
        ({"refresh": "all", "my_shop": {"refresh": "due"}}, {}, False),
        ({"refresh": "due", "my_shop": {"refresh": "all"}}, {}, True),
        ({"my_shop": {"refresh": "all"}}, {"refresh": "due"}, False),
        ({"a_package": {"refresh": "all"}}, {}, False),
        ({"my_shop": "a variable of the same name"}, {}, False),
    ],
)
def test_a_variable_refreshes_all(
    project: dict[str, Any], command_line: dict[str, Any], expected: bool
) -> None:
    assert is_forced(adapter(project, command_line)) is expected


@pytest.mark.parametrize("word", ["everything", "none", True])
@pytest.mark.parametrize("place", ["project", "scope", "command line"])
def test_another_word_is_refused(word: Any, place: str) -> None:
    given = {"refresh": word}
    project = {"project": given, "scope": {"my_shop": given}}.get(place, {})
    with pytest.raises(DbtRuntimeError) as error:
        is_forced(adapter(project, given if place == "command line" else None))
    assert str(error.value.msg) == (
        f"REFRESH_INVALID: Invalid value for the variable `refresh`: '{str(word).lower()}'. "
        "Expected 'all' to refresh everything that is selected, or 'due'."
    )


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_DYNAMIC_REFRESH", "due")
    assert not is_forced(adapter({"refresh": "all"}))
    monkeypatch.setenv("SPARK_DYNAMIC_REFRESH", "All")
    assert is_forced(adapter({"refresh": "due"}))
    monkeypatch.setenv("SPARK_DYNAMIC_REFRESH", "some")
    with pytest.raises(DbtRuntimeError, match="the environment variable SPARK_DYNAMIC_REFRESH"):
        is_forced(adapter({}))
