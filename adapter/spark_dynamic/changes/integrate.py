"""A changelog back into a table: by adding up its changes, or by key, the last one winning."""

from collections.abc import Sequence

from spark_dynamic.apply.identity import row_hash
from spark_dynamic.changes.columns import ACTION, ALWAYS, DIFF, IN_ORDER, TIMESTAMP, VERSION
from spark_dynamic.changes.layout import is_kept
from spark_dynamic.errors import EngineError
from spark_dynamic.literals import literal
from spark_dynamic.names import quote
from spark_dynamic.warehouse import Column

_SUM, _COPY, _PLACE = "__dyn_sum", "__dyn_copy", "__dyn_place"
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
    SELECT `a`, explode(sequence(1L, __dyn_sum)) AS __dyn_copy FROM (
    SELECT `a`, IF(sum(change_diff) < 0, raise_error('CHANGELOG_INCOMPLETE: a row is deleted \
more often than it is inserted, so the changelog does not begin with the contents. Read it with \
initial_rows=true.'), sum(change_diff)) AS __dyn_sum FROM log
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
    checked = f"IF(sum({diff}) < 0, raise_error({literal(_NEGATIVE)}), sum({diff}))"
    net = (
        f"SELECT {values}, {checked} AS {_SUM} FROM {changelog}\n"
        f"GROUP BY {groups} HAVING sum({diff}) <> 0"
    )
    copies = f"SELECT {names}, explode(sequence(1L, {_SUM})) AS {_COPY} FROM (\n{net}\n)"
    return f"SELECT {names} FROM (\n{copies}\n)"


def latest(
    changelog: str,
    columns: Sequence[str],
    key: Sequence[str],
    order_by: Sequence[str],
    deletes: str,
    known: Sequence[str],
) -> str:
    """Return the last row of each key, unless it says that the key is gone.

    `known` are all columns of the changelog; those of our own changelogs put it in order.
    """
    lower = {name.lower() for name in known}
    order = [quote(name) for name in order_by]
    if not order:
        order = [name for name in (TIMESTAMP, VERSION) if name in lower]
    if ACTION in lower:
        # An update is a DELETE and an INSERT of one commit.
        order.append(ACTION)
        deletes = deletes or f"{ACTION} = 'DELETE'"
    if not order:
        raise EngineError(
            "CHANGELOG_NOT_ORDERED",
            "integrate() with a unique_key needs order_by: columns by which the last row of a key "
            "is found.",
        )
    places = ", ".join(f"{name} DESC" for name in order)
    keys = ", ".join(quote(name) for name in key)
    names = ", ".join(quote(name) for name in columns)
    ranked = (
        f"SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY {places}) AS {_PLACE} "
        f"FROM {changelog}"
    )
    gone = f" AND NOT coalesce({deletes}, false)" if deletes else ""
    return f"SELECT {names} FROM (\n{ranked}\n) WHERE {_PLACE} = 1{gone}"
