"""A fingerprint of what a query means: cosmetic edits keep it.

Names of aliases and common tables, the order of commutative operands, parentheses, and whether
a condition stands in WHERE or ON make no difference. Tables, the columns that are used, their
types, and the names of the result's columns do.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from spark_dynamic.plan.nodes import (
    Aggregate,
    Expression,
    Filter,
    Join,
    Plan,
    Project,
    Query,
    Scan,
    UnionAll,
)

# A new number when equal plans get other fingerprints than before.
_VERSION = 5
# A new number when the columns of equal plans are in another order by their meanings than before.
MEANINGS = 3
_GENERATION = re.compile(r"(?<=__dyn)_\d+$")
_COMMUTATIVE = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.Add, exp.Mul)
_FLAT = (exp.And, exp.Or)
_BITWISE = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
# Written from the smaller to the larger side.
_ORDERED: dict[type[Expression], str] = {
    exp.LT: "LT",
    exp.LTE: "LTE",
    exp.GT: "LT",
    exp.GTE: "LTE",
}


def fingerprint(query: Query, names: tuple[str, ...]) -> str:
    """Return the fingerprint of a query whose result has the given column names."""
    reader = _Reader()
    body = reader.node(query.plan)
    outputs = [
        (name.lower(), reader.meaning[id]) for name, id in zip(names, query.columns, strict=True)
    ]
    text = repr((body, outputs))
    return f"{_VERSION}:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def meanings(query: Query) -> Mapping[str, str]:
    """Return what every column of a plan is computed from: the same for equal fingerprints."""
    reader = _Reader()
    reader.node(query.plan)
    return reader.meaning


class _Reader:
    """Replaces every column by what it is computed from."""

    def __init__(self) -> None:
        self.meaning: dict[str, str] = {}
        self._number = 0

    def node(self, plan: Plan) -> str:
        match plan:
            case Scan():
                self._number += 1
                for field in plan.fields:
                    self.meaning[field.id] = f"{self._number}.{field.name.lower()!r}"
                used = sorted((field.name.lower(), field.type) for field in plan.fields)
                # Generations of one dynamic table hold the same thing.
                return f"scan({_GENERATION.sub('', str(plan.table))}, {used})"
            case Filter():
                conditions = []
                node: Plan = plan
                while isinstance(node, Filter):
                    conditions.append(node.condition)
                    node = node.input
                inner = self.node(node)
                return f"filter({inner}, {sorted(map(self._text, conditions))})"
            case Project():
                inner = self.node(plan.input)
                self.meaning |= {o.id: self._text(o.expression) for o in plan.outputs}
                return inner
            case UnionAll():
                branches = []
                for branch in plan.branches:
                    inner = self.node(branch)
                    branches.append((inner, [self.meaning[id] for id in branch.columns]))
                self._name(plan.columns)
                return f"union({branches})"
            case Join():
                # Sides may be swapped; one table on several sides keeps their order.
                members = sorted(plan.members, key=lambda member: _Reader().node(member))
                found = [self.node(member) for member in members]
                return f"join({found}, {sorted(map(self._text, plan.conditions))})"
            case Aggregate():
                return self._aggregate(plan)
        raise TypeError(type(plan).__name__)

    def _aggregate(self, plan: Aggregate) -> str:
        inner = self.node(plan.input)
        keys = {key.id: self._text(key.expression) for key in plan.keys}
        self._number += 1
        for measure in plan.measures:
            argument = "*" if measure.argument is None else self._text(measure.argument)
            self.meaning[measure.id] = f"{self._number}.{measure.function}({argument})"
        self.meaning |= {id: f"{self._number}.{text}" for id, text in keys.items()}
        return f"group({inner}, {sorted(keys.values())})"

    def _name(self, ids: tuple[str, ...]) -> None:
        self._number += 1
        self.meaning |= {id: f"{self._number}.{i}" for i, id in enumerate(ids)}

    def _text(self, expression: Expression) -> str:
        return canonical(expression, self.meaning)


def canonical(node: Any, meaning: Mapping[str, str]) -> str:
    """Write an expression so that equal meanings of simple kinds have equal texts.

    >>> import sqlglot
    >>> texts = ("a = 1 AND (b < 2) AND c IN (3, 4)", "2 > b AND c IN (4, 3) AND 1 = a")
    >>> len({canonical(sqlglot.parse_one(text), {}) for text in texts})
    1
    """
    if isinstance(node, list):
        return f"[{', '.join(canonical(item, meaning) for item in node)}]"
    if not isinstance(node, exp.Expr):
        return repr(node)
    if isinstance(node, exp.Column):
        return meaning.get(node.name, node.name)
    if isinstance(node, exp.Paren):
        inner = canonical(node.this, meaning)
        # In Spark some of these bind tighter than others, in sqlglot they do not.
        is_bitwise = isinstance(node.parent, _BITWISE) or isinstance(node.this, _BITWISE)
        return f"({inner})" if is_bitwise else inner
    if isinstance(node, exp.Identifier):
        # Keys of maps and names in JSON keep their case.
        return repr(node.name)
    kind = type(node)
    if kind in _FLAT:
        parts = sorted(canonical(part, meaning) for part in node.flatten())
        return f"{kind.__name__}({', '.join(parts)})"
    if kind in _COMMUTATIVE or kind in _ORDERED:
        sides = [canonical(node.this, meaning), canonical(node.expression, meaning)]
        if kind in (exp.GT, exp.GTE):
            sides.reverse()
        if kind in _COMMUTATIVE:
            sides.sort()
        return f"{_ORDERED.get(kind, kind.__name__)}({', '.join(sides)})"
    if isinstance(node, exp.In) and node.expressions:
        items = sorted(canonical(item, meaning) for item in node.expressions)
        return f"In({canonical(node.this, meaning)}, {items})"
    arguments = [
        f"{key}={canonical(value, meaning)}"
        for key, value in sorted(node.args.items())
        if value not in (None, [], False)
    ]
    return f"{kind.__name__}({', '.join(arguments)})"
