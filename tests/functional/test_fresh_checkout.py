"""State lives in the warehouse: a clone on another machine goes on where the last run ended."""

import shutil
from pathlib import Path

import pytest
from dbt.cli.main import dbtRunner
from tests.conftest import SMALL_AND_MANY

REPOSITORY = Path(__file__).parents[2]
PROFILE = """
shop:
  target: ci
  outputs:
    ci:
      type: spark_dynamic
      schema: "{{ env_var('SHOP_SCHEMA') }}"
      threads: 2
      server_side_parameters: %s
"""


def check_out(directory: Path) -> Path:
    """Copy the shop without anything that a run leaves behind."""
    ignored = shutil.ignore_patterns("target", "logs", "dbt_packages", ".spark_dynamic", "*.lock")
    project = directory / "integration_tests"
    shutil.copytree(REPOSITORY / "integration_tests", project, ignore=ignored)
    (project / "packages.yml").write_text(f"packages:\n  - local: {REPOSITORY}\n")
    (project / "profiles.yml").write_text(PROFILE % SMALL_AND_MANY)
    return project


def build(project: Path, *first: str) -> dict[str, str]:
    """Run deps, some operations and a build; return the action of each dynamic table."""
    where = ["--project-dir", str(project), "--profiles-dir", str(project)]
    for command in (["deps"], *(["run-operation", name] for name in first), ["build"]):
        result = dbtRunner().invoke([*command, *where])
        assert result.success, (command, result.exception)
    return {
        one.node.name: one.adapter_response["refresh_action"]
        for one in result.result
        if "refresh_action" in one.adapter_response
    }


def test_a_second_checkout_finds_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_SCHEMA", "shop")
    first = build(check_out(tmp_path / "one"), "load_payments")
    assert len(first) >= 4 and set(first.values()) == {"FULL"}
    second = build(check_out(tmp_path / "two"))
    assert second == dict.fromkeys(first, "NO_DATA")
