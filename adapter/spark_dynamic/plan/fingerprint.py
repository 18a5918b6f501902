"""A fingerprint of what a query means: cosmetic edits keep it.

Names of aliases and common tables, the order of commutative operands, parentheses, and whether
a condition stands in WHERE or ON make no difference. Tables, the columns that are used, their
types, and the names of the result's columns do.

Every node is read once, bottom-up, from what its inputs came to. What comes to a long text is
known by a hash of it from there on, so the work is linear in the size of the query.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

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
_VERSION = 6
# A new number when the columns of equal plans are in another order by their meanings than before.
MEANINGS = 4
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
# A longer text is replaced by its hash.
_LONGEST = 200


class _Read(NamedTuple):
    """What a node means, and what each of its columns is computed from."""

    text: str
    meaning: Mapping[str, str]


def fingerprint(query: Query, names: tuple[str, ...]) -> str:
    """Return the fingerprint of a query whose result has the given column names."""
    found = _read(query.plan)
    outputs = [
        (name.lower(), found.meaning[id]) for name, id in zip(names, query.columns, strict=True)
    ]
    return f"{_VERSION}:{_hash(repr((found.text, outputs)))}"


def meanings(query: Query) -> Mapping[str, str]:
    """Return what keys and measures of a grouped result are computed from.

    They are the same for equal fingerprints.
    """
    node = query.plan
    while isinstance(node, Filter | Project):
        node = node.input
    return _read(node).meaning


def _read(plan: Plan) -> _Read:
    match plan:
        case Scan():
            used = sorted((field.name.lower(), field.type) for field in plan.fields)
            # Generations of one dynamic table hold the same thing.
            text = f"scan({_GENERATION.sub('', str(plan.table))}, {used})"
            return _Read(_short(text), {f.id: repr(f.name.lower()) for f in plan.fields})
        case Filter():
            conditions = list(plan.conditions)
            node = plan.input
            while isinstance(node, Filter):
                conditions += node.conditions
                node = node.input
            inner = _read(node)
            found = sorted(canonical(one, inner.meaning) for one in conditions)
            return _Read(_short(f"filter({inner.text}, {found})"), inner.meaning)
        case Project():
            inner = _read(plan.input)
            meaning = {o.id: canonical(o.expression, inner.meaning) for o in plan.outputs}
            return _Read(inner.text, meaning)
        case UnionAll():
            return _union(plan)
        case Join():
            return _join(plan)
        case Aggregate():
            return _aggregate(plan)
    raise TypeError(type(plan).__name__)


def _union(plan: UnionAll) -> _Read:
    """Read the branches in their order: it decides on the types that values pass through."""
    branches = []
    for branch in plan.branches:
        inner = _read(branch)
        branches.append((inner.text, [inner.meaning[id] for id in branch.columns]))
    return _Read(_short(f"union({branches})"), {id: f"union.{i}" for i, id in enumerate(plan.ids)})


def _join(plan: Join) -> _Read:
    """Read the members in an order of their own; those that mean the same keep theirs."""
    members = sorted(map(_read, plan.members), key=lambda member: member.text)
    meaning = {
        id: _short(f"{number}.{text}")
        for number, member in enumerate(members)
        for id, text in member.meaning.items()
    }
    conditions = sorted(canonical(one, meaning) for one in plan.conditions)
    texts = [member.text for member in members]
    return _Read(_short(f"join({texts}, {conditions})"), meaning)


def _aggregate(plan: Aggregate) -> _Read:
    inner = _read(plan.input)
    keys = {key.id: canonical(key.expression, inner.meaning) for key in plan.keys}
    meaning = {id: _short(f"key({text})") for id, text in keys.items()}
    for measure in plan.measures:
        of = "*" if measure.argument is None else canonical(measure.argument, inner.meaning)
        meaning[measure.id] = _short(f"{measure.function}({of})")
    return _Read(_short(f"group({inner.text}, {sorted(keys.values())})"), meaning)


def canonical(expression: Expression, meaning: Mapping[str, str]) -> str:
    """Write an expression so that equal meanings of simple kinds have equal texts.

    >>> import sqlglot
    >>> texts = ("a = 1 AND (b < 2) AND c IN (3, 4)", "2 > b AND c IN (4, 3) AND 1 = a")
    >>> len({canonical(sqlglot.parse_one(text), {}) for text in texts})
    1
    """
    texts: dict[int, str] = {}
    # Parts come before what they are part of.
    for node in reversed(list(expression.dfs())):
        is_part_of_another = type(node) in _FLAT and type(node.parent) is type(node)
        if node is expression or not is_part_of_another:
            texts[id(node)] = _short(_canonical(node, meaning, texts))
    return texts[id(expression)]


def _canonical(node: Expression, meaning: Mapping[str, str], texts: Mapping[int, str]) -> str:
    """Write one node, given the texts of its parts."""

    def of(value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(of, value))}]"
        return texts[id(value)] if isinstance(value, exp.Expr) else repr(value)

    if isinstance(node, exp.Column):
        return meaning.get(node.name, node.name)
    if isinstance(node, exp.Paren):
        inner = of(node.this)
        # In Spark some of these bind tighter than others, in sqlglot they do not.
        is_bitwise = isinstance(node.parent, _BITWISE) or isinstance(node.this, _BITWISE)
        return f"({inner})" if is_bitwise else inner
    if isinstance(node, exp.Identifier):
        # Keys of maps and names in JSON keep their case.
        return repr(node.name)
    kind = type(node)
    if kind in _FLAT:
        parts = sorted(of(part) for part in node.flatten(unnest=False))
        return f"{kind.__name__}({', '.join(parts)})"
    if kind in _COMMUTATIVE or kind in _ORDERED:
        sides = [of(node.this), of(node.expression)]
        if kind in (exp.GT, exp.GTE):
            sides.reverse()
        if kind in _COMMUTATIVE:
            sides.sort()
        return f"{_ORDERED.get(kind, kind.__name__)}({', '.join(sides)})"
    if isinstance(node, exp.In) and node.expressions:
        return f"In({of(node.this)}, {sorted(map(of, node.expressions))})"
    arguments = [
        f"{key}={of(value)}"
        for key, value in sorted(node.args.items())
        if value not in (None, [], False)
    ]
    return f"{kind.__name__}({', '.join(arguments)})"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"#{_hash(text)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
