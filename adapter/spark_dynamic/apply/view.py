"""The view that users see: created, pointed at a generation, described."""

import hashlib
import json

from spark_dynamic.apply.storage import (
    check_columns,
    properties_sql,
    stored_names,
    table_properties,
    view_query,
)
from spark_dynamic.config import DynamicTableConfig
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName, quote
from spark_dynamic.sql.pin import MODEL_PROPERTY
from spark_dynamic.warehouse import Relation

APPLIED_PROPERTY = "spark_dynamic.applied"


def show_storage(
    view: TableName,
    model: str,
    existing: Relation | None,
    columns: tuple[StoredColumn, ...],
    storage: TableName,
) -> list[str]:
    """Return the statements that make the view read a generation; none if it does already."""
    query = view_query(columns, storage)
    if existing is None:
        return [_create(view, model, query)]
    if existing.view is None:
        # The model was a table before; its rows live in the storage from now on.
        return [f"DROP TABLE {view.sql}", _create(view, model, query)]
    ours = existing.has_property(MODEL_PROPERTY, model)
    mark = f"ALTER VIEW {view.sql} SET TBLPROPERTIES ({properties_sql({MODEL_PROPERTY: model})})"
    return ([] if existing.view.text == query else [f"ALTER VIEW {view.sql} AS {query}"]) + (
        [] if ours else [mark]
    )


def _create(view: TableName, model: str, query: str) -> str:
    properties = properties_sql({MODEL_PROPERTY: model})
    return f"CREATE VIEW {view.sql} TBLPROPERTIES ({properties}) AS {query}"


def fingerprint_of_docs(
    config: DynamicTableConfig, comment: str | None, column_comments: dict[str, str]
) -> str:
    """Return a short hash of everything that `describe` applies."""
    facts = [
        sorted(table_properties(config, "").items()),
        config.cluster_by,
        comment,
        sorted(column_comments.items()),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def describe(
    view: TableName,
    model: str,
    storage: TableName,
    columns: tuple[StoredColumn, ...],
    config: DynamicTableConfig,
    comment: str | None,
    column_comments: dict[str, str],
) -> list[str]:
    """Return the statements that apply comments, properties and clustering."""
    statements = [
        f"ALTER TABLE {storage.sql} SET TBLPROPERTIES "
        f"({properties_sql(table_properties(config, model))})"
    ]
    by_name = {column.name.lower(): column.stored_as for column in columns}
    if not config.partition_by:
        check_columns(config, columns)
        keys = stored_names(config.cluster_by, columns)
        statements.append(
            f"ALTER TABLE {storage.sql} CLUSTER BY {f'({keys})' if keys else 'NONE'}"
        )
    for name, text in column_comments.items():
        if name.lower() in by_name:
            column = quote(by_name[name.lower()])
            statements.append(
                f"ALTER TABLE {storage.sql} ALTER COLUMN {column} COMMENT {literal(text)}"
            )
    if column_comments:
        # The view takes its columns' comments from storage when its query is set.
        statements.append(f"ALTER VIEW {view.sql} AS {view_query(columns, storage)}")
    properties = {APPLIED_PROPERTY: fingerprint_of_docs(config, comment, column_comments)}
    if comment is not None:
        properties["comment"] = comment
    statements.append(f"ALTER VIEW {view.sql} SET TBLPROPERTIES ({properties_sql(properties)})")
    return statements
