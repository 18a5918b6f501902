"""Which class archive a JVM is given."""

import sys
from pathlib import Path

import pytest

from dbt.adapters.spark_dynamic import class_archive
from dbt.adapters.spark_dynamic.class_archive import archive_option


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    (tmp_path / "java").mkdir()
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.15"')
    return tmp_path / "java"


def test_without_an_archive_the_jvm_gets_no_option(java: Path) -> None:
    assert archive_option(str(java)) == ""


def test_an_archive_is_used_by_the_java_and_the_jars_that_it_was_made_for(
    java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = class_archive._archive(str(java))
    assert archive.is_relative_to(java.parent / "environment")
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert archive_option(str(java)) == f"-XX:SharedArchiveFile={archive}"

    (java / "release").write_text('JAVA_VERSION="17.0.16"')
    assert archive_option(str(java)) == ""
    (java / "release").write_text('JAVA_VERSION="17.0.15"')
    monkeypatch.setattr(class_archive, "jars_directory", lambda: Path("/other/jars"))
    assert archive_option(str(java)) == ""
