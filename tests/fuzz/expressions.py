"""Random expressions over named columns, as text with their kind.

The kind "average" is that of a value which is only approximate, and "shown" that of another one
that is shown, but never compared.
"""

import random
from dataclasses import dataclass

from fuzz.schemas import COLLATED, KINDS, NUMBERS, literal

# Kinds of which equal values are the same; 0.0 and -0.0 are not, nor are "a" and "A".
_ALIKE = {kind for kind in KINDS if kind not in ("double", COLLATED)}
COMPARISONS = ("=", "=", "<>", "<", "<=", ">", ">=", "<=>")


@dataclass(frozen=True)
class Named:
    """A column as it is written here, with its own name and its kind."""

    name: str
    text: str
    kind: str


class Expressions:
    """Writes expressions over the columns of one SELECT."""

    def __init__(self, rng: random.Random, scope: list[Named]) -> None:
        self._rng = rng
        self._scope = scope
        # A column that WHERE keeps from being 0.
        self.nonzero = ""

    def any(self, depth: int) -> tuple[str, str]:
        """Return an expression of any kind."""
        if self._rng.random() < (0.4 if self.nonzero else 0.05):
            return self.quotient(), "average"
        kind = self._rng.choice([n.kind for n in self._exact()] or ["int"])
        if self._rng.random() < 0.2:
            kind = "boolean"
        return self.of(kind, depth), kind

    def of(self, kind: str, depth: int) -> str:
        """Return an expression of a kind."""
        columns = [named.text for named in self._scope if named.kind == kind]
        if kind == COLLATED:
            # What becomes of a collation in an expression is for Spark to say.
            return self._rng.choice(columns)
        choice = self._rng.random()
        if depth <= 0 or choice < 0.35:
            return self._rng.choice(columns) if columns else self.literal(kind)
        if choice < 0.5:
            return f"coalesce({self.of(kind, depth - 1)}, {self.literal(kind)})"
        if choice < 0.6:
            then, other = self.of(kind, depth - 1), self.of(kind, depth - 1)
            return f"CASE WHEN {self.condition(depth - 1)} THEN {then} ELSE {other} END"
        if kind in ("int", "decimal(10,2)", "double", "bigint"):
            sign = self._rng.choice("+-" if kind != "int" else "+-*")
            left, right = self.of(kind, 0), self.of(kind, 0)
            return f"({left} {sign} {right})" if choice < 0.9 else f"abs({left})"
        if kind == "string":
            function = self._rng.choice(("upper({})", "lower({})", "({} || 'b')"))
            return function.format(self.of(kind, depth - 1))
        if kind == "boolean":
            return f"({self.condition(depth - 1)})"
        return self._rng.choice(columns) if columns else self.literal(kind)

    def quotient(self) -> str:
        """Return a division whose divisor is never 0: Spark would fail."""
        over, by = self.of("int", 0), self.nonzero or self.of("int", 0)
        if self.nonzero and self._rng.random() < 0.8:
            return f"{over} / {by}"
        guarded = f"CASE WHEN {by} <> 0 THEN {over} / {by} END"
        return self._rng.choice((f"{over} / nullif({by}, 0)", guarded))

    def whole(self) -> str:
        """Return a column of whole numbers; nothing if there is none."""
        columns = [named.text for named in self._scope if named.kind == "int"]
        return self._rng.choice(columns) if columns else ""

    def literal(self, kind: str) -> str:
        """Return a value; seldom NULL, and never NaN, which is not a literal everywhere."""
        values = [v for v in KINDS[kind].values if v == v]
        return literal(self._rng.choice(values), kind)

    def condition(self, depth: int) -> str:
        """Return a condition, which may be NULL."""
        choice = self._rng.random()
        if depth > 0 and choice < 0.35:
            word = self._rng.choice(("AND", "AND", "OR"))
            text = f"{self.condition(depth - 1)} {word} {self.condition(depth - 1)}"
            return text if depth == 1 and self._rng.random() < 0.3 else f"({text})"
        if depth > 0 and choice < 0.42:
            return f"NOT ({self.condition(depth - 1)})"
        exact = self._exact()
        if not exact or choice > 0.97:
            return self._rng.choice(("1 = 1", "1 > 2", "true"))
        if choice > 0.94:
            return f"{self.quotient()} {self._rng.choice(COMPARISONS)} {self.literal('int')}"
        named = self._rng.choice(exact)
        if choice < 0.52:
            return f"{named.text} IS {self._rng.choice(('', 'NOT '))}NULL"
        if choice < 0.6:
            values = ", ".join(self.literal(named.kind) for _ in range(2))
            return f"{named.text} IN ({values})"
        if choice < 0.66 and named.kind != "boolean":
            low, high = self.literal(named.kind), self.literal(named.kind)
            return f"{named.text} BETWEEN {low} AND {high}"
        if choice < 0.72 and named.kind == "boolean":
            return named.text
        literally = named.kind == COLLATED and self._rng.random() < 0.5
        right = self.literal(named.kind) if literally else self.of(named.kind, 1)
        return f"{self._collated(named)} {self._rng.choice(COMPARISONS)} {right}"

    def _collated(self, named: Named) -> str:
        """Return a column; now and then a text of which large and small letters are alike."""
        is_collated = named.kind == "string" and self._rng.random() < 0.25
        return f"{named.text} COLLATE UTF8_LCASE" if is_collated else named.text

    def joins(self, left: list[Named], right: list[Named]) -> str:
        """Return a join condition: mostly equality of two columns, with or without more."""
        pairs = [(a, b) for a in left for b in right if _comparable(a.kind, b.kind)]
        choice = self._rng.random()
        if not pairs:
            return self.condition(1) if choice < 0.8 else "true"
        whole = [pair for pair in pairs if pair[0].kind == pair[1].kind == "int"]
        one, other = self._rng.choice(whole if whole and self._rng.random() < 0.6 else pairs)
        sign = "=" if choice < 0.7 else self._rng.choice(COMPARISONS)
        texts = [f"{self._collated(one)} {sign} {other.text}"]
        if self._rng.random() < 0.3:
            texts.append(self.condition(1))
        if self._rng.random() < 0.2:
            one, other = self._rng.choice(pairs)
            texts.append(f"{other.text} <=> {one.text}")
        return f" {self._rng.choice(('AND', 'AND', 'AND', 'OR'))} ".join(texts)

    # Groups

    def key(self) -> tuple[str, str]:
        """Return a group key: mostly a column, seldom a constant."""
        exact = self._exact()
        if exact and self._rng.random() < 0.65:
            named = self._rng.choice(exact)
            if named.kind != COLLATED:
                return named.text, named.kind
        if not exact or self._rng.random() < 0.1:
            return "coalesce(NULL, 'none')", "string"
        named = self._rng.choice(exact)
        # Of equal keys any one is shown.
        if named.kind == COLLATED or self._rng.random() < 0.5:
            return f"{named.text} {self._rng.choice(COMPARISONS)} {self.literal(named.kind)}", (
                "boolean"
            )
        if named.kind == "int":
            return f"{named.text} + 1", "int"
        return f"coalesce({named.text}, {self.literal(named.kind)})", named.kind

    def measure(self) -> tuple[str, str]:
        """Return an aggregate."""
        exact = self._exact()
        if self._rng.random() < 0.1 and any(named.kind in _ALIKE for named in exact):
            return self._last()
        function = self._rng.choice(("count(*)", "count(1)", "count_if", "count", "sum", "avg"))
        function = self._rng.choice((function, "min", "max"))
        numbers = [named for named in exact if named.kind in NUMBERS]
        needed = numbers if function in ("sum", "avg") else exact
        if function in ("min", "max"):
            needed = [named for named in exact if named.kind != COLLATED]
        if not needed or function.startswith("count("):
            text, kind = "count(1)" if function == "count(1)" else "count(*)", "bigint"
        elif function == "count_if":
            return f"count_if({self.condition(1)})", "bigint"
        else:
            kind = self._rng.choice(needed).kind
            # A condition without parentheses of its own is an argument, too.
            is_bare = kind == "boolean" and self._rng.random() < 0.5
            text = f"{function}({self.condition(1) if is_bare else self.of(kind, 1)})"
            if function == "avg":
                kind = "average"
            elif function == "count" or (function == "sum" and kind == "int"):
                kind = "bigint"
        if self._rng.random() < 0.2:
            text += f" FILTER (WHERE {self.condition(1)})"
        return text, kind

    def _last(self) -> tuple[str, str]:
        """Return a field of the first or the last row; no NULL, which DuckDB orders otherwise."""
        fitting = [named.kind for named in self._exact() if named.kind in _ALIKE]
        kinds = [self._rng.choice(fitting) for _ in range(self._rng.randint(1, 3))]
        fields = ", ".join(
            f"coalesce({self.of(kind, 1)}, {self.literal(kind)}) AS f{i}"
            for i, kind in enumerate(kinds)
        )
        shown = self._rng.randrange(len(kinds))
        text = f"{self._rng.choice(('min', 'max', 'max'))}(struct({fields}))"
        if self._rng.random() < 0.2:
            text = f"({text} FILTER (WHERE {self.condition(1)}))"
        return f"{text}.f{shown}", kinds[shown]

    def measured(self, keys: list[tuple[str, str]]) -> tuple[str, str]:
        """Return an expression over aggregates, perhaps with a key."""
        text, kind = self.measure()
        numeric = kind in NUMBERS
        choice = self._rng.random()
        if numeric and choice < 0.1:
            return f"{text} + {self._rng.randint(1, 2)}", kind
        if numeric and choice < 0.2:
            return f"coalesce({text}, 0) - count(*)", kind
        if choice < 0.3 and kind != "average":
            return f"CASE WHEN count(*) > 1 THEN {text} END", kind
        fitting = [key for key, other in keys if other == kind == "int"]
        if fitting and choice < 0.5:
            return f"({fitting[0]}) + {text}", kind
        return text, kind

    def having(
        self, keys: list[tuple[str, str, str]], measures: list[tuple[str, str, str]]
    ) -> str:
        """Return a condition on groups."""
        exact = [(name, kind) for _, name, kind in measures if kind not in ("average",)]
        choice = self._rng.random()
        if exact and choice < 0.4:
            name, kind = self._rng.choice(exact)
            return f"{name} {self._rng.choice(COMPARISONS)} {self.literal(kind)}"
        if keys and choice < 0.6:
            _, text, kind = self._rng.choice(keys)
            return f"({text}) {self._rng.choice(COMPARISONS)} {self.literal(kind)}"
        text, kind = self.measure()
        if kind == "average":
            return "count(*) > 1"
        return f"{text} {self._rng.choice(COMPARISONS)} {self.literal(kind)}"

    def _exact(self) -> list[Named]:
        return [named for named in self._scope if named.kind in KINDS]


def _comparable(one: str, other: str) -> bool:
    return one in KINDS and (one == other or (one in NUMBERS and other in NUMBERS))
