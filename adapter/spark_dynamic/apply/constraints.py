"""Constraints of a contract: conditions that Delta checks on every write to storage."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.names import TableName, quote

# On the view: the constraints that the storage behind it has.
CONSTRAINTS_PROPERTY: Final = "spark_dynamic.constraints"
# Delta keeps a constraint as a property of this name.
_PROPERTY: Final = "delta.constraints."
NO_CONSTRAINTS: Final = "none"
# A quoted name, or a text that might look as if there were one in it.
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`((?:[^`]|``)*)`""", re.DOTALL)


@dataclass(frozen=True)
class Constraint:
    """A condition for every row that a table shows, in the names of the query's columns."""

    name: str
    condition: str


def not_null(column: str) -> Constraint:
    """Return the constraint that a column has no NULLs.

    Delta cannot make a column of an existing table NOT NULL; a check says the same.

    >>> not_null("a b").condition
    '`a b` IS NOT NULL'
    """
    return Constraint(f"not_null_{_short(column)}", f"{quote(column)} IS NOT NULL")


def check(expression: str, name: str = "") -> Constraint:
    """Return the constraint that an expression is true."""
    condition = expression.strip()
    return Constraint(name or f"check_{_short(condition)}", condition)


def constraints_mark(constraints: Iterable[Constraint]) -> str:
    """Return a short hash of constraints, for the view of the table that has them."""
    pairs = sorted((found.name.lower(), found.condition) for found in constraints)
    return _short(repr(pairs)) if pairs else NO_CONSTRAINTS


def conditions_in_storage(
    constraints: Iterable[Constraint], columns: tuple[StoredColumn, ...], shown: str = ""
) -> dict[str, str]:
    """Return the conditions by constraint, in the names of storage.

    Of rows that the view leaves out (`shown` is its condition) nothing is required.

    >>> conditions_in_storage([not_null("a b")], (StoredColumn("a b", "__dyn_column_1", "int"),))
    {'not_null_0cc9cd4d': '`__dyn_column_1` IS NOT NULL'}
    """
    renamed = {c.name.lower(): c.stored_as for c in columns if c.name != c.stored_as}

    def stored(match: re.Match[str]) -> str:
        name = match[1]
        found = renamed.get(name.replace("``", "`").lower()) if name is not None else None
        return quote(found) if found else match[0]

    conditions: dict[str, str] = {}
    for constraint in dict.fromkeys(constraints):
        name, condition = constraint.name.lower(), _QUOTED.sub(stored, constraint.condition)
        if name in conditions:
            raise EngineError(
                "CONSTRAINT_NAME_TWICE",
                f"Two constraints of the contract are named {constraint.name}. "
                "Give one of them another name.",
            )
        conditions[name] = f"NOT {shown} OR ({condition})" if shown else condition
    return conditions


def conditions_found(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the conditions that a table has, from its properties."""
    return {
        key.removeprefix(_PROPERTY): value
        for key, value in properties.items()
        if key.startswith(_PROPERTY)
    }


def constraint_statements(
    storage: TableName, wanted: Mapping[str, str], found: Mapping[str, str]
) -> list[str]:
    """Return the statements that give a table just the wanted constraints; those to go first."""
    # Delta writes a condition in one line.
    there, asked = ({n: " ".join(c.split()) for n, c in some.items()} for some in (found, wanted))
    gone = [name for name, condition in there.items() if asked.get(name) != condition]
    new = [name for name, condition in asked.items() if there.get(name) != condition]
    return [f"ALTER TABLE {storage.sql} DROP CONSTRAINT {quote(name)}" for name in gone] + [
        f"ALTER TABLE {storage.sql} ADD CONSTRAINT {quote(name)} CHECK ({wanted[name]})"
        for name in new
    ]


def _short(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8]
