"""The view that users see: created, pointed at a generation, described."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spark_dynamic.apply.constraints import (
    CONSTRAINTS_PROPERTY,
    NO_CONSTRAINTS,
    Constraint,
    constraints_mark,
)
from spark_dynamic.apply.storage import (
    check_columns,
    generations,
    properties_sql,
    storage_name,
    stored_names,
    table_properties,
    view_query,
)
from spark_dynamic.apply.unique_key import UNIQUE_KEY_PROPERTY
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
# On the view: which properties of the storage the user asked for.
KEYS_PROPERTY = "spark_dynamic.tblproperties"


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


def generation_shown(view: Relation) -> int:
    """Return the number of the generation that a view reads; 0 if it reads none."""
    if view.view is None:
        return 0
    read = find_references(view.view.text, view.name.schema).tables
    return max(generations(view.name, [found.table.name for found in read]), default=0)


def shows(view: Relation | None, storage: TableName) -> bool:
    """Tell whether a view reads a storage table; after a kill it may still be an older one."""
    return (
        view is not None
        and view.view is not None
        and f" FROM {storage.sql} " in f"{view.view.text} "
    )


def has_constraints(
    view: Relation | None, storage: TableName, constraints: Iterable[Constraint]
) -> bool:
    """Tell whether a storage table is known to have just these constraints, from its view."""
    mark = constraints_mark(constraints)
    if view is None or CONSTRAINTS_PROPERTY not in view.properties:
        return mark == NO_CONSTRAINTS
    # A mark says nothing about a table that the view does not show.
    return shows(view, storage) and view.has_property(CONSTRAINTS_PROPERTY, mark)


def has_applied(view: Relation | None, mark: str) -> bool:
    """Tell whether a view carries a mark of what was applied."""
    return view is not None and any(
        view.has_property(key, mark) for key in (CONFIG_PROPERTY, DOCS_PROPERTY)
    )


@dataclass(frozen=True)
class Before:
    """What a table and its view have of an earlier description."""

    # The properties that the user had asked for; a declared key is one of them.
    properties: frozenset[str] = frozenset()
    comment: str = ""
    column_comments: Mapping[str, str] = field(default_factory=dict)


def described_before(view: Relation | None, storage: Relation | None, keys: str) -> Before:
    """Return what was applied; `keys` is the view's own list of the user's properties."""
    asked = set(json.loads(keys) if keys else ())
    if storage is not None and UNIQUE_KEY_PROPERTY in storage.properties:
        asked.add(UNIQUE_KEY_PROPERTY)
    return Before(
        frozenset(asked),
        view.comment if view else "",
        storage.column_comments if storage else {},
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
        before: Before | None = None,
    ) -> list[str]:
        """Return the statements that apply what has changed, and mark it as applied.

        A table that was just built (`before` is None) has its properties already.
        """
        statements: list[str] = []
        marks: dict[str, str] = {}
        if with_config:
            marks[CONFIG_PROPERTY] = self.config_mark
            if before is not None:
                statements += self._config_statements(model, storage, columns, before)
            if self.config.tblproperties or (before and before.properties):
                marks[KEYS_PROPERTY] = json.dumps(sorted(self.config.tblproperties))
        if with_docs:
            query = view_query(columns, storage, condition)
            statements += self._comment_statements(view, query, storage, columns, before)
            marks[DOCS_PROPERTY] = self.docs_mark
            if self.comment is not None:
                marks["comment"] = self.comment
            elif before and before.comment:
                statements.append(
                    f"ALTER VIEW {view.sql} UNSET TBLPROPERTIES IF EXISTS ('comment')"
                )
        if marks:
            statements.append(f"ALTER VIEW {view.sql} SET TBLPROPERTIES ({properties_sql(marks)})")
        return statements

    def _config_statements(
        self,
        model: str,
        storage: TableName,
        columns: tuple[StoredColumn, ...],
        before: Before,
    ) -> list[str]:
        check_columns(self.config, columns)
        wanted = table_properties(self.config, model)
        statements = [f"ALTER TABLE {storage.sql} SET TBLPROPERTIES ({properties_sql(wanted)})"]
        gone = ", ".join(literal(key) for key in sorted(before.properties - wanted.keys()))
        if gone:
            statements.append(f"ALTER TABLE {storage.sql} UNSET TBLPROPERTIES IF EXISTS ({gone})")
        if not self.config.partition_by:
            names = stored_names(self.config.cluster_by, columns)
            clustering = f"({names})" if names else "NONE"
            statements.append(f"ALTER TABLE {storage.sql} CLUSTER BY {clustering}")
        return statements

    def _comment_statements(
        self,
        view: TableName,
        query: str,
        storage: TableName,
        columns: tuple[StoredColumn, ...],
        before: Before | None,
    ) -> list[str]:
        known = {name.lower(): text for name, text in self.column_comments.items()}
        found = before.column_comments if before else {}
        wanted = {column.stored_as: known.get(column.name.lower(), "") for column in columns}
        statements = [
            f"ALTER TABLE {storage.sql} ALTER COLUMN {quote(name)} COMMENT {literal(text)}"
            for name, text in wanted.items()
            if text != found.get(name, "")
        ]
        if statements:
            # The view takes its columns' comments from storage when its query is set.
            statements.append(f"ALTER VIEW {view.sql} AS {query}")
        return statements


def _short(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
