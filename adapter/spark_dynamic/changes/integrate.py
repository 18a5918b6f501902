"""A changelog back into a table: by adding up its changes, or by key, the last one winning."""

from collections.abc import Mapping, Sequence

from spark_dynamic.apply.identity import row_hash
from spark_dynamic.changes.columns import (
    ACTION,
    ALWAYS,
    DIFF,
    IN_ORDER,
    TABLE,
    TIMESTAMP,
    VERSION,
)
from spark_dynamic.changes.layout import is_kept, looks_the_same
from spark_dynamic.errors import EngineError
from spark_dynamic.literals import literal
from spark_dynamic.names import quote
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column

_SUM, _COPY, _PLACE, _LAST = "__dyn_sum", "__dyn_copy", "__dyn_place", "__dyn_last"
_NEGATIVE = (
    "CHANGELOG_INCOMPLETE: a row is deleted more often than it is inserted, so the changelog does "
    "not begin with the contents. Read it with initial_rows=true."
)


def own_columns(columns: Sequence[Column]) -> list[Column]:
    """Return the columns of a changelog that are no change columns."""
    return [known for known in columns if known.name.lower() not in (*ALWAYS, *IN_ORDER)]


def summed(changelog: str, columns: Sequence[Column], has_diff: bool) -> str:
    """Return the rows whose changes add up to one copy or more, each as often as it does.

    >>> print(summed("log", [Column("a", "int")], True))
    SELECT `a` FROM (
    SELECT `a`, explode(sequence(1L, IF(__dyn_sum < 0, raise_error('CHANGELOG_INCOMPLETE: a row \
is deleted more often than it is inserted, so the changelog does not begin with the contents. \
Read it with initial_rows=true.'), __dyn_sum))) AS __dyn_copy FROM (
    SELECT `a`, sum(change_diff) AS __dyn_sum FROM log
    GROUP BY xxhash64(0, isnull(`a`), `a`), xxhash64(1, isnull(`a`), `a`), `a` \
HAVING sum(change_diff) <> 0
    )
    )
    """
    diff = DIFF if has_diff else f"IF({ACTION} = 'INSERT', 1, -1)"
    names = ", ".join(quote(known.name) for known in columns)
    hashes = row_hash((quote(known.name), known.type) for known in columns)
    values = ", ".join(
        quote(c.name) if is_kept(c.type) else f"any_value({quote(c.name)}) AS {quote(c.name)}"
        for c in columns
    )
    groups = ", ".join([*hashes, *(quote(c.name) for c in columns if is_kept(c.type))])
    net = (
        f"SELECT {values}, sum({diff}) AS {_SUM} FROM {changelog}\n"
        f"GROUP BY {groups} HAVING sum({diff}) <> 0"
    )
    checked = f"IF({_SUM} < 0, raise_error({literal(_NEGATIVE)}), {_SUM})"
    copies = f"SELECT {names}, explode(sequence(1L, {checked})) AS {_COPY} FROM (\n{net}\n)"
    return f"SELECT {names} FROM (\n{copies}\n)"


def latest(
    changelog: str,
    columns: Sequence[Column],
    key: Sequence[str],
    order_by: Sequence[str],
    deletes: str,
    known: Sequence[Column],
) -> str:
    """Return the last row of each key, unless it says that the key is gone.

    `columns` are shown; `known` are all columns of the changelog, and those of our own changelogs
    put it in order. Rows at the same place are in the order of whether they delete, then of their
    columns. The greatest of structs is an aggregate that a dynamic table keeps up to date; only
    columns that have no order need a window instead.

    >>> log = [Column("id", "int"), Column("at", "date"), Column("name", "string")]
    >>> print(latest("log", [log[0], log[2]], ["id"], ["at"], "name = ''", log))
    SELECT `id`, __dyn_last.value_1 AS `name` FROM (
    SELECT `id`, max(struct(`at` AS place_1, coalesce(name = '', false) AS is_gone, \
`name` AS value_1)) AS __dyn_last FROM log
    GROUP BY `id`
    ) WHERE NOT __dyn_last.is_gone
    """
    types = {column.name.lower(): column.type for column in known}
    places = _places(order_by, types)
    if not places:
        # Net changes have no order: behind initial rows or other batches, none is the last.
        net = (
            " Changes in mode='redo_log' have them; net ones are added up, without a unique_key."
            if ACTION in types
            else ""
        )
        raise EngineError(
            "CHANGELOG_NOT_ORDERED",
            "integrate() with a unique_key needs order_by: columns by which the last row of a key "
            f"is found.{net}",
        )
    if ACTION in types:
        # An update is a DELETE and an INSERT of one commit.
        places.append(ACTION)
        deletes = deletes or f"{ACTION} = 'DELETE'"
    gone = f"coalesce({deletes}, false)" if deletes else ""
    needed = [*columns, *(Column(name, types[name.lower()]) for name in places)]
    if not all(_is_ordered(column.type) for column in needed):
        return _first_by_number(changelog, columns, key, places, gone)
    return _greatest(changelog, columns, key, places, gone)


