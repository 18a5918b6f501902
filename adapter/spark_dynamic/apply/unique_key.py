"""The declared key of a dynamic table, in a property of its storage.

There it is known to everybody who reads the table, also from other projects.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

from spark_dynamic.warehouse import Relation

UNIQUE_KEY_PROPERTY: Final = "spark_dynamic.unique_key"
_VALUE = re.compile(rf"{re.escape(UNIQUE_KEY_PROPERTY)}=([0-9a-f]+)")


def write_key(names: Sequence[str]) -> dict[str, str]:
    """Return a key as a property; none without a key.

    In digits only: Spark prints properties as one text, and hides those in which it sees a word
    like `token`.

    >>> write_key([])
    {}
    >>> write_key(["id"])
    {'spark_dynamic.unique_key': '5b226964225d'}
    """
    return {UNIQUE_KEY_PROPERTY: json.dumps(list(names)).encode().hex()} if names else {}


def read_key(storage: Relation) -> tuple[str, ...]:
    """Return the key that a table was declared with, by the names that its view shows."""
    found = _VALUE.search(storage.properties)
    return tuple(json.loads(bytes.fromhex(found[1]))) if found else ()
