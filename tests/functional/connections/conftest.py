"""A dbt project for each test, and a Java that only notes that it was called."""

from pathlib import Path

import pytest
from tests.functional.connections.processes import DbtProject


@pytest.fixture
def shop(tmp_path: Path) -> DbtProject:
    return DbtProject.new(tmp_path / "shop")


@pytest.fixture
def old_java(tmp_path: Path) -> Path:
    """A JAVA_HOME with version 11, which writes down each call beside itself."""
    java = tmp_path / "old_java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        '#!/bin/sh\necho "$@" >> "$0.calls"\necho \'openjdk version "11.0.2" 2019-01-15\' >&2\n'
    )
    java.chmod(0o755)
    return java.parents[1]
