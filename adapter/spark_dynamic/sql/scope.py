"""Names inside one SELECT: which column of the plan a name stands for."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from spark_dynamic.plan.expressions import refuse_large
from spark_dynamic.plan.nodes import Expression, column
from spark_dynamic.sql.measures import is_aggregate
from spark_dynamic.support import NotIncremental


@dataclass(frozen=True)
class Named:
    """A column under the name it has in a query; computed columns may have none."""

    name: str | None
    id: str


class Aliases:
    """The names of a select list; they serve where no relation has a column of that name."""

    def __init__(
        self, items: Sequence[tuple[str | None, Expression]], *, are_preferred: bool = False
    ) -> None:
        self._items = items
        # Whether Spark might take the alias although a relation has the name.
        self._are_preferred = are_preferred

    def resolve(self, node: exp.Column, found: Expression | None) -> Expression | None:
        """Return what a name stands for, given what it stands for in the relations."""
        if found is not None and (not self._are_preferred or _within_aggregate(node)):
            return found
        name = node.name.lower()
        values = [value for alias, value in self._items if alias and alias.lower() == name]
        if found is not None:
            _agree(name, [found, *values])
            return found
        if not values:
            return None
        _agree(name, values)
        refuse_large(sum(1 for _ in values[0].walk()))
        return exp.Paren(this=values[0].copy())

    def have(self, name: str) -> bool:
        """Tell whether there is such a name."""
        return any(alias and alias.lower() == name.lower() for alias, _ in self._items)


def _agree(name: str, values: list[Expression]) -> None:
    if any(value != values[0] for value in values):
        raise NotIncremental("SYNTAX_NOT_KNOWN", f"the name {name} is ambiguous")


def _within_aggregate(node: Expression) -> bool:
    """Tell whether a name is part of an aggregate's argument, where aliases cannot be."""
    outer = node.parent
    while outer is not None and not is_aggregate(outer):
        outer = outer.parent
    return outer is not None


@dataclass
class Scope:
    """The relations of a FROM clause, by alias."""

    relations: list[tuple[str, list[Named]]] = field(default_factory=list)
    # Columns that USING has made one: the name stands for the left side's column.
    merged: list[Named] = field(default_factory=list)
    # What `*` stands for.
    shown: list[Named] = field(default_factory=list)

    # The columns of the relations by their names in lower case, each with its relation's alias.
    _named: dict[str, list[tuple[str, str]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for alias, columns in self.relations:
            self._enter(alias, columns)

    def copy(self) -> "Scope":
        """Return a scope to which relations can be added apart from this one."""
        return Scope(list(self.relations), list(self.merged), list(self.shown))

    def add(self, alias: str, columns: list[Named]) -> None:
        """Add a relation."""
        self.relations.append((alias.lower(), columns))
        self.shown += columns
        self._enter(alias.lower(), columns)

    def _enter(self, alias: str, columns: list[Named]) -> None:
        for named in columns:
            if named.name is not None:
                self._named.setdefault(named.name.lower(), []).append((alias, named.id))

    def merge(self, pairs: list[tuple[Named, Named]]) -> None:
        """Let unqualified names stand for the left one of two columns; `*` begins with them."""
        lefts = [left for left, _ in pairs]
        gone = {((named.name or "").lower(), named.id) for pair in pairs for named in pair}
        self.merged = lefts + self.merged
        self.shown = lefts + [n for n in self.shown if ((n.name or "").lower(), n.id) not in gone]

    def find(self, name: str, alias: str = "") -> str | None:
        """Return the id that a name stands for; None if there is none."""
        name, alias = name.lower(), alias.lower()
        merged = [named.id for named in self.merged if (named.name or "").lower() == name]
        if not alias and merged:
            return merged[0]
        known = self._named.get(name, ())
        found = [id for relation, id in known if not alias or relation == alias]
        if len(found) > 1:
            raise NotIncremental("SYNTAX_NOT_KNOWN", f"the column name {name} is ambiguous")
        return found[0] if found else None

    def star(self, alias: str = "") -> list[Named]:
        """Return the columns that `*` or `alias.*` stands for."""
        if not alias:
            return self.shown
        chosen = [columns for relation, columns in self.relations if relation == alias.lower()]
        if len(chosen) != 1:
            raise NotIncremental("SYNTAX_NOT_KNOWN", f"{alias}.* names no relation")
        if self.merged:
            # Spark moves the columns of USING to the front here as well.
            raise NotIncremental("SYNTAX_NOT_KNOWN", f"{alias}.* beside USING")
        return chosen[0]

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
