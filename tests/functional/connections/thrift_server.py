"""A real Spark Thrift server with Delta, for as long as a test needs it."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from tests.conftest import SMALL_AND_MANY

from dbt.adapters.spark_dynamic.embedded import Home
from dbt.adapters.spark_dynamic.files import cache_directory
from dbt.adapters.spark_dynamic.jars import delta_jars
from dbt.adapters.spark_dynamic.java import java_home


@contextmanager
def thrift_server(folder: Path, **chosen: str) -> Iterator[int]:
    """Run a server whose own settings are not what our profiles say; yield its port."""
    home = Home(folder)
    home.prepare()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    settings = {
        **home.settings(),
        **SMALL_AND_MANY,
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "America/Lima",
        **chosen,
    }
    spark = Path(pyspark.__file__).parent
    command = [
        str(spark / "bin" / "spark-submit"),
        "--class=org.apache.spark.sql.hive.thriftserver.HiveThriftServer2",
        # As `--jars`, the server starts but does not find Delta's classes.
        "--driver-class-path=" + os.pathsep.join(str(jar) for jar in delta_jars()),
        *(f"--conf={key}={value}" for key, value in settings.items()),
        "spark-internal",
        *("--hiveconf", f"hive.server2.thrift.port={number}"),
        *("--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"),
    ]
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark),
        "JAVA_HOME": java_home(cache_directory()),
    }
    with home.log.open("wb") as log:
        server = subprocess.Popen(
            command, cwd=home.path, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _wait_until_open(number, server, home.log)
            yield number
        finally:
            server.terminate()
            server.wait(timeout=30)


def _wait_until_open(port: int, server: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(240):
        assert server.poll() is None, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.5)
    raise AssertionError(log.read_text())
