"""The sources: TPC-H tables as Delta tables with a change feed, made once and kept."""

import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

TABLES = ("nation", "customer", "orders", "lineitem")
SCHEMA = "tpch"


def generate(scale: float, home: Path) -> Path:
    """Generate the tables as Parquet files, unless they are there."""
    data = home / f"parquet_{scale:g}"
    if not (data / "complete").exists():
        shutil.rmtree(data, ignore_errors=True)
        program = Path(sys.executable).with_name("tpchgen-cli")
        tables = ",".join(TABLES)
        command = [program, "parquet", "-s", f"{scale:g}", "--tables", tables]
        subprocess.run([*command, "--output-dir", data], check=True)
        (data / "complete").touch()
    return data


def load(spark: SparkSession, data: Path) -> None:
    """Make the Delta tables anew."""
    spark.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    for table in TABLES:
        spark.sql(
            f"CREATE TABLE {SCHEMA}.{table} USING delta TBLPROPERTIES ("
            "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true') "
            f"AS SELECT * FROM parquet.`{data}/{table}.parquet`"
        )


def versions(spark: SparkSession) -> dict[str, int]:
    """Return the newest version of each table."""
    return {
        table: spark.sql(f"DESCRIBE HISTORY {SCHEMA}.{table} LIMIT 1").head()["version"]
        for table in TABLES
    }
