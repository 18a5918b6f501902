"""Names inside one SELECT: which column of the plan a name stands for."""

from dataclasses import dataclass, field

from sqlglot import exp

from spark_dynamic.plan.nodes import Expression, column
from spark_dynamic.support import NotIncremental


@dataclass(frozen=True)
class Named:
    """A column under the name it has in a query; computed columns may have none."""

    name: str | None
    id: str


@dataclass
class Scope:
    """The relations of a FROM clause, by alias."""

    relations: list[tuple[str, list[Named]]] = field(default_factory=list)
    # Columns that USING has made one: the name stands for the left side's column.
    merged: dict[str, str] = field(default_factory=dict)

    def add(self, alias: str, columns: list[Named]) -> None:
        """Add a relation."""
        self.relations.append((alias.lower(), columns))

    def merge(self, name: str, left: str) -> None:
        """Let an unqualified name stand for one column."""
        self.merged[name.lower()] = left

    def find(self, name: str, alias: str = "") -> str | None:
        """Return the id that a name stands for; None if there is none."""
        name, alias = name.lower(), alias.lower()
        if not alias and name in self.merged:
            return self.merged[name]
        found = [
            named.id
            for relation, columns in self.relations
            if not alias or relation == alias
            for named in columns
            if named.name is not None and named.name.lower() == name
        ]
        if len(found) > 1:
            raise NotIncremental("SYNTAX_NOT_KNOWN", f"the column name {name} is ambiguous")
        return found[0] if found else None

    def star(self, alias: str = "") -> list[Named]:
        """Return the columns that `*` or `alias.*` stands for; merged ones come first."""
        alias = alias.lower()
        if alias:
            chosen = [columns for relation, columns in self.relations if relation == alias]
            if len(chosen) != 1:
                raise NotIncremental("SYNTAX_NOT_KNOWN", f"{alias}.* names no relation")
            return chosen[0]
        every = [named for _, columns in self.relations for named in columns]
        first = [Named(n.name, n.id) for n in every if n.id in self.merged.values()]
        rest = [n for n in every if (n.name or "").lower() not in self.merged]
        return first + rest

    def resolve(self, reference: exp.Column) -> Expression | None:
        """Return what a column reference stands for: a column, or a field of a struct."""
        if reference.args.get("db"):
            raise NotIncremental(
                "SYNTAX_NOT_KNOWN", f"the name {reference.sql()} has more than two parts"
            )
        name, outer = reference.name, reference.table
        found = self.find(name, outer)
        if found is not None:
            return _reference(found)
        if outer:
            struct = self.find(outer)
            if struct is not None:
                return exp.Dot(this=column(struct), expression=exp.to_identifier(name, True))
        return None


def _reference(id: str) -> Expression:
    reference: Expression = column(id)
    return reference
