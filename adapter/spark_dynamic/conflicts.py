"""Statements that another run may be running at the same moment."""

from collections.abc import Callable
from typing import Final, TypeVar

from spark_dynamic.errors import WarehouseError

ATTEMPTS: Final = 5
T = TypeVar("T")


def despite_conflicts(do: Callable[[], T], look_again: Callable[[], object] = lambda: None) -> T:
    """Do something that has the same effect when it is done twice, such as describing a table.

    After a conflict, `look_again` lets go of what was known, and it is done once more.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return do()
        except WarehouseError as error:
            if not error.is_conflict:
                raise
        look_again()
    return do()
