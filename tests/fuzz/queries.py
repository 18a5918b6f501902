"""Random queries as text, over what the engine keeps up to date.

Only what DuckDB and Spark read alike is written; the rest of Spark's grammar has tests of its
own. Left out: decimals divided, casts to strings, time zones, and names that the two resolve
differently (USING keys are first and there is one USING; no alias hides a column).
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from fuzz.expressions import Expressions, Named
from fuzz.schemas import COLLATED, Table


@dataclass
class Select:
    """A query's text, and its columns: distinct names with their kinds."""

    sql: str
    columns: list[tuple[str, str]]


@dataclass
class Budget:
    """Bounds the size of a query, and gives out names."""

    scans: int
    names: int = 0
    ctes: list[tuple[str, Select]] = field(default_factory=list)

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"


def random_query(rng: random.Random, tables: Mapping[str, Table]) -> str:
    """Return a query over the tables."""
    return _Queries(rng, tables).text()


class _Queries:
    def __init__(self, rng: random.Random, tables: Mapping[str, Table]) -> None:
        self._rng = rng
        self._tables = tables
        self._budget = Budget(rng.choice((2, 3, 4, 5)))

    def text(self) -> str:
        query = self.query(self._rng.choice((0, 1, 1, 2, 3))).sql
        ctes = ", ".join(f"{name} AS ({cte.sql})" for name, cte in self._budget.ctes)
        return f"WITH {ctes} {query}" if ctes else query

    def query(self, depth: int) -> Select:
        shape = self._rng.random()
        if depth > 0 and shape < 0.15 and self._budget.scans > 1:
            return self._union(depth)
        if shape < 0.5:
            return self._grouped(depth)
        return self._plain(depth)

    def _union(self, depth: int) -> Select:
        """UNION ALL: the second branch has columns that fit; an int may meet a decimal."""
        left, right = self.query(depth - 1), self.query(depth - 1)
        kinds = [kind for _, kind in left.columns]
        branches = [left.sql]
        alias = self._budget.name("u")
        free = [(name, kind) for name, kind in right.columns]
        items = []
        for kind in kinds:
            fitting = [name for name, other in free if _fits(other, kind)]
            wider = [name for name in fitting if dict(free)[name] != kind]
            fitting = wider or fitting
            items.append(self._rng.choice(fitting) if fitting else "NULL")
        branches.append(f"SELECT {', '.join(items)} FROM ({right.sql}) AS {alias}")
        if self._rng.random() < 0.2:
            branches.append(branches[0])
        texts = [f"({b})" if self._rng.random() < 0.3 else b for b in branches]
        merged = [_merged(kind, items[i], dict(free)) for i, kind in enumerate(kinds)]
        names = [name for name, _ in left.columns]
        return Select(" UNION ALL ".join(texts), list(zip(names, merged, strict=True)))

    def _plain(self, depth: int) -> Select:
        body, scope, expressions = self._body(depth)
        items, columns = self._items(scope, expressions)
        return Select(f"SELECT {', '.join(items)} FROM {body}", columns)

    def _body(self, depth: int) -> tuple[str, list[Named], Expressions]:
        """FROM and WHERE."""
        text, scope = self._from(depth)
        expressions = Expressions(self._rng, scope)
        conditions = [expressions.condition(2)] if self._rng.random() < 0.45 else []
        if self._rng.random() < 0.05 and (divisor := expressions.whole()):
            expressions.nonzero = divisor
            conditions.append(f"{divisor} <> 0")
        if conditions:
            text += f" WHERE {' AND '.join(conditions)}"
        return text, scope, expressions

    def _items(
        self, scope: list[Named], expressions: Expressions
    ) -> tuple[list[str], list[tuple[str, str]]]:
        if self._rng.random() < 0.25 and len({named.name for named in scope}) == len(scope):
            return ["*"], [(named.name, named.kind) for named in scope]
        items: list[str] = []
        columns: list[tuple[str, str]] = []
        aliases: list[Named] = []
        for _ in range(self._rng.randint(1, 4)):
            if self._rng.random() < 0.5:
                named = self._rng.choice(scope)
                name, text, kind = named.name, named.text, named.kind
            else:
                name, (text, kind) = self._budget.name("x"), expressions.any(2)
                if aliases and self._rng.random() < 0.25:
                    earlier = self._rng.choice(aliases)
                    text, kind = f"coalesce({earlier.name}, NULL)", earlier.kind
            if name in dict(columns) or (name != text and "." in text):
                name = self._budget.name("x")
            renamed = text.rpartition(".")[2] != name or "(" in text
            items.append(f"{text} AS {name}" if renamed else text)
            columns.append((name, kind))
            if name.startswith("x") and name not in {n.name for n in scope}:
                aliases.append(Named(name, name, kind))
        return items, columns

    # FROM

    def _from(self, depth: int) -> tuple[str, list[Named]]:
        text, first, columns = self._relation(depth)
        relations = [(first, columns)]
        merged = False
        count = self._rng.choice((1, 1, 1, 2, 2, 2, 3))
        while len(relations) < count and self._budget.scans > 0:
            item, alias, columns = self._relation(depth - 1)
            keys = [columns[0][0]] if _is_key(columns[0], relations[0][1][0]) else []
            style = self._rng.choice(("on", "on", "on", "on", "cross", "comma", "using"))
            if style == "using" and keys and len(relations) == 1:
                text += f" JOIN {item} USING ({keys[0]})"
                merged = True
            elif style == "cross" or (style == "comma" and not merged):
                text += f" CROSS JOIN {item}" if style == "cross" else f", {item}"
            else:
                outer = [_named(a, c) for a, columns_ in relations for c in columns_]
                inner = [_named(alias, c) for c in columns]
                on = Expressions(self._rng, outer + inner).joins(outer, inner)
                word = self._rng.choice(("JOIN", "INNER JOIN"))
                text += f" {word} {item} ON {on}"
            relations.append((alias, columns))
        return text, self._scope(relations, merged)

    def _scope(
        self, relations: list[tuple[str, list[tuple[str, str]]]], merged: bool
    ) -> list[Named]:
        every = [(alias, column) for alias, columns in relations for column in columns]
        if merged:
            # The second relation's key is behind the first one's.
            del every[len(relations[0][1])]
        often = [column[0] for _, column in every]
        scope = []
        for place, (alias, column) in enumerate(every):
            unique = often.count(column[0]) == 1
            bare = unique and (self._rng.random() < 0.5 or (merged and place == 0))
            scope.append(Named(column[0], *column) if bare else _named(alias, column))
        return scope

    def _relation(self, depth: int) -> tuple[str, str, list[tuple[str, str]]]:
        """Return a FROM item, its alias, and its columns."""
        alias = self._budget.name("r")
        choice = self._rng.random()
        if depth > 0 and self._budget.scans > 1 and choice < 0.45:
            inner = self.query(depth - 1)
            if choice < 0.04:
                columns = [(self._budget.name("c"), kind) for _, kind in inner.columns]
                names = ", ".join(name for name, _ in columns)
                return f"({inner.sql}) AS {alias}({names})", alias, columns
            if choice < 0.3:
                return f"({inner.sql}) AS {alias}", alias, inner.columns
            self._budget.ctes.append((self._budget.name("cte"), inner))
        if self._budget.ctes and choice < 0.55 and self._budget.scans > 0:
            self._budget.scans -= 1
            name, cte = self._rng.choice(self._budget.ctes)
            return f"{name} AS {alias}", alias, cte.columns
        self._budget.scans -= 1
        name = self._rng.choice(list(self._tables))
        return f"{name} AS {alias}", alias, list(self._tables[name].columns.items())

    # GROUP BY

    def _grouped(self, depth: int) -> Select:
        body, _, expressions = self._body(depth)
        keys = [expressions.key() for _ in range(self._rng.choice((0, 1, 1, 1, 2, 3)))]
        named = [(self._budget.name("g"), *key) for key in keys]
        items = [(f"{text} AS {name}", name, kind) for name, text, kind in named]
        for _ in range(self._rng.randint(0 if keys else 1, 3)):
            name, (text, kind) = self._budget.name("m"), expressions.measured(keys)
            items.append((f"{text} AS {name}", name, kind))
        guard = ""
        if self._rng.random() < 0.08 and (divisor := expressions.whole()):
            name, guard = self._budget.name("m"), f"sum({divisor}) <> 0"
            items.append((f"count(*) / sum({divisor}) AS {name}", name, "average"))
        clause, shown = self._group_by(named, items)
        having = f" HAVING {guard}" if guard else ""
        if not guard and self._rng.random() < 0.25:
            # DuckDB's GROUP BY ALL takes a column in HAVING for one more key.
            keys_allowed = [] if clause.endswith("ALL") else named
            measures = [item for item in shown if item[1][0] == "m"]
            having = f" HAVING {expressions.having(keys_allowed, measures)}"
        text = f"SELECT {', '.join(item for item, _, _ in shown)} FROM {body}{clause}{having}"
        return Select(text, [(name, kind) for _, name, kind in shown])

    def _group_by(
        self, keys: list[tuple[str, str, str]], items: list[tuple[str, str, str]]
    ) -> tuple[str, list[tuple[str, str, str]]]:
        style = self._rng.choice(("expressions", "expressions", "ordinals", "aliases", "all"))
        mixed = any(name[0] == "m" and item[0] == "(" for item, name, _ in items)
        if not keys:
            return (" GROUP BY ALL" if style == "all" and not mixed else ""), items
        if style == "all" and not mixed:
            return " GROUP BY ALL", items
        self._rng.shuffle(items)
        if style == "aliases":
            return f" GROUP BY {', '.join(name for name, _, _ in keys)}", items
        if style == "ordinals":
            places = [i for i, item in enumerate(items, 1) if item[1][0] == "g"]
            return f" GROUP BY {', '.join(map(str, places))}", items
        # A key need not be shown.
        shown = [item for item in items if item[1][0] == "m" or self._rng.random() < 0.6]
        return f" GROUP BY {', '.join(text for _, text, _ in keys)}", shown or items


def _named(alias: str, column: tuple[str, str]) -> Named:
    return Named(column[0], f"{alias}.{column[0]}", column[1])


def _is_key(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return one == other and one[1] != "shown"


def _fits(kind: str, wanted: str) -> bool:
    return kind == wanted or {kind, wanted} <= {"int", "bigint", "decimal(10,2)"}


def _merged(kind: str, item: str, right: Mapping[str, str]) -> str:
    """Return the kind of a union's column."""
    kinds = {kind, right.get(item, kind)}
    if COLLATED in kinds:
        # DuckDB does not tell the type of it, so that it cannot be compared any more.
        return "shown"
    for wider in ("decimal(10,2)", "bigint"):
        if wider in kinds:
            return wider
    return kind
