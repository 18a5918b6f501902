"""Connections: dbt-spark's, with embedded sessions that are isolated from each other."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.spark.connections import (
    PyhiveConnectionWrapper,
    SparkConnectionManager,
    SparkConnectionMethod,
    SparkConnectionWrapper,
    SparkCredentials,
)
from dbt_common.exceptions import DbtConfigError, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.spark_dynamic.embedded import Home
from dbt.adapters.spark_dynamic.messages import readable
from spark_dynamic.literals import literal
from spark_dynamic.settings import set_statement

if TYPE_CHECKING:
    import agate
    from pyspark.sql import DataFrame, SparkSession

# Settings that change results. They are set on every connection of every method, so that a
# model means the same wherever it runs; Spark's own defaults differ between methods.
RESULT_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
}

_OVER_THRIFT = (SparkConnectionMethod.THRIFT, SparkConnectionMethod.HTTP)

# Delta refuses to read a version whose commit is old, even if all of its files are there. The
# frontier of a table whose sources seldom change names just such versions.
_READ_OLD_VERSIONS = {
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false"
}

# Spark 4.1 began to leave out the shuffle above a UNION ALL whose branches are partitioned alike.
# Where both branches use exchanges again, 4.2 then appends partitions instead of uniting them, and
# a GROUP BY or EXCEPT ALL above sees each branch alone: wrong rows.
_RIGHT_UNIONS = {"spark.sql.unionOutputPartitioning": "false"}

# Read without the files that VACUUM has removed, history would look as if less had happened.
_MISS_FILES = {"spark.sql.files.ignoreMissingFiles": "false"}

# With it, all connections of a Thrift server are one session.
_SINGLE_SESSION = "spark.sql.hive.thriftServer.singleSession"

# Settings with which rows would be wrong without a word, and why.
_REFUSED = {
    "spark.sql.parser.escapedStringLiterals": (
        "changes how texts are written in SQL, which the adapter's own statements do not follow"
    ),
    "spark.sql.files.ignoreMissingFiles": "leaves rows out whose files are gone",
    "spark.sql.files.ignoreCorruptFiles": "leaves rows out whose files cannot be read",
}


@dataclass
class SparkDynamicCredentials(SparkCredentials):
    """The profile. Only `type` and `schema` are needed; the rest describes other Sparks."""

    method: SparkConnectionMethod = SparkConnectionMethod.SESSION
    host: str | None = "localhost"
    # Seconds; 0 lets the waits grow with the statement. dbt-spark's 5 suit only long ones.
    poll_interval: int = 0
    home: str | None = None
    state_schema: str | None = None
    # As YAML reads them, so that `false` and `4` need no quotes.
    server_side_parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chosen = {key: _written(value) for key, value in self.server_side_parameters.items()}
        super().__post_init__()
        for key, why in _REFUSED.items():
            if chosen.get(key, "").lower() == "true":
                raise DbtConfigError(
                    f"SETTING_NOT_SUPPORTED: {key} {why}. Take it out of server_side_parameters."
                )
        # dbt-spark switches ANSI off here whatever the profile says.
        ours = RESULT_SETTINGS | _READ_OLD_VERSIONS | _RIGHT_UNIONS | _MISS_FILES
        self.server_side_parameters = {**ours, **chosen}

    @property
    def type(self) -> str:
        """The adapter's name in profiles."""
        return "spark_dynamic"

    def _connection_keys(self) -> tuple[str, ...]:
        if self.method == SparkConnectionMethod.SESSION:
            return ("method", "schema", "state_schema", "home")
        return (*super()._connection_keys(), "state_schema")


