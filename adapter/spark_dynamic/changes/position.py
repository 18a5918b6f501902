"""Positions of streams: written down, compared, shown."""

from collections.abc import Iterable
from typing import Any

from spark_dynamic.apply.storage import generation_of, is_storage_name
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
    mine, others = (
        [pin for table, pin in position.items() if table not in shared]
        for position in (one, other)
    )
    if not mine or not others:
        return False
    newest, known = (max(pin.committed_at for pin in pins) for pins in (mine, others))
    # The clock that dated the other may have been ahead; a later generation is newer for certain.
    return newest < known and not _is_later_generation(mine, others)


def _is_later_generation(one: Iterable[Pin], other: Iterable[Pin]) -> bool:
    """Tell whether all storages are later ones of the same dynamic tables."""
    later, earlier = (
        dict(generation_of(pin.table) for pin in pins if is_storage_name(pin.table))
        for pins in (one, other)
    )
    is_comparable = later and later.keys() == earlier.keys()
    return bool(is_comparable) and all(later[view] > earlier[view] for view in later)


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
