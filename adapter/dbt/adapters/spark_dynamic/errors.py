"""Errors that people see. The first line of each is `CODE: sentence`."""

from collections.abc import Iterator
from contextlib import contextmanager

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from spark_dynamic.errors import EngineError, WarehouseError


class EmbeddedSparkError(DbtRuntimeError):
    """The embedded Spark could not be started or used."""

    @property
    def type(self) -> str:
        """The headline that dbt prints."""
        return "Embedded Spark"


class RefreshError(DbtRuntimeError):
    """A dynamic table could not be refreshed; it still holds what it held before."""

    @property
    def type(self) -> str:
        """The headline that dbt prints."""
        return "Dynamic Table"


class StreamError(DbtRuntimeError):
    """A stream could not be built or consumed; nothing was consumed."""

    @property
    def type(self) -> str:
        """The headline that dbt prints."""
        return "Stream"


class ChangesError(DbtRuntimeError):
    """The changes of a query could not be told."""

    @property
    def type(self) -> str:
        """The headline that dbt prints."""
        return "Changes"


@contextmanager
def reported() -> Iterator[None]:
    """Let dbt show the engine's errors."""
    try:
        yield
    except EngineError as error:
        raise RefreshError(str(error)) from error
    except WarehouseError as error:
        raise DbtDatabaseError(error.report) from error
