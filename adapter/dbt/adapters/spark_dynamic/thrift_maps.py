"""Maps of texts as a Thrift server writes them: almost JSON, with plain quotes inside of values.

`DESCRIBE HISTORY` cannot stand in a FROM, so Spark cannot be asked to write its maps otherwise.
"""

import json
import re

# The beginning of a pair, up to its value.
_KEY = re.compile(r'"([\w.]+)":(?:(null)|")')
# What follows a value: the next pair, or the end of the map.
_END = re.compile(r'"(?=,"[\w.]+":(?:"|null[,}])|\}\Z)')
_JSON = json.JSONDecoder()
# In place of everything that a text says, where it can be read in more than one way.
UNREADABLE = "unreadable"


def read_map(text: str) -> dict[str, str | None]:
    """Read a map; what has no certain meaning is found under `unreadable`.

    >>> read_map('{"mode":"Overwrite","predicate":"["(a = \\\\"b\\\\")"]"}')["predicate"]
    '["(a = \\\\"b\\\\")"]'
    >>> read_map('{"predicate":"a = ","mode":"Append"","mode":"Overwrite"}').keys()
    dict_keys(['unreadable'])
    """
    found: dict[str, str | None] = {}
    place = 1
    while place < len(text) - 1:
        pair = _KEY.match(text, place)
        if pair is None or pair[1] in found:
            return {UNREADABLE: text}
        begin = pair.end()
        end = begin if pair[2] else _end(text, begin)
        if end is None:
            return {UNREADABLE: text}
        found[pair[1]] = None if pair[2] else text[begin:end]
        # The quote behind the value, and the comma behind the pair.
        place = end + (1 if pair[2] else 2)
    return found


def _end(text: str, begin: int) -> int | None:
    """Return where a value ends."""
    if text[begin : begin + 1] in ("{", "["):
        # Delta writes lists and maps as JSON, whose own quotes tell where it ends.
        try:
            _, end = _JSON.raw_decode(text, begin)
        except ValueError:
            pass
        else:
            if _END.match(text, end):
                return end
    found = _END.search(text, begin)
    return found.start() if found else None
