"""What tests of real dbt runs share: a fake Spark below dbt, and a project folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_shop import Shop
from real_dbt import shop_below_dbt, write_project


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with shop_below_dbt(monkeypatch) as made:
        yield made


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with the MODELS of the test module, and its HOOKS."""
    made = tmp_path_factory.mktemp("shop")
    write_project(made, request.module.MODELS, {"hooks": request.module.HOOKS})
    return made
