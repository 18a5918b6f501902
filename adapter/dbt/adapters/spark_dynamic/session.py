"""Spark sessions inside the dbt process: one JVM, one session for each dbt connection."""

import logging
import os
import threading
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, cast

from dbt.adapters.events.logging import AdapterLogger
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt.adapters.spark_dynamic.class_archive import archive_option
from dbt.adapters.spark_dynamic.embedded import Home, launch_settings, uses_own_metastore
from dbt.adapters.spark_dynamic.errors import EmbeddedSparkError
from dbt.adapters.spark_dynamic.files import cache_directory, claim
from dbt.adapters.spark_dynamic.java import java_home

logger = AdapterLogger("Spark")

_start = threading.Lock()
# Milliseconds.
_SHORTLY = 200
# The metastores of this process; the lock lasts as long as the file is open.
_claims: dict[Path, IO[str]] = {}


def root_session(home: Home, chosen: dict[str, str]) -> SparkSession:
    """Return the process's Spark session, starting the JVM if there is none yet.

    A session that the process already has (a notebook, a test) is used as it is.
    """
    with _start:
        running = SparkSession.getActiveSession() or SparkSession._instantiatedSession
        if running is not None and running.sparkContext._jsc is not None:
            return running
        return _start_jvm(home, chosen)


def session_for_connection(home: Home, chosen: dict[str, str]) -> SparkSession:
    """Return a session of its own: settings and temporary views reach no other connection."""
    session = root_session(home, chosen).newSession()
    for key, value in chosen.items():
        try:
            session.conf.set(key, value)
        except AnalysisException as error:
            # What a running JVM cannot change was given to it when it started.
            if "CANNOT_MODIFY" not in str(error.getCondition()):
                raise
    return session


def jobs_of(session: SparkSession) -> int:
    """Return how many jobs a session has started, of those that Spark still remembers."""
    context: Any = session.sparkContext._jsc.sc()
    # Spark is told of its own jobs by a queue; a busy one is not waited for.
    with suppress(Py4JJavaError):
        context.listenerBus().waitUntilEmpty(_SHORTLY)
    session_tag = cast(Any, session)._jsparkSession.sessionJobTag()
    return len(context.statusTracker().getJobIdsForTag(session_tag))


def _start_jvm(home: Home, chosen: dict[str, str]) -> SparkSession:
    # Spark's Python side repeats every failed statement as one long JSON line on the screen.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    java = java_home(cache_directory())
    if uses_own_metastore(chosen):
        _claim_metastore(home)
    home.prepare()
    logger.debug(f"Starting embedded Spark, log: {home.log}")
    with _progress(), home.log.open("ab") as log:
        conf = SparkConf(loadDefaults=False)
        conf.setAll(list(launch_settings(home, chosen, archive_option(java)).items()))
        try:
            return _connect(conf, java, log)
        except Exception as error:
            raise EmbeddedSparkError(
                f"SPARK_NOT_STARTED: The embedded Spark did not start: {error}\n"
                f"Spark log: {home.log}"
            ) from error


def _connect(conf: SparkConf, java: str, log: IO[bytes]) -> SparkSession:
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = java
    try:
        # Started by hand, because only so the JVM's own output goes to the log.
        launch: Any = java_gateway.launch_gateway
        gateway = launch(conf, popen_kwargs={"stdout": log, "stderr": log})
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)
    return SparkSession.builder.config(conf=conf).getOrCreate()


def _claim_metastore(home: Home) -> None:
    if home.lock in _claims:
        return
    home.path.mkdir(parents=True, exist_ok=True)
    held = claim(home.lock)
    if held is None:
        owner = home.lock.read_text() or "unknown"
        raise EmbeddedSparkError(
            f"METASTORE_IN_USE: Another process (pid {owner}) is using the embedded Spark at "
            f"{home.path}, and it serves one process at a time. Wait for it to end, give this "
            "one another `home` in the profile, or connect both to a Spark server "
            "(`method: thrift`)."
        )
    _claims[home.lock] = held


def _progress() -> AbstractContextManager[Any]:
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        return nullcontext()
    return console.status("Starting Spark (the first time, the Delta jars are fetched too) …")
