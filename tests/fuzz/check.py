"""One case against both judges."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import duckdb
from sqlglot import exp

from fuzz.applied import Applied, Applying, NotTranslated
from fuzz.case import SCHEMA, Case
from fuzz.duck import Bag, Duck, OldFromNew, PlainStates, StrictDuckDB, added, duck_sql
from fuzz.interpreter import Interpreter
from fuzz.schemas import COLLATED
from spark_dynamic.delta.analysis import is_insert_only, is_minimal, unique_by
from spark_dynamic.delta.differentiate import differentiate
from spark_dynamic.delta.facts import Facts
from spark_dynamic.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Plan,
    Project,
    Query,
    Restrict,
    Scan,
    State,
    Sum,
    UnionAll,
    walk,
)
from spark_dynamic.plan.types import with_union_types
from spark_dynamic.refresh.shape import MINIMAL
from spark_dynamic.sql import bind
from spark_dynamic.sql.pin import Query as Text
from spark_dynamic.sql.references import find_references
from spark_dynamic.sql.write import Writer
from spark_dynamic.support import NotIncremental

RULES = {
    Scan: "scan",
    Filter: "filter",
    Project: "project",
    UnionAll: "union_all",
    Join: "inner_join",
    Aggregate: "aggregate",
}


@dataclass(frozen=True)
class Failure:
    """What went wrong, in a word and in full."""

    kind: str
    message: str

    def first_words(self) -> str:
        """Return what two failures have in common that are the same."""
        return f"{self.kind} {self.message if self.kind in ('bind', 'crash') else ''}"[:40]


@dataclass(frozen=True)
class Outcome:
    """How a case went; `features` are the rules it used, and more."""

    failure: Failure | None = None
    refused: str = ""
    features: frozenset[str] = frozenset()


class NotComparable(Exception):
    """DuckDB refuses the query, so the case says nothing."""


def check(case: Case, duck: Applying, interpret: bool = True, apply: bool = True) -> Outcome:
    """Compare old result plus delta with the new result; interpreted and applied, if asked for."""
    duck.load(case)
    try:
        sql = duck_sql(case.sql)
        old, types = duck.text(sql, State.OLD)
        new, _ = duck.text(sql, State.NEW)
    except duckdb.Error as error:
        raise NotComparable(str(error)) from error
    try:
        text = Text(case.sql, find_references(case.sql, SCHEMA), {})
        query = bind.bind(text, SCHEMA, case.columns_of)
    except NotIncremental as error:
        return Outcome(refused=error.reason.code)
    except Exception as error:
        return Outcome(Failure("bind", repr(error)))
    outcome = _Check(case, duck, old, new, types).run(query, interpret)
    return _applied(case, duck, new, outcome) if apply else outcome


def _applied(case: Case, duck: Applying, new: Bag, outcome: Outcome) -> Outcome:
    if outcome.failure is not None:
        return outcome
    failure, feature = None, "applied"
    try:
        applied = Applied(case, duck)
        difference = applied.difference(new)
        failure = Failure("applied", difference) if difference else None
        feature = "applied minimal" if applied.shape.startswith(MINIMAL) else feature
    except NotIncremental:
        feature = "not applied: refused"
    except NotTranslated as error:
        feature = f"not applied: {str(error)[:30].splitlines()[0]}"
    except Exception as error:
        failure = Failure("crash", f"{type(error).__name__}: {error}")
    more = {"applied", feature} if feature.startswith("applied") else {feature}
    return replace(outcome, failure=failure, features=outcome.features | more)


class _Check:
    def __init__(self, case: Case, duck: Duck, old: Bag, new: Bag, types: list[str]) -> None:
        self._case = case
        self._duck = duck
        self._old = old
        self._new = new
        self._types = types

    def run(self, query: Query, interpret: bool) -> Outcome:
        facts = self._case.facts()
        features: set[str] = set()
        try:
            plan = with_union_types(query.plan, self._duck.describe)
            delta = differentiate(plan, facts)
            features = _features(plan, delta, facts)
            failure = self._plan(query, plan) or self._delta(query, delta, facts)
            if failure is None and interpret:
                failure = self._interpreted(query, plan, delta)
        except Exception as error:
            failure = Failure("crash", f"{type(error).__name__}: {error}")
        return Outcome(failure, features=frozenset(features))

    def _plan(self, query: Query, plan: Plan) -> Failure | None:
        sql = Writer(PlainStates(), StrictDuckDB).weighted(plan)
        found, types = self._duck.weighted(sql, query.columns)
        if types != self._types:
            return Failure("plan types", f"{types} instead of {self._types}\n{sql}")
        shared = _shared(list(found.elements()), query.columns, plan, {})
        if shared:
            return Failure("unique by", f"{shared}\n{sql}")
        return _difference("plan", self._new, found, sql)

    def _delta(self, query: Query, delta: Plan | None, facts: Facts) -> Failure | None:
        if delta is None:
            return _difference("no delta", self._new, self._old, "")
        sql = Writer(PlainStates(), StrictDuckDB).weighted(delta)
        change, types = self._duck.weighted(sql, query.columns)
        if types != self._types:
            return Failure("delta types", f"{types} instead of {self._types}\n{sql}")
        if is_insert_only(delta, facts) and any(weight < 0 for weight in change.values()):
            return Failure("insert only", f"{change}\n{sql}")
        rows = self._duck.raw(sql, query.columns)
        both = {row for row, weight in rows if weight > 0} & {row for row, w in rows if w < 0}
        if is_minimal(delta, query.columns, facts) and both:
            return Failure("minimal", f"{both}\n{sql}")
        shared = _shared([row for row, _ in rows], query.columns, delta, facts)
        if shared:
            return Failure("unique by", f"{shared}\n{sql}")
        failure = _difference("delta", self._new, added(self._old, change), sql)
        if failure is None and _reads_old(delta) and not _aggregates(delta):
            sql = Writer(OldFromNew(self._case), StrictDuckDB).weighted(delta)
            change, _ = self._duck.weighted(sql, query.columns)
            failure = _difference("weighted old", self._new, added(self._old, change), sql)
        return failure

    def _interpreted(self, query: Query, plan: Plan, delta: Plan | None) -> Failure | None:
        interpreter = Interpreter(self._case)
        new = interpreter.bag(plan, query.columns)
        failure = _difference("interpreted plan", self._new, new, "")
        if failure is None and delta is not None:
            old = interpreter.bag(plan, query.columns, State.OLD)
            change = interpreter.bag(delta, query.columns)
            failure = _difference("interpreted delta", new, added(old, change), "")
        return failure


def _shared(rows: list[Any], columns: tuple[str, ...], plan: Plan, facts: Facts) -> str:
    """Return the values that two rows share, though they are said to tell all rows apart."""
    for key in unique_by(plan, facts):
        if key <= set(columns):
            places = [columns.index(id) for id in sorted(key)]
            counted = Counter(tuple(row[place] for place in places) for row in rows)
            twice = [values for values, count in counted.items() if count > 1]
            if twice:
                return f"{sorted(key)}: {twice}"
    return ""


def _difference(kind: str, expected: Bag, found: Bag, sql: str) -> Failure | None:
    if expected == found:
        return None
    missing = added(expected, Counter({row: -weight for row, weight in found.items()}))
    rows = "\n".join(f"  {weight:+d} {row}" for row, weight in list(missing.items())[:10])
    return Failure(kind, f"rows that are missing (+) or too many (-):\n{rows}\n{sql}")


def _aggregates(delta: Plan) -> bool:
    """Tell whether rows are aggregated; those among which a Restrict looks do not count."""
    return any(isinstance(node, Aggregate) for node in walk(delta))


def _reads_old(delta: Plan) -> bool:
    return any(isinstance(node, Scan) and node.state is State.OLD for node in walk(delta))


def _features(plan: Plan, delta: Plan | None, facts: Facts) -> set[str]:
    """Name what a case exercises: the rules of its plan, and special forms of its delta."""
    if delta is None:
        return {"no delta"}
    found = {
        RULES[type(node)]
        for node in walk(plan)
        if any(isinstance(leaf, Scan) and leaf.table in facts for leaf in walk(node))
    }
    aggregates = [node for node in walk(plan) if isinstance(node, Aggregate)]
    marks = {
        "aggregate without keys": any(not node.keys for node in aggregates),
        "aggregate of aggregate": any(
            isinstance(below, Aggregate) for node in aggregates for below in walk(node.input)
        ),
        "aggregate below join": any(
            isinstance(below, Aggregate)
            for node in walk(plan)
            if isinstance(node, Join)
            for below in walk(node)
        ),
        "greatest of structs": any(
            isinstance(measure.argument, exp.Struct)
            for node in aggregates
            for measure in node.measures
        ),
        "insert only": is_insert_only(delta, facts),
        "collated": any(
            field.type == COLLATED
            for node in walk(plan)
            if isinstance(node, Scan)
            for field in node.fields
        ),
        "unique": bool(unique_by(plan, {})),
        "unique join": any(isinstance(n, Join) and unique_by(n, {}) for n in walk(plan)),
        "old state": _reads_old(delta),
        "weighted old state": _reads_old(delta) and not _aggregates(delta),
        "several terms": any(isinstance(node, Sum) for node in walk(delta)),
        "restricted groups": any(isinstance(node, Restrict) for node in walk(delta)),
        "bounds": "Var("
        in "".join(repr(node.conditions) for node in walk(delta) if isinstance(node, Filter)),
    }
    return found | {name for name, holds in marks.items() if holds}
