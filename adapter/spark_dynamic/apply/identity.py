"""Row identity: a 128-bit hash of a row's contents that two different rows never share.

Spark's hash functions pass over NULLs and take 0.0 and -0.0 for one, so every value goes in
together with whether it is NULL, and floating-point numbers with their sign. Two hashes over
input that begins differently make 128 bits.
"""

import re
from collections.abc import Iterable

from spark_dynamic.names import quote
from spark_dynamic.support import NotIncremental

# In every record: rows that were hashed in another way cannot be found again.
ENCODING = 2
HASH = ("__dyn_hash_1", "__dyn_hash_2")

_AS_THEY_ARE = re.compile(
    r"(tinyint|smallint|int|bigint|boolean|string|binary|date|timestamp|timestamp_ntz"
    r"|decimal\(\d+,\d+\)|char\(\d+\)|varchar\(\d+\))"
)


def row_hash(values: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return two hash expressions over values, given as SQL and type.

    >>> row_hash([("a", "int"), ("b", "double")])[0]
    "xxhash64(0, isnull(a), a, isnull(b), b, startswith(cast(b AS string), '-'))"
    """
    parts = [part for sql, type in values for part in _encoded(sql, type)]
    first, second = (f"xxhash64({', '.join([salt, *parts])})" for salt in ("0", "1"))
    return first, second


def _encoded(sql: str, type: str, depth: int = 0) -> list[str]:
    """Return what goes into the hash for one value: an injective encoding of it."""
    null = f"isnull({sql})"
    if type == "void":
        return [null]
    if _AS_THEY_ARE.fullmatch(type):
        return [null, sql]
    if type in ("float", "double"):
        # Not the text itself: its last digits depend on the version of Java.
        return [null, sql, f"startswith(cast({sql} AS string), '-')"]
    if type.startswith("string collate "):
        return [null, f"cast({sql} AS binary)"]
    if type.startswith("array<"):
        element = f"element_{depth}"
        inner = ", ".join(_encoded(element, type[6:-1], depth + 1))
        return [null, f"size({sql})", f"transform({sql}, {element} -> struct({inner}))"]
    if type.startswith("struct<"):
        fields = [
            part
            for name, inner in _fields(type[7:-1])
            for part in _encoded(f"{sql}.{quote(name)}", inner, depth)
        ]
        return [null, *fields]
    if type.startswith("map<"):
        key, value = _parts(type[4:-1])
        # Other keys may be equal and look different: then the order would decide.
        if _AS_THEY_ARE.fullmatch(key):
            name = f"key_{depth}"
            inner = ", ".join([name, *_encoded(f"{sql}[{name}]", value, depth + 1)])
            entries = f"transform(array_sort(map_keys({sql})), {name} -> struct({inner}))"
            return [null, f"size({sql})", entries]
    raise NotIncremental("TYPE_NOT_SUPPORTED", type)


def _fields(text: str) -> list[tuple[str, str]]:
    """Take the inside of a struct's type apart.

    >>> _fields("a:int,b:struct<c:decimal(4,2),d:int>")
    [('a', 'int'), ('b', 'struct<c:decimal(4,2),d:int>')]
    """
    named = (part.partition(":") for part in _parts(text))
    return [(name, type) for name, _, type in named]


def _parts(text: str) -> list[str]:
    """Split at the commas that stand in no brackets.

    >>> _parts("int,map<string,decimal(4,2)>")
    ['int', 'map<string,decimal(4,2)>']

    A field may be named `a>b`:

    >>> _parts("a>b:int,c:int")
    Traceback (most recent call last):
    spark_dynamic.support.NotIncremental: TYPE_NOT_SUPPORTED: Rows with a column of type \
a>b:int,c:int cannot be told apart by a hash, so their changes cannot be applied.
    """
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text + ","):
        depth += (letter in "<(") - (letter in ">)")
        if depth < 0:
            break
        if letter == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    if depth:
        # The name of a field has brackets, which Spark does not tell from those of a type.
        raise NotIncremental("TYPE_NOT_SUPPORTED", text)
    return parts