def _written(value: Any) -> str:
    """Return a setting as Spark writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _meant(error: Exception) -> BaseException:
    """Return the error of Delta that pyspark failed to report.

    pyspark looks the message up once more, among Spark's own, where Delta's are not.
    """
    if "Cannot find main error class" in str(error) and error.__context__ is not None:
        return error.__context__
    return error


class SessionHandle(SparkConnectionWrapper):
    """A cursor-like handle on one Spark session, which starts with the first statement."""

    def __init__(self, credentials: SparkDynamicCredentials) -> None:
        self._home = Home.at(credentials.home)
        self._settings = credentials.server_side_parameters
        self._session: SparkSession | None = None
        self._frame: DataFrame | None = None
        self._rows: list[Any] | None = None
        self._busy = self._cancelled = False

    @property
    def session(self) -> "SparkSession":
        """The session of this connection alone."""
        if self._session is None:
            from dbt.adapters.spark_dynamic.session import session_for_connection

            self._session = session_for_connection(self._home, self._settings)
        return self._session

    @property
    def jobs(self) -> int:
        """How many jobs this session has started."""
        if self._session is None:
            return 0
        from dbt.adapters.spark_dynamic.session import jobs_of

        return jobs_of(self._session)

    @property
    def settings(self) -> dict[str, str]:
        """Everything that is set in this session."""
        with self._running():
            return dict(self.session.conf.getAll)

    def cursor(self) -> "SessionHandle":
        """Forget the previous result."""
        self._frame = self._rows = None
        return self

    def cancel(self) -> None:
        """Stop the jobs of this session only, and let no statement follow them."""
        self._cancelled = True
        threading.Thread(target=self._interrupt, daemon=True).start()

    def _interrupt(self) -> None:
        # A statement that is still being planned has no jobs to stop: ask again until it ends.
        while self._busy:
            if (session := self._session) is not None:
                session.interruptAll()
            time.sleep(0.2)

    def close(self) -> None:
        """Let the session go; its temporary views and settings go with it."""
        self._frame = self._rows = self._session = None

    def remove_directory(self, path: str) -> None:
        """Remove a directory with all that is in it; no SQL can do that."""
        session: Any = self.session
        with self._running():
            place = session._jvm.org.apache.hadoop.fs.Path(path)
            place.getFileSystem(session._jsc.hadoopConfiguration()).delete(place, True)

    def rollback(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: Spark has no transactions across statements."""

    def execute(self, sql: str, bindings: list[Any] | None = None) -> None:
        """Run a statement; a query runs when its rows are fetched or `finish` is called."""
        text = sql.strip().removesuffix(";")
        if bindings:
            text = text % tuple(literal(value) for value in bindings)
        with self._running():
            self._frame = self.session.sql(text)

    def fetchall(self) -> list[Any]:
        """Return all rows of the last statement."""
        if self._rows is None:
            with self._running():
                self._rows = self._frame.collect() if self._frame is not None else []
        return self._rows

    def project(self, expressions: list[str]) -> list[dict[str, Any]]:
        """Return expressions over the last result; commands cannot stand in a FROM."""
        assert self._frame is not None
        with self._running():
            return [row.asDict() for row in self._frame.selectExpr(*expressions).collect()]

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        rows = self.fetchall()
        return rows.pop(0) if rows else None

    def finish(self) -> None:
        """Run a query whose rows nobody asked for: its side effects and errors are wanted."""
        frame, self._frame = self._frame, None
        if frame is None or self._rows is not None or not frame.columns or frame.isLocal():
            return
        with self._running():
            frame.write.format("noop").mode("overwrite").save()

    @property
    def description(self) -> Sequence[tuple[str, Any, None, None, None, None, bool]]:
        """Names and types of the last result's columns."""
        fields = self._frame.schema.fields if self._frame is not None else []
        return [
            (f.name, f.dataType.simpleString(), None, None, None, None, f.nullable) for f in fields
        ]

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Mark the time in which there is something to cancel; tell people what went wrong."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        if self._cancelled:
            raise DbtRuntimeError("CANCELLED: The run was cancelled before this statement.")
        self._busy = True
        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            message = f"{readable(str(_meant(error)))}\nSpark log: {self._home.log}"
            raise DbtDatabaseError(message) from error
        finally:
            self._busy = False


