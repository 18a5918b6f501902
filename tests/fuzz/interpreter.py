"""A second opinion: plans over weighted bags in Python, straight from the definitions."""

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from fuzz.case import Case
from fuzz.duck import Bag, canonical, nonzero
from fuzz.evaluate import Collated, compiled, greatest, number
from fuzz.schemas import COLLATED, Row
from spark_dynamic.plan.expressions import used
from spark_dynamic.plan.nodes import (
    Aggregate,
    Expression,
    Filter,
    Join,
    Measure,
    Negate,
    Plan,
    Project,
    Restrict,
    Scan,
    State,
    Sum,
    UnionAll,
)

Value = Callable[[Row], Any]


class Interpreter:
    """Evaluates plans over the tables of a case."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._new = State.NEW

    def bag(self, plan: Plan, columns: tuple[str, ...], state: State = State.NEW) -> Bag:
        """Return the rows of a plan; its scans of new rows may be taken for those of old ones."""
        self._new = state
        places = [plan.columns.index(column) for column in columns]
        bag: Bag = Counter()
        for row, weight in self._rows(plan).items():
            bag[canonical(row[place] for place in places)] += weight
        return nonzero(bag)

    def _rows(self, plan: Plan) -> Bag:
        match plan:
            case Scan():
                return self._scan(plan)
            case Filter():
                rows = self._rows(plan.input)
                for condition in plan.conditions:
                    holds = _value(condition, plan.input)
                    rows = Counter({r: w for r, w in rows.items() if holds(r) is True})
                return rows
            case Project():
                values = [_value(output.expression, plan.input) for output in plan.outputs]
                return _mapped(self._rows(plan.input), values)
            case UnionAll():
                return _total(*(self._rows(branch) for branch in plan.branches))
            case Join():
                return self._join(plan)
            case Aggregate():
                return self._aggregate(plan)
            case Sum():
                return _total(*(self._term(term, plan.columns) for term in plan.terms))
            case Negate():
                rows = self._rows(plan.input).items()
                return Counter({row: -weight for row, weight in rows})
            case Restrict():
                keys = [_value(key, plan.input) for key in plan.keys]
                among = set(map(canonical, self._rows(plan.among)))
                rows = self._rows(plan.input).items()
                return Counter({r: w for r, w in rows if canonical(k(r) for k in keys) in among})
        raise TypeError(type(plan).__name__)

    def _term(self, term: Plan, columns: tuple[str, ...]) -> Bag:
        places = [term.columns.index(column) for column in columns]
        bag: Bag = Counter()
        for row, weight in self._rows(term).items():
            bag[tuple(row[place] for place in places)] += weight
        return bag

    def _scan(self, scan: Scan) -> Bag:
        name = scan.table.name
        names = list(self._case.tables[name].columns)
        places = [names.index(field.name) for field in scan.fields]
        state = self._new if scan.state is State.NEW else scan.state
        changes = self._case.batches[name].changes if name in self._case.batches else ()
        if state is State.DELTA:
            rows = list(changes)
        else:
            current = self._case.tables[name].rows
            rows = [(1, row) for row in current]
            rows += changes if state is State.NEW else ()
        kinds = list(self._case.tables[name].columns.values())
        bag: Bag = Counter()
        for weight, row in rows:
            bag[tuple(_typed(row[place], kinds[place]) for place in places)] += weight
        return nonzero(bag)

    def _join(self, plan: Join) -> Bag:
        remaining = list(plan.conditions)
        columns: tuple[str, ...] = ()
        result: Bag = Counter({(): 1})
        for member in plan.members:
            columns += member.columns
            ready = [c for c in remaining if used(c) <= set(columns)]
            remaining = [c for c in remaining if c not in ready]
            tests = [compiled(c, {id: i for i, id in enumerate(columns)}) for c in ready]
            rows = self._rows(member)
            following: Bag = Counter()
            for (left, one), (right, other) in itertools.product(result.items(), rows.items()):
                row = left + right
                if all(test(row) is True for test in tests):
                    following[row] += one * other
            result = following
        return result

    def _aggregate(self, plan: Aggregate) -> Bag:
        keys = [_value(key.expression, plan.input) for key in plan.keys]
        groups: dict[Row, list[tuple[Row, int]]] = {} if keys else {(): []}
        for row, weight in nonzero(self._rows(plan.input)).items():
            assert weight > 0, "an aggregate of deleted rows"
            groups.setdefault(canonical(key(row) for key in keys), []).append((row, weight))
        measures = [_measured(measure, plan.input) for measure in plan.measures]
        return Counter(
            key + tuple(measure(rows) for measure in measures) for key, rows in groups.items()
        )


def _typed(value: Any, kind: str) -> Any:
    """Return a value that knows how it is compared."""
    return Collated(value) if kind == COLLATED and value is not None else value


def _value(expression: Expression, below: Plan) -> Value:
    return compiled(expression, {id: i for i, id in enumerate(below.columns)})


def _mapped(rows: Bag, values: list[Value]) -> Bag:
    bag: Bag = Counter()
    for row, weight in rows.items():
        bag[tuple(value(row) for value in values)] += weight
    return bag


def _total(*bags: Bag) -> Bag:
    total: Bag = Counter()
    for bag in bags:
        for row, weight in bag.items():
            total[row] += weight
    return total


def _measured(measure: Measure, below: Plan) -> Callable[[list[tuple[Row, int]]], Any]:
    argument = measure.argument if measure.argument is not None else exp.Literal.number(1)
    value = _value(argument, below)

    def over(rows: list[tuple[Row, int]]) -> Any:
        found = [(v, weight) for row, weight in rows if (v := value(row)) is not None]
        if measure.function == "count":
            return sum(weight for _, weight in found)
        if not found:
            return None
        if measure.function in ("sum", "avg"):
            total = sum(number(v) * weight for v, weight in found)
            count = sum(weight for _, weight in found)
            return total if measure.function == "sum" else float(total) / count
        ordered = sorted((v for v, _ in found), key=greatest)
        return ordered[0] if measure.function == "min" else ordered[-1]

    return over
