"""The same query, reading every table at a fixed version, and if asked at a fixed time.

Only the characters of the table names and clock functions are replaced; the rest of the text
stays as it was written, so nothing else can change its meaning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

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

    @cached_property
    def mentions(self) -> int:
        """How often tables are named, with views written out."""
        views = [self.views.get(reference.table) for reference in self.references.tables]
        return sum(view.query.mentions if view else 1 for view in views)

    def tables(self) -> set[TableName]:
        """Return all tables, also those behind views."""
        found: set[TableName] = set()
        for reference in self.references.tables:
            view = self.views.get(reference.table)
            found |= view.query.tables() if view else {reference.table}
        return found

    def texts(self) -> list[str]:
        """Return this text and those of all views with their columns, in a fixed order.

        A dynamic table's own view is left out: it names a generation, not a meaning.
        """
        texts = [self.text]
        for _, view in sorted(self.views.items(), key=lambda item: str(item[0])):
            if MODEL_PROPERTY not in view.relation.properties:
                texts += [view.signature(), *view.query.texts()]
        return texts

    def all_texts(self) -> Iterator[str]:
        """Yield this text and those of all views, as they are."""
        yield self.text
        for view in self.views.values():
            yield from view.query.all_texts()

    def path_mentions(self) -> int:
        """Return how often tables are read by their path; plans show no name for those."""
        total = 0
        for reference in self.references.tables:
            view = self.views.get(reference.table)
            total += view.query.path_mentions() if view else int(reference.table.is_path)
        return total

    def clock_literals(self) -> bool:
        """Tell whether a literal such as date'today' stands anywhere in the texts."""
        inner = any(view.query.clock_literals() for view in self.views.values())
        return self.references.clock_literals or inner


@dataclass(frozen=True)
class ViewQuery:
    """A view's columns over its query."""

    relation: Relation
    query: Query

    def signature(self) -> str:
        """Return what a view means besides its text: names, order, and where it was made."""
        assert self.relation.view is not None
        names = [column.name for column in self.relation.columns]
        return repr((names, self.relation.view.output_columns, self.relation.view.schema))


def pinned(query: Query, versions: Mapping[TableName, int], clock: datetime | None = None) -> str:
    """Return the text with a version after each table and with views written out.

    With a clock, functions that ask for the time are answered by it.
    """
    text, found = query.text, list[tuple[int, int, str]]()
    for reference in query.references.tables:
        view = query.views.get(reference.table)
        if view:
            replacement = f"({_pinned_view(view, versions, clock)})"
            if not reference.has_alias:
                replacement += f" AS {quote(reference.name)}"
        else:
            replacement = reference.table.sql
            if reference.table in versions:
                replacement += f" VERSION AS OF {versions[reference.table]}"
        found.append((reference.start, reference.end, replacement))
    if clock is not None:
        found += [(call.start, call.end, call.answered(clock)) for call in query.references.clocks]
    parts, place = list[str](), 0
    for start, end, replacement in sorted(found):
        parts += (text[place:start], replacement)
        place = end
    return "".join([*parts, text[place:]])


def _pinned_view(
    view: ViewQuery, versions: Mapping[TableName, int], clock: datetime | None
) -> str:
    """Write a view out. Its columns are those it was made with, also under a `select *`."""
    assert view.relation.view is not None
    names = [column.name for column in view.relation.columns]
    pairs = zip(view.relation.view.output_columns, names, strict=True)
    columns = ", ".join(
        quote(inside) if inside == outside else f"{quote(inside)} AS {quote(outside)}"
        for inside, outside in pairs
    )
    return f"SELECT {columns} FROM (\n{pinned(view.query, versions, clock)}\n)"
