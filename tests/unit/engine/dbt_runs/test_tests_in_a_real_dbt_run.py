"""What generic tests and the environment tell a real dbt, with a fake Spark below it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner
from fake_shop import Shop
from real_dbt import shop_below_dbt, write_project

pytestmark = pytest.mark.thorough

SQL = "select customer, sum(amount) as total from shop.orders group by 1"
WEEK = "{{ config(materialized='dynamic_table', target_lag='7 days') }}\n" + SQL
ARCHIVED = WEEK.replace("target_lag", "alias='totals', schema='archive', target_lag")
TESTS = """
models:
  - {name: totals, data_tests: [within_target_lag]}
  - {name: archived, data_tests: [within_target_lag]}
"""


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with shop_below_dbt(monkeypatch) as made:
        yield made


def invoke(folder: Path, *arguments: str) -> tuple[Any, list[str]]:
    """Run dbt; return its results and the names of its events."""
    events: list[str] = []
    found = dbtRunner(callbacks=[lambda event: events.append(event.info.name)]).invoke(
        ["--log-level=none", f"--log-path={folder}", *arguments]
        + [f"--project-dir={folder}", f"--profiles-dir={folder}"]
    )
    assert found.exception is None, str(found.exception)
    return found.result, events


def test_a_generic_test_asks_about_its_own_table(shop: Shop, tmp_path: Path) -> None:
    # The one whose name comes first among the nodes has the same alias in another schema.
    write_project(tmp_path, {"archived": ARCHIVED, "totals": WEEK}, {})
    (tmp_path / "models" / "tests.yml").write_text(TESTS)
    found, _ = invoke(tmp_path, "compile", "--select", "test_type:generic")
    texts = {result.node.name: result.node.compiled_code for result in found}
    assert "shop.totals is not built yet" in texts["within_target_lag_totals_"]
    assert "shop_archive.totals is not built yet" in texts["within_target_lag_archived_"]


def test_the_environment_makes_dbt_parse_nothing_again(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path, {"totals": WEEK}, {})

    def run() -> tuple[str, bool]:
        [result], events = invoke(tmp_path, "run")
        is_parsed = "PartialParsingSkipParsing" not in events
        # dbt says so if it cannot use what it has parsed before.
        assert is_parsed == ("UnableToPartialParse" in events)
        return result.adapter_response["refresh_action"], is_parsed

    assert run() == ("FULL", True)
    assert run() == ("NOT_DUE", False)
    monkeypatch.setenv("SPARK_DYNAMIC_REFRESH", "all")
    assert run() == ("NO_DATA", False)
