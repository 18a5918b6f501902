"""Settings of the session: which of them count, and how to set some for a few statements."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from spark_dynamic.harmless_settings import is_harmless
from spark_dynamic.row_settings import DEFAULTS, UNDEFINED
from spark_dynamic.warehouse import Warehouse

# Records and streams have always named these, as far as the profile set them.
_FIRST_NAMED = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.timestampType",
    "spark.sql.mapKeyDedupPolicy",
)
_FIRST_FAMILIES = ("spark.sql.legacy.", "spark.sql.parser.", "spark.sql.decimalOperations.")
# It is set on every connection since some version; what did not name it before had the default.
_CASE = "spark.sql.caseSensitive"


def set_statement(key: str, value: str) -> str:
    """Return a SET whose value arrives unchanged.

    >>> set_statement("a.b", "x`y;z")
    'SET `a.b`=`x``y;z`'
    """
    if "${" in value:
        # Spark would substitute it, wherever it stands.
        raise ValueError(f"A setting cannot contain '${{': {value!r}")
    return f"SET `{key}`=`{value.replace('`', '``')}`"


def counted(profile: Mapping[str, str], session: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that a table is compared by.

    What the profile sets counts unless it is known to be harmless. What a server sets by itself
    counts if it is known to change rows: a name that is not known may have another value on every
    start, and would rebuild every table on every run.
    """
    of_server = {key: value for key, value in session.items() if key in DEFAULTS}
    chosen = {key: value for key, value in profile.items() if not is_harmless(key)}
    return dict(sorted((of_server | chosen).items()))


def row_settings(warehouse: Warehouse) -> dict[str, str]:
    """Return what is set in this session and reaches the rows of a query.

    Names outside `spark.` are those of variables, which a text may name.
    """
    listed = {row["key"]: row["value"] for row in warehouse.rows("SET")}
    return {
        key: value
        for key, value in listed.items()
        if not key.startswith("spark.") or not is_harmless(key)
    }


def restore(warehouse: Warehouse, before: Mapping[str, str]) -> None:
    """Undo what has changed since: a hook runs in the session of its model, and of later ones."""
    now = row_settings(warehouse)
    for key in sorted(now.keys() | before.keys()):
        if key not in before:
            warehouse.execute(f"RESET `{key}`")
        elif now.get(key) != before[key]:
            warehouse.execute(set_statement(key, before[key]))


def effective(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that are not what they would be by default.

    >>> effective({"spark.sql.ansi.enabled": "TRUE", "spark.sql.timestampType": "TIMESTAMP_NTZ"})
    {'spark.sql.timestampType': 'TIMESTAMP_NTZ'}
    """
    return {key: value for key, value in settings.items() if not _is_default(key, value)}


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return which settings differ, with both values; "" if none does.

    >>> differences({"spark.sql.ansi.enabled": "false"}, {"shop_region": "eu"})
    'shop_region was unset and is eu, spark.sql.ansi.enabled was false and is true'
    """
    old, new = effective(then), effective(now)
    keys = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    return ", ".join(f"{key} was {_shown(key, then)} and is {_shown(key, now)}" for key in keys)


def as_named_by(former: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return settings as far as an older engine would have named them.

    What it had no eye for is not known, and does not count as changed.
    """
    return {key: value for key, value in now.items() if key in former or key == _CASE}


def beyond_defaults(settings: Mapping[str, str]) -> dict[str, str]:
    """Return what a stream is known by: settings that were always named, and no other default.

    >>> beyond_defaults({"spark.sql.caseSensitive": "false", "spark.sql.ansi.enabled": "true"})
    {'spark.sql.ansi.enabled': 'true'}
    """
    return {
        key: value
        for key, value in settings.items()
        if not _is_default(key, value) or (_was_first_named(key) and key != _CASE)
    }


def _was_first_named(key: str) -> bool:
    return key in _FIRST_NAMED or key.startswith(_FIRST_FAMILIES)


def _is_default(key: str, value: str) -> bool:
    return value.lower() == DEFAULTS.get(key, UNDEFINED).lower()


def _shown(key: str, settings: Mapping[str, str]) -> str:
    default = DEFAULTS.get(key, UNDEFINED)
    return settings.get(key, "unset" if default == UNDEFINED else default)


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
            is_set = before[key] != UNDEFINED
            warehouse.execute(set_statement(key, before[key]) if is_set else f"RESET `{key}`")


def _values(warehouse: Warehouse, keys: list[str]) -> dict[str, str]:
    """Return the values of settings; of several at once, those that somebody has set."""
    if len(keys) == 1:
        return {keys[0]: warehouse.rows(f"SET {keys[0]}")[0]["value"]}
    listed = {row["key"]: row["value"] for row in warehouse.rows("SET")} if keys else {}
    return {key: listed.get(key, UNDEFINED) for key in keys}
