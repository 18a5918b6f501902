"""The wheel holds everything that the adapter needs at run time, and works where it is put."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.functional.connections.processes import DbtProject

REPOSITORY = Path(__file__).parents[2]
INSTALLED_HERE = """
import dbt_spark_dynamic, spark_dynamic
from dbt.adapters import spark_dynamic as adapter
from dbt.include import spark_dynamic as macros
for module in (adapter, spark_dynamic, dbt_spark_dynamic, macros):
    path = module.__file__ or module.__path__[0]
    assert path.startswith({folder!r}), path
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder)]
    subprocess.run([*command, str(REPOSITORY)], check=True, capture_output=True)
    [wheel] = folder.glob("dbt_spark_dynamic-*.whl")
    return wheel


def test_a_project_is_parsed_by_what_the_wheel_installs(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "installed"
    options = ["--no-deps", "--no-index", "--quiet", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True)
    shop = DbtProject.new(tmp_path / "shop")
    shop.environment["PYTHONPATH"] = str(folder)
    shop.write("models/plain.sql", "{{ config(materialized='table') }} select 1 as a")
    shop.write(
        "models/kept.sql",
        "{{ config(materialized='dynamic_table') }} select * from {{ ref('plain') }}",
    )
    shop.write("models/kept.yml", "models: [{name: kept, data_tests: [equals_full_refresh]}]")
    run = shop.dbt_in_one_process(["parse"], first=INSTALLED_HERE.format(folder=str(folder)))
    assert run.code == 0, run.screen + run.errors


def test_the_wheel_has_adapter_engine_plugin_and_macros(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    macros = {path.relative_to(REPOSITORY) for path in (REPOSITORY / "macros").rglob("*.sql")}
    assert macros
    for macro in macros:
        assert f"dbt/include/spark_dynamic/{macro.as_posix()}" in packed
    assert {
        "dbt/adapters/spark_dynamic/impl.py",
        "spark_dynamic/refresh/plan.py",
        "dbt_spark_dynamic/__init__.py",
        "dbt/include/spark_dynamic/dbt_project.yml",
    } <= packed
    assert not [name for name in packed if name.startswith("tests") or "/demo/tests" in name]
    # dbt's own packages are shared by all adapters: a file of ours there would hide theirs.
    assert "dbt/__init__.py" not in packed and "dbt/adapters/__init__.py" not in packed
