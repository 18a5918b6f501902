"""Target lags that mean nothing are refused by a real `dbt parse`, all in one message."""

from pathlib import Path

from dbt.cli.main import dbtRunner

PROJECT = (
    "{name: shop, version: 1.0.0, profile: shop, flags: {send_anonymous_usage_stats: false}}\n"
)
PROFILE = "shop: {target: dev, outputs: {dev: {type: spark_dynamic, schema: shop}}}\n"
BAD = {"bare": "'5'", "negative": "'-1 minutes'", "word": "'soon'", "number": "5"}
GOOD = {"short": "'90 seconds'", "long": "'1 day'", "handed_on": "'downstream'"}


def test_all_bad_lags_are_told_when_dbt_parses_the_project(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text(PROJECT)
    (tmp_path / "profiles.yml").write_text(PROFILE)
    (tmp_path / "models").mkdir()
    for name, lag in (BAD | GOOD).items():
        text = f"{{{{ config(materialized='dynamic_table', target_lag={lag}) }}}} select 1 as id"
        (tmp_path / "models" / f"{name}.sql").write_text(text)
    places = [f"--project-dir={tmp_path}", f"--profiles-dir={tmp_path}", f"--log-path={tmp_path}"]
    found = dbtRunner().invoke(["--log-level=none", "parse", *places])
    assert not found.success
    message = str(found.exception)
    for name, lag in BAD.items():
        _, told = message.split(f"model.shop.{name} (models/{name}.sql)\n")
        problem = told.splitlines()[0].strip()
        assert problem.startswith(f"- Invalid value for `target_lag`: {lag}. Expected ")
        assert "5 minutes" in problem and "downstream" in problem
    assert not any(name in message for name in GOOD)
