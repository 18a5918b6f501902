"""The class archive: the classes of Spark and Delta in a form that a JVM only has to map.

Much of the time in which an embedded Spark starts goes into finding classes in three hundred
jars, and checking them. An archive (the JVM's class data sharing) spares most of that. It is an
extra, made once by `python -m dbt.adapters.spark_dynamic.class_archive`: without one, or with
one that does not fit its Java and jars, a JVM starts as ever.
"""

import hashlib
import os
import sys
import tempfile
from pathlib import Path

from dbt.adapters.spark_dynamic.embedded import Home
from dbt.adapters.spark_dynamic.files import cache_directory
from dbt.adapters.spark_dynamic.jars import jars_directory, spark_home
from dbt.adapters.spark_dynamic.java import java_home

# What a first build asks of Spark: the classes that these statements load are archived.
_REHEARSAL = [
    "CREATE SCHEMA IF NOT EXISTS trial",
    "CREATE OR REPLACE TABLE trial.a (id BIGINT, name STRING, at DATE, price DECIMAL(10, 2))"
    " USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "INSERT OVERWRITE TABLE trial.a VALUES (CAST(1 AS BIGINT), 'x', DATE'2026-01-01', 1.5)",
    "CREATE OR REPLACE TABLE trial.b USING delta AS SELECT * FROM trial.a WHERE id > 0",
    "UPDATE trial.a SET name = 'y' WHERE id = 1",
    "INSERT INTO trial.a SELECT id + 1, upper(name), at, price FROM trial.b",
    "DELETE FROM trial.a WHERE id = 2",
    "MERGE INTO trial.b USING trial.a ON a.id = b.id WHEN MATCHED THEN UPDATE SET *"
    " WHEN NOT MATCHED THEN INSERT *",
    "CREATE OR REPLACE VIEW trial.v AS SELECT a.name, count(*) AS n, sum(b.price) AS s"
    " FROM trial.a LEFT JOIN trial.b ON a.id = b.id GROUP BY a.name",
    "SELECT * FROM trial.v EXCEPT ALL SELECT * FROM trial.v",
    "EXPLAIN EXTENDED SELECT * FROM trial.a VERSION AS OF 0",
    "DESCRIBE HISTORY trial.a LIMIT 10",
    "DESCRIBE TABLE EXTENDED trial.v AS JSON",
    "DESCRIBE TABLE EXTENDED trial.a",
    "SHOW TABLE EXTENDED IN trial LIKE '*'",
]


def archive_option(java: str) -> str:
    """Return the option that makes a JVM of this Java use the archive, if there is one."""
    archive = _archive(java)
    return f"-XX:SharedArchiveFile={archive}" if archive.is_file() else ""


def _archive(java: str) -> Path:
    # It holds for one environment, whose paths it names, and goes when that goes.
    release = Path(java) / "release"
    text = release.read_text() if release.is_file() else ""
    named = f"{java}\n{text}\n{spark_home()}\n{jars_directory()}"
    key = hashlib.sha256(named.encode()).hexdigest()[:12]
    return Path(sys.prefix) / "share" / "dbt-spark-dynamic" / f"classes-{key}.jsa"


def make_archive() -> Path | None:
    """Make the archive, unless it is there; None if this Java cannot."""
    from pyspark import SparkContext

    from dbt.adapters.spark_dynamic.session import root_session

    archive = _archive(java_home(cache_directory()))
    if archive.is_file():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    draft = archive.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory() as folder:
        # By default this compiler has so little room for its code that Spark may fill it.
        small = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
        flags = f"{small} -XX:ArchiveClassesAtExit={draft}"
        session = root_session(Home(Path(folder)), {"spark.driver.extraJavaOptions": flags})
        for statement in _REHEARSAL:
            session.sql(statement).collect()
        gateway = SparkContext._gateway
        session.stop()
        assert gateway is not None
        # The JVM ends with its input, and writes the archive before it does.
        gateway.proc.stdin.close()
        gateway.proc.wait()
    if not draft.is_file():
        return None
    return draft.replace(archive)


if __name__ == "__main__":
    print(make_archive() or "This Java makes no class archive.")
