"""Settings of the session: set for a few statements, then as they were."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from spark_dynamic.warehouse import Warehouse

# Named in every record from some version on.
_DEFAULTS = {"spark.sql.caseSensitive": "false"}
# These change what a query returns.
_ROW_SETTINGS = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.timestampType",
    "spark.sql.mapKeyDedupPolicy",
)
_ROW_SETTING_FAMILIES = ("spark.sql.legacy.", "spark.sql.parser.", "spark.sql.decimalOperations.")
# What Spark shows for a key that it does not know and that nobody has set.
_UNSET = "<undefined>"


def set_statement(key: str, value: str) -> str:
    """Return a SET whose value arrives unchanged.

    >>> set_statement("a.b", "x`y;z")
    'SET `a.b`=`x``y;z`'
    """
    if "${" in value:
        # Spark would substitute it, wherever it stands.
        raise ValueError(f"A setting cannot contain '${{': {value!r}")
    return f"SET `{key}`=`{value.replace('`', '``')}`"


def changes_rows(key: str) -> bool:
    """Tell whether a setting changes what a query returns."""
    return key in _ROW_SETTINGS or key.startswith(_ROW_SETTING_FAMILIES)


def row_settings(warehouse: Warehouse) -> dict[str, str]:
    """Return what somebody has set in this session and what changes the rows of a query."""
    listed = {row["key"]: row["value"] for row in warehouse.rows("SET")}
    return {key: value for key, value in listed.items() if changes_rows(key)}


def restore(warehouse: Warehouse, before: Mapping[str, str]) -> None:
    """Undo what has changed since: a hook runs in the session of its model, and of later ones."""
    now = row_settings(warehouse)
    for key in sorted(now.keys() | before.keys()):
        if key not in before:
            warehouse.execute(f"RESET `{key}`")
        elif now.get(key) != before[key]:
            warehouse.execute(set_statement(key, before[key]))


def effective(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a record; what older ones did not name was Spark's default."""
    return {**_DEFAULTS, **settings}


def beyond_defaults(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings as they were before the defaults among them were named.

    >>> beyond_defaults({"spark.sql.caseSensitive": "false", "spark.sql.ansi.enabled": "true"})
    {'spark.sql.ansi.enabled': 'true'}
    """
    return {key: value for key, value in settings.items() if _DEFAULTS.get(key) != value}


@contextmanager
def holding(warehouse: Warehouse, settings: Mapping[str, str]) -> Iterator[None]:
    """Let settings hold in the block; afterwards they are what the profile chose."""
    before = _values(warehouse, list(settings))
    changed = [key for key, value in settings.items() if before[key].upper() != value.upper()]
    try:
        for key in changed:
            warehouse.execute(set_statement(key, settings[key]))
        yield
    finally:
        for key in changed:
            # A RESET alone would go back to Spark's default, not to what the profile set.
            is_set = before[key] != _UNSET
            warehouse.execute(set_statement(key, before[key]) if is_set else f"RESET `{key}`")


def _values(warehouse: Warehouse, keys: list[str]) -> dict[str, str]:
    """Return the values of settings; of several at once, those that somebody has set."""
    if len(keys) == 1:
        return {keys[0]: warehouse.rows(f"SET {keys[0]}")[0]["value"]}
    listed = {row["key"]: row["value"] for row in warehouse.rows("SET")} if keys else {}
    return {key: listed.get(key, _UNSET) for key in keys}
