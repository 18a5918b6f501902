"""The demo's own parts, without Spark: what it reads from dbt's results and what it prints."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from dbt.adapters.spark_dynamic.demo.__main__ import main
from dbt.adapters.spark_dynamic.demo.equality import Verdict, comparison
from dbt.adapters.spark_dynamic.demo.refreshes import passed_tests, refreshes
from dbt.adapters.spark_dynamic.demo.screen import Screen
from dbt.adapters.spark_dynamic.demo.tour import DemoFailed, Tour
from dbt.adapters.spark_dynamic.embedded import Home
from dbt.adapters.spark_dynamic.files import claim

RESPONSE = {
    "refresh_action": "FULL",
    "rows_inserted": 12,
    "rows_deleted": 3,
    "data_timestamp": "2026-03-07T10:15:30.123456Z",
    "reason_code": "INITIAL_BUILD",
    "reason": "INITIAL_BUILD: The table did not exist.",
}


def result(resource_type: str = "model", status: str = "success", **response: Any) -> Any:
    node = SimpleNamespace(
        name="t",
        relation_name="shop.t",
        resource_type=resource_type,
        compiled_code="select 1 as one",
        config=SimpleNamespace(materialized="dynamic_table"),
    )
    return SimpleNamespace(node=node, status=status, adapter_response=response, execution_time=1.5)


def test_a_refresh_is_read_from_the_adapter_response() -> None:
    (one,) = refreshes([result(**RESPONSE), result(resource_type="test", status="pass")])
    assert (one.action, one.rows, one.data_timestamp) == ("FULL", "+12 -3", "2026-03-07 10:15:30")
    assert one.is_dynamic and one.ok and one.reason.startswith("INITIAL_BUILD")


def test_a_failed_model_shows_its_status_as_action() -> None:
    assert [one.action for one in refreshes([result(status="error")])] == ["ERROR"]


def test_only_passed_tests_are_counted() -> None:
    assert passed_tests([result(status="pass"), result(status="fail"), result()]) == 1


def test_the_report_has_a_line_for_each_refresh_and_each_reason_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Screen().refreshes(refreshes([result(**RESPONSE), result(**RESPONSE)]))
    shown = capsys.readouterr().out
    cells = ["t", "FULL", "+12", "-3", "1.5", "2026-03-07", "10:15:30", "INITIAL_BUILD"]
    assert [line.split() for line in shown.splitlines()].count(cells) == 2
    assert shown.count("INITIAL_BUILD: The table did not exist.") == 1


def test_a_difference_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().verdicts([Verdict("same", 5, 0), Verdict("other", 5, 2)])
    shown = capsys.readouterr().out
    assert [line.split() for line in shown.splitlines() if "same" in line] == [["same", "5", "✓"]]
    assert "✗ 2 rows differ" in shown


def test_the_comparison_survives_a_query_that_ends_in_a_comment() -> None:
    node = result(**RESPONSE)
    node.node.compiled_code = "select 1 as one -- the end"
    (table,) = refreshes([node])
    assert "-- the end\n)" in comparison(table)


def test_a_failure_shows_all_complaints_and_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().failure("dbt run failed.", ["one [x]", "two"], Path("/log"))
    shown = capsys.readouterr().out
    assert "one [x]" in shown and "two" in shown and "Spark log: /log" in shown


def test_a_directory_without_a_project_is_refused(tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["--project-dir", str(tmp_path)])
    assert refused.exit_code == 2 and "No dbt project in" in refused.output


def test_a_warehouse_in_use_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_DYNAMIC_HOME", str(tmp_path / "home"))
    home = Home.at(None)
    home.path.mkdir()
    held = claim(home.lock)
    assert held is not None
    with held, pytest.raises(DemoFailed, match="Another process"):
        Tour(tmp_path, Screen()).clear()
    assert home.path.is_dir()
    Tour(tmp_path, Screen()).clear()
    assert not home.path.exists()
