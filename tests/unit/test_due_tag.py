"""What happens to target lags when dbt has parsed a project: real dbt commands, without Spark."""

from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner

from dbt.adapters.spark_dynamic.due_tag import names_due
from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter

PROJECT = """
name: shop
version: 1.0.0
config-version: 2
profile: shop
flags: {send_anonymous_usage_stats: false}
"""
PROFILE = "shop: {target: dev, outputs: {dev: {type: spark_dynamic, schema: shop}}}\n"
SELECTORS = """
selectors:
  - name: by_text
    definition: "+tag:due"
  - name: by_method
    definition: {method: tag, value: due, parents: true}
  - name: by_key
    definition: {tag: due}
  - name: by_union
    definition: {union: [{method: tag, value: due}, {method: fqn, value: slow}]}
  - name: by_another
    definition: {method: selector, value: by_key}
"""
MODELS = {
    "slow": "{{ config(materialized='dynamic_table', target_lag='1 hour') }} select 1 as a",
    "between": "{{ config(materialized='view') }} select * from {{ ref('slow') }}",
    "quick": "{{ config(materialized='dynamic_table', target_lag='5 minutes') }} "
    "select * from {{ ref('between') }}",
    "unread": "{{ config(materialized='dynamic_table', target_lag='downstream') }} select 1 as a",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("shop")
    (tmp_path / "selectors.yml").write_text(SELECTORS)
    (tmp_path / "dbt_project.yml").write_text(PROJECT)
    (tmp_path / "profiles.yml").write_text(PROFILE)
    (tmp_path / "models").mkdir()
    for name, text in MODELS.items():
        (tmp_path / "models" / f"{name}.sql").write_text(text)
    return tmp_path


def dbt(folder: Path, *arguments: str) -> tuple[Any, list[str]]:
    """Run a command; return its result and the warnings."""
    warnings: list[str] = []

    def note(event: Any) -> None:
        if event.info.level == "warn":
            warnings.append(event.info.msg)

    places = [f"--project-dir={folder}", f"--profiles-dir={folder}"]
    options = ["--log-level=none", f"--log-path={folder}"]
    found = dbtRunner(callbacks=[note]).invoke([*options, *arguments, *places])
    assert found.success, str(found.exception)
    return found.result, warnings


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Note whether the warehouse is asked; it would say that one model is due."""
    found: list[bool] = []

    def due(adapter: Any, manifest: Any) -> list[str]:
        found.append(True)
        return ["model.shop.quick"]

    monkeypatch.setattr(SparkDynamicAdapter, "due_models", due)
    return found


def test_lags_that_cannot_be_kept_are_warned_of(folder: Path, asked: list[bool]) -> None:
    _, warnings = dbt(folder, "parse")
    assert not asked
    slower, unread = sorted(w for w in warnings if "target_lag" in w)
    assert "shop.quick has target_lag 5m, but reads shop.slow" in slower
    assert "shop.unread has target_lag 'downstream', but no dynamic table" in unread


def test_what_is_due_can_be_selected_and_the_tag_is_not_kept(
    folder: Path, asked: list[bool]
) -> None:
    found, _ = dbt(folder, "ls", "--select", "+tag:due", "--exclude", "config.materialized:view")
    assert sorted(found) == ["shop.quick", "shop.slow"]
    assert asked.pop()
    found, _ = dbt(folder, "ls", "--output", "json", "--output-keys", "tags", "--select", "quick")
    assert found == ['{"tags": []}']
    assert not asked


@pytest.mark.parametrize("selector", ["by_text", "by_method", "by_key", "by_union", "by_another"])
def test_a_selector_may_name_it(folder: Path, asked: list[bool], selector: str) -> None:
    found, _ = dbt(folder, "ls", "--selector", selector)
    assert "shop.quick" in found and "shop.unread" not in found
    assert asked


@pytest.mark.parametrize("text", ["tag:due", "tag:d*", "a,tag:due", "1+tag:due+2", "@tag:due"])
def test_the_tag_is_found_in_a_selection(text: str) -> None:
    assert names_due(["other", text])


@pytest.mark.parametrize("text", ["due", "tag:dues", "tag:overdue", "config.tags:x", "tag:x,due"])
def test_another_selection_does_not_ask_the_warehouse(text: str) -> None:
    assert not names_due([text])