class ThriftHandle(PyhiveConnectionWrapper):
    """dbt-spark's handle, which asks more often whether a statement is done."""

    def execute(self, sql: str, bindings: list[Any] | None = None) -> None:
        """Run a statement, waiting shortly at first."""
        self._wait = 0.01
        super().execute(sql, bindings)

    @property  # type: ignore[override]  # dbt-spark knows whole seconds only
    def poll_interval(self) -> float:
        """The next wait in seconds: twice the one before, from 20 ms up to half a second."""
        self._wait = min(self._wait * 2, 0.5)
        return self._wait

    @poll_interval.setter
    def poll_interval(self, chosen: int) -> None:
        """Ignore dbt-spark's default; an interval that the user chose is left to its handle."""


def settings_of(handle: SparkConnectionWrapper) -> dict[str, str]:
    """Return everything that is set in a session; values that look like secrets are hidden."""
    if isinstance(handle, SessionHandle):
        return handle.settings
    cursor = handle.cursor()
    cursor.execute("SET")
    return {row[0]: row[1] for row in cursor.fetchall() or ()}


class SparkDynamicConnectionManager(SparkConnectionManager):
    """Opens connections whose settings are the profile's, on every method."""

    TYPE = "spark_dynamic"
    # Servers that give every connection a session of its own.
    _with_own_sessions: ClassVar[set[tuple[str, int]]] = set()

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Open a session of our own, or dbt-spark's connection with our settings set on it."""
        if connection.state == ConnectionState.OPEN:
            return connection
        credentials = connection.credentials
        assert isinstance(credentials, SparkDynamicCredentials)
        if credentials.method == SparkConnectionMethod.SESSION:
            connection.handle = SessionHandle(credentials)
            connection.state = ConnectionState.OPEN
            return connection
        opened: Connection = super().open(connection)
        if credentials.poll_interval == 0 and credentials.method in _OVER_THRIFT:
            opened.handle = ThriftHandle(
                opened.handle.handle,
                query_timeout=credentials.query_timeout,
                query_retries=credentials.query_retries,
            )
        if credentials.method in _OVER_THRIFT:
            cls._refuse_shared_session(opened)
        # Parameters passed at connect time do not arrive over thrift.
        for key, value in credentials.server_side_parameters.items():
            opened.handle.cursor().execute(set_statement(key, value))
        return opened

    @classmethod
    def _refuse_shared_session(cls, opened: Connection) -> None:
        """Ask a server once per process: it cannot change this setting while it runs."""
        server = str(opened.credentials.unique_field), opened.credentials.port
        if server in cls._with_own_sessions:
            return
        cursor = opened.handle.cursor()
        cursor.execute(f"SET {_SINGLE_SESSION}")
        if str(cursor.fetchall()[0][1]).lower() == "true":
            opened.handle.close()
            # dbt closes what it finds.
            opened.handle, opened.state = None, ConnectionState.FAIL
            raise DbtConfigError(
                f"SESSION_SHARED: The Spark server runs with {_SINGLE_SESSION}=true, so that "
                "models would share temporary views and the settings of each other's commits. "
                "Start it without this setting."
            )
        cls._with_own_sessions.add(server)

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Keep errors that are dbt's already as they are; dbt-spark would wrap them again."""
        try:
            yield
        except DbtDatabaseError as error:
            error.msg = readable(error.msg)
            raise
        except DbtRuntimeError:
            raise
        except Exception:
            with super().exception_handler(sql):
                raise

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, "agate.Table"]:
        """Run a statement to its end, also when nobody fetches its rows."""
        response, table = super().execute(sql, auto_begin, fetch, limit)
        handle = self.get_thread_connection().handle
        if not fetch and isinstance(handle, SessionHandle):
            with self.exception_handler(sql):
                handle.finish()
        return response, table
