"""The Delta jars: fetched once into the user's cache, then passed to every session.

Letting Spark resolve the package on each start would print a report of ninety lines and need
the network every time, so the resolution happens here, once.
"""

import os
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from dbt.adapters.spark_dynamic.errors import EmbeddedSparkError
from dbt.adapters.spark_dynamic.files import cache_directory, exclusive
from dbt.adapters.spark_dynamic.java import java_home

DELTA_VERSION = "4.4.0"
PACKAGE = f"io.delta:delta-spark_4.2_2.13:{DELTA_VERSION}"

# What Delta asks for and Spark already ships, in versions that fit Spark.
_SHIPPED_WITH_SPARK = (
    "com.fasterxml.jackson.core:*",
    "com.github.luben:*",
    "com.google.code.findbugs:*",
    "commons-logging:*",
    "commons-pool:*",
    "io.airlift:*",
    "javax.annotation:*",
    "org.apache.hadoop:*",
    "org.apache.logging.log4j:*",
    "org.apache.parquet:*",
    "org.locationtech.jts:*",
    "org.slf4j:*",
    "org.xerial.snappy:*",
)


def jars_directory() -> Path:
    """Return where the jars are, or will be."""
    return cache_directory() / f"delta-{DELTA_VERSION}-spark-{version('pyspark')}"


def delta_jars() -> list[Path]:
    """Return the jars that a session with Delta needs, fetching them on the first call."""
    home = jars_directory()
    if not home.is_dir():
        with exclusive(home.with_name("jars.lock")):
            # Another process may have fetched them while this one waited for the lock.
            if not home.is_dir():
                _fetch(home)
    return sorted(home.glob("*.jar"))


def _fetch(home: Path) -> None:
    draft = Path(tempfile.mkdtemp(prefix="fetch-", dir=home.parent))
    try:
        run = subprocess.run(
            _command(draft), capture_output=True, text=True, env=_environment(home.parent)
        )
        fetched = list((draft / "jars").glob("*.jar"))
        if run.returncode != 0 or not any("delta-spark" in jar.name for jar in fetched):
            log = home.parent / "fetch.log"
            log.write_text(run.stdout + run.stderr)
            raise EmbeddedSparkError(
                f"JARS_MISSING: The Delta jars ({PACKAGE}) could not be fetched. Check the "
                "network, or put them on this machine and name them in the profile: "
                f"`server_side_parameters: {{spark.jars: …}}`. Details: {log}"
            )
        (draft / "jars").rename(home)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _command(draft: Path) -> list[str]:
    """Make Spark resolve the package and then run the smallest main class it has."""
    return [
        str(spark_home() / "bin" / "spark-submit"),
        "--packages",
        PACKAGE,
        "--exclude-packages",
        ",".join(_SHIPPED_WITH_SPARK),
        "--conf",
        f"spark.jars.ivy={draft}",
        "--class",
        "org.apache.hadoop.util.VersionInfo",
        "spark-internal",
    ]


def _environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "SPARK_HOME": str(spark_home()), "JAVA_HOME": java_home(cache)}


def spark_home() -> Path:
    """Return the directory of the Spark that pyspark brings."""
    # Found without importing pyspark, which would slow down every `dbt parse`.
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


if __name__ == "__main__":
    for jar in delta_jars():
        print(jar)
