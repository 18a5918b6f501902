"""The embedded Spark: what a session needs when the profile says nothing about it."""

import os
from dataclasses import dataclass
from pathlib import Path

from dbt.adapters.spark_dynamic.jars import delta_jars

_LOG4J = """status = error
appenders = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n%ex
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

# Each of these may be overridden in the profile.
_SMALL_MACHINE = {
    "spark.master": "local[*]",
    "spark.app.name": "dbt-spark-dynamic",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Otherwise VACUUM lists even the smallest table in thousands of tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # A replaced Delta table with other column types is legal; Hive would log a long complaint.
    "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
}


@dataclass(frozen=True)
class Home:
    """The directory of an embedded Spark: warehouse, metastore and logs."""

    path: Path

    @classmethod
    def at(cls, chosen: str | None) -> "Home":
        """Use the profile's `home`, else `SPARK_DYNAMIC_HOME`, else the project's own folder."""
        path = Path(chosen or os.environ.get("SPARK_DYNAMIC_HOME") or ".spark_dynamic")
        return cls(path.expanduser().resolve())

    @property
    def log(self) -> Path:
        """Everything that Spark and its JVM print."""
        return self.path / "logs" / "spark.log"

    @property
    def lock(self) -> Path:
        """Held by the one process that may open the embedded metastore."""
        return self.path / "in_use_by.pid"

    def prepare(self) -> None:
        """Make the directory, hidden from git, with the log settings in it."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        (self.path / ".gitignore").write_text("*\n")
        self._log4j.write_text(_LOG4J)
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".log.1"))

    @property
    def _log4j(self) -> Path:
        return self.path / "log4j2.properties"

    def settings(self) -> dict[str, str]:
        """Spark settings that keep everything inside this directory."""
        java_options = f"-Dderby.system.home={self.path} -Dlog4j2.configurationFile={self._log4j}"
        database = self.path / "metastore_db"
        return {
            "spark.sql.warehouse.dir": str(self.path / "warehouse"),
            "spark.hadoop.javax.jdo.option.ConnectionURL": (
                f"jdbc:derby:;databaseName={database};create=true"
            ),
            _JAVA_OPTIONS: java_options,
        }


def launch_settings(home: Home, chosen: dict[str, str], archive: str = "") -> dict[str, str]:
    """All settings the JVM is started with; what the user chose wins."""
    settings = {**_SMALL_MACHINE, **home.settings()}
    if not {"spark.jars", "spark.jars.packages"} & chosen.keys():
        jars = [str(jar) for jar in delta_jars()]
        settings["spark.jars"] = ",".join(jars)
        # Only classes that the JVM finds there by itself can come out of a class archive.
        settings["spark.driver.extraClassPath"] = os.pathsep.join(jars)
    java_options = (settings[_JAVA_OPTIONS], archive, chosen.get(_JAVA_OPTIONS, ""))
    settings.update(chosen)
    settings[_JAVA_OPTIONS] = " ".join(option for option in java_options if option)
    return settings


def uses_own_metastore(chosen: dict[str, str]) -> bool:
    """Tell whether the metastore is the embedded Derby, which only one process may open."""
    own = {
        "spark.hadoop.javax.jdo.option.ConnectionURL",
        "spark.hadoop.hive.metastore.uris",
        "spark.hive.metastore.uris",
        "spark.sql.catalogImplementation",
    }
    return not own & chosen.keys()
