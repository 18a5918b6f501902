"""The settings of the one commit: its record, and a number that lets it land only once."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from spark_dynamic.settings import holding, set_statement
from spark_dynamic.warehouse import Warehouse

_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_APP = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"
# A profile with dynamic overwrites would leave vanished partitions behind.
_OVERWRITE = "spark.sql.sources.partitionOverwriteMode"


@contextmanager
def carrying(
    warehouse: Warehouse,
    metadata: str,
    transaction: tuple[str, int] | None = None,
    *,
    appends: bool = False,
) -> Iterator[None]:
    """Make the one commit of the block carry metadata and, if given, a transaction number.

    `transaction` is the application id and version: Delta skips a write whose number it has
    already seen, and lets two writers with one id conflict. A block that only `appends` does not
    mind how overwrites work.
    """
    settings = {_METADATA: metadata}
    if transaction:
        settings |= {_APP: transaction[0], _VERSION: str(transaction[1])}
    with nullcontext() if appends else static_overwrite(warehouse):
        try:
            for key, value in settings.items():
                warehouse.execute(set_statement(key, value))
            yield
        finally:
            _reset(warehouse, list(settings))


def _reset(warehouse: Warehouse, keys: list[str]) -> None:
    """Reset every setting, also if one fails: none may reach another commit."""
    try:
        warehouse.execute(f"RESET `{keys[0]}`")
    finally:
        if keys[1:]:
            _reset(warehouse, keys[1:])


@contextmanager
def static_overwrite(warehouse: Warehouse) -> Iterator[None]:
    """Make an overwrite in the block replace the whole table, whatever the profile says."""
    with holding(warehouse, {_OVERWRITE: "STATIC"}):
        yield