def _places(order_by: Sequence[str], types: Mapping[str, str]) -> list[str]:
    return list(order_by) or [name for name in (TIMESTAMP, TABLE, VERSION) if name in types]


def _greatest(
    changelog: str,
    columns: Sequence[Column],
    key: Sequence[str],
    places: Sequence[str],
    gone: str,
) -> str:
    names = {name.lower() for name in key}
    # The values of an exact key are all the same; others are equal, but may look different.
    keys = [c.name for c in columns if c.name.lower() in names and looks_the_same(c.type)]
    values = [column for column in columns if column.name not in keys]
    parts = {name.lower(): (quote(name), f"place_{i}") for i, name in enumerate(places, 1)}
    if gone:
        parts[""] = (gone, "is_gone")
    for i, column in enumerate(values, 1):
        parts.setdefault(column.name.lower(), (quote(column.name), f"value_{i}"))
    fields = [f"{sql} AS {field}" for sql, field in parts.values()]
    inexact = [column for column in values if not looks_the_same(column.type)]
    if inexact:
        # Else the greatest could be any of several that are equal and look different.
        hashes = row_hash((quote(column.name), column.type) for column in inexact)
        fields += [f"{sql} AS hash_{i}" for i, sql in enumerate(hashes, 1)]
    shown = ", ".join(
        quote(c.name) if c.name in keys
        else f"{_LAST}.{parts[c.name.lower()][1]} AS {quote(c.name)}" for c in columns
    )  # fmt: skip
    inner = ", ".join([*map(quote, keys), f"max(struct({', '.join(fields)})) AS {_LAST}"])
    where = f" WHERE NOT {_LAST}.is_gone" if gone else ""
    return (
        f"SELECT {shown} FROM (\nSELECT {inner} FROM {changelog}\n"
        f"GROUP BY {', '.join(map(quote, key))}\n){where}"
    )


def _first_by_number(
    changelog: str,
    columns: Sequence[Column],
    key: Sequence[str],
    places: Sequence[str],
    gone: str,
) -> str:
    # A row without an order is known by its hash, if there is one.
    ordered = [quote(column.name) for column in columns if _is_ordered(column.type)]
    others = [column for column in columns if not _is_ordered(column.type)]
    hashed = [(quote(c.name), c.type) for c in others if _has_hash(c.type)]
    hashes = row_hash(hashed) if hashed else ()
    values = [sql for sql in [*map(quote, places), gone, *ordered, *hashes] if sql]
    by = ", ".join(f"{sql} DESC" for sql in dict.fromkeys(values))
    ranked = (
        f"SELECT *, row_number() OVER (PARTITION BY {', '.join(map(quote, key))} ORDER BY {by}) "
        f"AS {_PLACE} FROM {changelog}"
    )
    names = ", ".join(quote(column.name) for column in columns)
    left = f" AND NOT {gone}" if gone else ""
    return f"SELECT {names} FROM (\n{ranked}\n) WHERE {_PLACE} = 1{left}"


def _is_ordered(type: str) -> bool:
    """Tell whether values of a type can be compared, and told apart where they are equal."""
    # To tell arrays apart would take a function of their elements, which plans do not have.
    is_one = "map<" not in type and (looks_the_same(type) or "array<" not in type)
    return is_one and _has_hash(type)


def _has_hash(type: str) -> bool:
    try:
        row_hash([("", type)])
    except NotIncremental:
        return False
    return True
