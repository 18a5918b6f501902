"""Positions of streams: written down, compared, shown."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from spark_dynamic.changes.read import Position
from spark_dynamic.frontier.record import Pin, read_pin, write_pin


def write_position(position: Position) -> list[dict[str, Any]]:
    """Return a position as JSON holds it, in a fixed order."""
    return [write_pin(position[table]) for table in sorted(position, key=str)]


def read_position(body: Iterable[dict[str, Any]]) -> Position:
    """Read what `write_position` wrote."""
    pins = (read_pin(pin) for pin in body)
    return {pin.table: pin for pin in pins}


def is_behind(one: Position, other: Position) -> bool:
    """Tell whether a position is older than another in any table."""
    shared = one.keys() & other.keys()
    if any(one[table].version < other[table].version for table in shared):
        return True
    # A dynamic table that was built anew has another storage, whose versions begin again.
    newest, known = (
        _newest(pin for table, pin in position.items() if table not in shared)
        for position in (one, other)
    )
    return newest is not None and known is not None and newest < known


def _newest(pins: Iterable[Pin]) -> datetime | None:
    return max((pin.committed_at for pin in pins), default=None)


def shown_position(position: Position) -> str:
    """Write a position for people.

    >>> from spark_dynamic.clock import EPOCH
    >>> from spark_dynamic.names import TableName
    >>> table = TableName("shop", "orders")
    >>> shown_position({table: Pin(table, "/orders", 7, EPOCH)})
    'shop.orders at version 7'
    """
    pins = sorted(position.values(), key=lambda pin: str(pin.table))
    return ", ".join(f"{pin.table} at version {pin.version}" for pin in pins)
