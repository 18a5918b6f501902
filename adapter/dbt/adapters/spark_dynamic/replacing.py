"""Statements that replace a table or a view, which two runs may do at the same moment."""

from collections.abc import Callable
from typing import TypeVar

from dbt.adapters.spark_dynamic.warehouse import translated
from spark_dynamic.conflicts import despite_conflicts
from spark_dynamic.errors import WarehouseError

T = TypeVar("T")


def replacing(run: Callable[[], T]) -> T:
    """Run a statement; another run that replaces the same relation is no reason to fail."""

    def run_once() -> T:
        with translated():
            return run()

    try:
        return despite_conflicts(run_once)
    except WarehouseError as error:
        # What dbt itself raised has the statement in it.
        raise error.__cause__ or error from error.__cause__
