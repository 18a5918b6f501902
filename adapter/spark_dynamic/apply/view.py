"""The view that users see: created, pointed at a generation, described."""

import hashlib
import json
from dataclasses import dataclass

from spark_dynamic.apply.storage import (
    check_columns,
    properties_sql,
    storage_name,
    stored_names,
    table_properties,
    view_query,
)
from spark_dynamic.config import DynamicTableConfig
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName, quote
from spark_dynamic.sql.pin import MODEL_PROPERTY
from spark_dynamic.sql.references import find_references
from spark_dynamic.warehouse import Relation

# On the view: what was applied last.
CONFIG_PROPERTY = "spark_dynamic.config"
DOCS_PROPERTY = "spark_dynamic.docs"


def show_storage(
    view: TableName,
    model: str,
    existing: Relation | None,
    columns: tuple[StoredColumn, ...],
    storage: TableName,
    condition: str = "",
) -> list[str]:
    """Return the statements that make the view read a generation; none if it does already."""
    query = view_query(columns, storage, condition)
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


def storage_behind(view: Relation | None, name: TableName) -> TableName:
    """Return the table that a dynamic table's view reads."""
    if view is None or view.view is None:
        return storage_name(name, 1)
    return find_references(view.view.text, name.schema).tables[0].table


def has_applied(view: Relation | None, mark: str) -> bool:
    """Tell whether a view carries a mark of what was applied."""
    return view is not None and any(
        view.has_property(key, mark) for key in (CONFIG_PROPERTY, DOCS_PROPERTY)
    )


@dataclass(frozen=True)
class Description:
    """What is said about a table and how it is kept, beside its rows: applied in place."""

    config: DynamicTableConfig
    comment: str | None
    column_comments: dict[str, str]

    @property
    def config_mark(self) -> str:
        """A short hash of the part that on_configuration_change is about."""
        return _short([sorted(table_properties(self.config, "").items()), self.config.cluster_by])

    @property
    def docs_mark(self) -> str:
        """A short hash of the comments."""
        return _short([self.comment, sorted(self.column_comments.items())])

    def statements(
        self,
        view: TableName,
        model: str,
        storage: TableName,
        columns: tuple[StoredColumn, ...],
        with_config: bool,
        with_docs: bool,
        condition: str = "",
    ) -> list[str]:
        """Return the statements that apply what has changed, and mark it as applied."""
        statements: list[str] = []
        marks: dict[str, str] = {}
        if with_config:
            statements += self._config_statements(model, storage, columns)
            marks[CONFIG_PROPERTY] = self.config_mark
        if with_docs:
            query = view_query(columns, storage, condition)
            statements += self._comment_statements(view, query, storage, columns)
            marks[DOCS_PROPERTY] = self.docs_mark
            if self.comment is not None:
                marks["comment"] = self.comment
        if marks:
            statements.append(f"ALTER VIEW {view.sql} SET TBLPROPERTIES ({properties_sql(marks)})")
        return statements

    def _config_statements(
        self, model: str, storage: TableName, columns: tuple[StoredColumn, ...]
    ) -> list[str]:
        check_columns(self.config, columns)
        properties = properties_sql(table_properties(self.config, model))
        statements = [f"ALTER TABLE {storage.sql} SET TBLPROPERTIES ({properties})"]
        if not self.config.partition_by:
            names = stored_names(self.config.cluster_by, columns)
            clustering = f"({names})" if names else "NONE"
            statements.append(f"ALTER TABLE {storage.sql} CLUSTER BY {clustering}")
        return statements

    def _comment_statements(
        self, view: TableName, query: str, storage: TableName, columns: tuple[StoredColumn, ...]
    ) -> list[str]:
        known = {name.lower(): text for name, text in self.column_comments.items()}
        statements = [
            f"ALTER TABLE {storage.sql} ALTER COLUMN {quote(column.stored_as)} "
            f"COMMENT {literal(known[column.name.lower()])}"
            for column in columns
            if column.name.lower() in known
        ]
        if statements:
            # The view takes its columns' comments from storage when its query is set.
            statements.append(f"ALTER VIEW {view.sql} AS {query}")
        return statements


def _short(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
