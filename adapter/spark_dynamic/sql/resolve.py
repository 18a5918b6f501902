"""From a text to everything it reaches: through views down to tables."""

from collections.abc import Callable

from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName
from spark_dynamic.row_settings import DEFAULTS, UNDEFINED
from spark_dynamic.sql.pin import MODEL_PROPERTY, Query, ViewQuery
from spark_dynamic.sql.references import Unreadable, find_references
from spark_dynamic.sql.substitute import left_to_spark
from spark_dynamic.warehouse import Relation

Lookup = Callable[[TableName], Relation | None]
_DEPTH = 50
# Views that read others twice may come to any number when they are written out.
_MOST_MENTIONS = 2_000
_ANSI = "spark.sql.ansi.enabled"
_ZONE = "spark.sql.session.timeZone"
# A view does not keep these.
_NOT_KEPT = "spark.sql.optimizer."


def resolve(
    text: str,
    schema: str,
    lookup: Lookup,
    settings: dict[str, str],
    depth: int = 0,
    known: dict[TableName, ViewQuery] | None = None,
) -> Query:
    """Find a query's tables, through views down to where rows are stored.

    Raises Unreadable where only Spark itself can tell what the text reads.
    """
    if depth > _DEPTH:
        raise Unreadable("views are nested too deeply")
    variables = left_to_spark(text, settings)
    if variables:
        raise Unreadable(f"Spark puts values of its own for {', '.join(variables)}")
    references = find_references(text, schema)
    known = {} if known is None else known
    views = {}
    for table in {reference.table for reference in references.tables}:
        relation = lookup(table)
        if relation is None:
            raise EngineError("SOURCE_MISSING", f"The table {table} does not exist.")
        if relation.view is None:
            continue
        if MODEL_PROPERTY not in relation.properties:
            _check_catalog(relation)
            _check_settings(relation, settings)
        if table not in known:
            view = relation.view
            inner = resolve(view.text, view.schema, lookup, settings, depth + 1, known)
            known[table] = ViewQuery(relation, inner)
        views[table] = known[table]
    query = Query(text, references, views)
    if query.mentions > _MOST_MENTIONS:
        raise Unreadable(f"with its views it names tables more than {_MOST_MENTIONS:,} times")
    return query


def _check_catalog(relation: Relation) -> None:
    """Names in a view belong to the catalog that it was made in; written out they would not."""
    assert relation.view is not None
    if relation.view.catalog.lower() not in ("", "spark_catalog"):
        catalog = relation.view.catalog
        raise Unreadable(f"the view {relation.name} was created in the catalog {catalog}")


def _check_settings(relation: Relation, settings: dict[str, str]) -> None:
    """Spark runs a view under the settings it was created with; written out it would not.

    What it was created without has Spark's default there, whatever this session has.
    """
    assert relation.view is not None
    kept = relation.view.settings
    for key in sorted((kept.keys() | settings.keys()) & DEFAULTS.keys()):
        default = DEFAULTS[key]
        # Before ANSI mode was always kept, it was off.
        created_with = kept.get(key, "false" if key == _ANSI else default)
        here = settings.get(key, default)
        is_unknown = key == _ZONE and UNDEFINED in (created_with, here)
        if is_unknown or key.startswith(_NOT_KEPT) or _plain(created_with) == _plain(here):
            continue
        raise Unreadable(
            f"the view {relation.name} was created with {key}={created_with}, "
            f"while this session has {here}"
        )


def _plain(value: str) -> str:
    return "utc" if value.lower() in ("etc/utc", "z", "+00:00") else value.lower()
