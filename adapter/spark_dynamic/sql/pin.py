"""The same query, reading every table at a fixed version.

Only the characters of the table names are replaced; the rest of the text stays as it was
written, so nothing else can change its meaning.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spark_dynamic.names import TableName, quote
from spark_dynamic.sql.references import References
from spark_dynamic.warehouse import Relation

# On the view and the storage of every dynamic table; its value is the dbt model's id.
MODEL_PROPERTY = "spark_dynamic.model"


@dataclass(frozen=True)
class Query:
    """A query text with everything it reaches: views by their own queries, tables as leaves."""

    text: str
    references: References
    views: Mapping[TableName, "ViewQuery"]

    def tables(self) -> set[TableName]:
        """Return all tables, also those behind views."""
        found: set[TableName] = set()
        for reference in self.references.tables:
            view = self.views.get(reference.table)
            found |= view.query.tables() if view else {reference.table}
        return found

    def follows_schema(self) -> bool:
        """Tell whether a new column somewhere could change the result's rows or columns."""
        inner = any(view.query.follows_schema() for view in self.views.values())
        return self.references.follows_schema or inner

    def texts(self) -> list[str]:
        """Return this text and those of all views, in a fixed order.

        A dynamic table's own view is left out: it names a generation, not a meaning.
        """
        views = sorted(self.views.items(), key=lambda item: str(item[0]))
        inner = [v for _, v in views if MODEL_PROPERTY not in v.relation.properties]
        return [self.text, *(text for view in inner for text in view.query.texts())]


@dataclass(frozen=True)
class ViewQuery:
    """A view's columns over its query."""

    relation: Relation
    query: Query


def pinned(query: Query, versions: Mapping[TableName, int]) -> str:
    """Return the text with a version after each table and with views written out."""
    text = query.text
    for reference in reversed(query.references.tables):
        view = query.views.get(reference.table)
        if view:
            replacement = f"({_pinned_view(view, versions)})"
            if not reference.has_alias:
                replacement += f" AS {quote(reference.name)}"
        else:
            replacement = reference.table.sql
            if reference.table in versions:
                replacement += f" VERSION AS OF {versions[reference.table]}"
        text = text[: reference.start] + replacement + text[reference.end :]
    return text


def _pinned_view(view: ViewQuery, versions: Mapping[TableName, int]) -> str:
    inner = pinned(view.query, versions)
    assert view.relation.view is not None
    names = [column.name for column in view.relation.columns]
    if list(view.relation.view.output_columns) == names:
        return f"{inner}\n"
    pairs = zip(view.relation.view.output_columns, names, strict=True)
    columns = ", ".join(f"{quote(inside)} AS {quote(outside)}" for inside, outside in pairs)
    return f"SELECT {columns} FROM (\n{inner}\n)"
