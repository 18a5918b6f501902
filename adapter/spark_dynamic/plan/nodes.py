"""The nodes of a logical plan.

A node's columns have ids that are unique in the whole plan, so an expression can move to any
place where its columns are there, and no join needs aliases. Expressions are sqlglot trees
whose columns are such ids. Nodes are never changed, only replaced.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

from sqlglot import exp

from spark_dynamic.names import TableName

Expression = exp.Expr

# Begins the ids of the keys of changed rows, see `Restrict`.
TOUCHED = "touched_"


class State(Enum):
    """Which rows of a source a scan gives: those at either end of an interval, or its changes."""

    NEW = "new"
    OLD = "old"
    DELTA = "delta"


@dataclass(frozen=True)
class Field:
    """A column of a table, and its id in the plan."""

    id: str
    name: str
    type: str


@dataclass(frozen=True)
class Output:
    """A computed column."""

    id: str
    expression: Expression


@dataclass(frozen=True)
class Measure:
    """An aggregate function over an argument; `count` without one counts rows."""

    id: str
    function: str
    argument: Expression | None


class Plan:
    """A node. `columns` are the ids of its output."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The ids of the node's output, in order."""
        raise NotImplementedError

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """The nodes below."""
        return ()

    def with_inputs(self, inputs: tuple["Plan", ...]) -> "Plan":
        """Return the same node over other inputs."""
        assert not inputs
        return self

    @cached_property
    def used_fields(self) -> Mapping[TableName, Mapping[str, Field]]:
        """The columns of each table that are used here and below, by name."""
        found: dict[TableName, dict[str, Field]] = {}
        for scan in scans(self):
            found.setdefault(scan.table, {}).update({f.name: f for f in scan.fields})
        return found


@dataclass(frozen=True)
class OneInput(Plan):
    """A node over one other, whose columns it has unless it says otherwise."""

    input: Plan

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the input."""
        return self.input.columns

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The one input."""
        return (self.input,)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """Return the same node over another input."""
        return replace(self, input=inputs[0])


@dataclass(frozen=True)
class Scan(Plan):
    """The rows of a table."""

    table: TableName
    fields: tuple[Field, ...]
    state: State = State.NEW

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The ids of the fields."""
        return tuple(field.id for field in self.fields)


@dataclass(frozen=True)
class Filter(OneInput):
    """The rows for which all conditions are true; each may protect those after it from errors."""

    conditions: tuple[Expression, ...]


@dataclass(frozen=True)
class Project(OneInput):
    """Columns computed row by row."""

    outputs: tuple[Output, ...]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The ids of the outputs."""
        return tuple(output.id for output in self.outputs)


@dataclass(frozen=True)
class UnionAll(Plan):
    """The rows of all branches; columns go by position, `types` are those of the result.

    Without types it is a chain of unions as it was written: each branch is added to the union of
    those before it, see `with_union_types`.
    """

    branches: tuple[Plan, ...]
    ids: tuple[str, ...]
    types: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The union's own ids."""
        return self.ids

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The branches."""
        return self.branches

    def with_inputs(self, inputs: tuple[Plan, ...]) -> "UnionAll":
        """Return the union of other branches."""
        return replace(self, branches=inputs)


@dataclass(frozen=True)
class Join(Plan):
    """The inner join of any number of inputs: their product, filtered by all conditions."""

    members: tuple[Plan, ...]
    conditions: tuple[Expression, ...]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Those of all members."""
        return tuple(column for member in self.members for column in member.columns)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The members."""
        return self.members

    def with_inputs(self, inputs: tuple[Plan, ...]) -> "Join":
        """Return the join of other members."""
        return replace(self, members=inputs)


@dataclass(frozen=True)
class Aggregate(OneInput):
    """One row per group; without keys just one row, also over no rows at all."""

    keys: tuple[Output, ...]
    measures: tuple[Measure, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The ids of the keys, then of the measures."""
        keys = tuple(key.id for key in self.keys)
        return keys + tuple(measure.id for measure in self.measures)


@dataclass(frozen=True)
class Sum(Plan):
    """Terms added up, weights and all; they have the same columns by id. In deltas only."""

    terms: tuple[Plan, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of every term, in the first one's order."""
        return self.terms[0].columns

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The terms."""
        return self.terms

    def with_inputs(self, inputs: tuple[Plan, ...]) -> "Sum":
        """Return the sum of other terms."""
        return replace(self, terms=inputs)


@dataclass(frozen=True)
class Negate(OneInput):
    """The same rows with opposite weights; stands in deltas only."""


@dataclass(frozen=True)
class Restrict(OneInput):
    """The rows whose keys occur among the rows of `among`; NULL is a key. In deltas only.

    `among` is no input: it keeps its own states.
    """

    keys: tuple[Expression, ...]
    among: Plan


@dataclass(frozen=True)
class Query:
    """A plan with the names of the result's columns."""

    plan: Plan
    names: tuple[str, ...]
    columns: tuple[str, ...]
    # How many aggregations the text has, each definition counted once: Spark has to agree.
    aggregations: int = field(default=0, compare=False)


def walk(plan: Plan) -> Iterator[Plan]:
    """Yield a node and everything below it."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.inputs)


def scans(plan: Plan) -> list[Scan]:
    """Return the scans of a plan."""
    return [node for node in walk(plan) if isinstance(node, Scan)]


def fields_of(plan: Plan, table: TableName) -> Mapping[str, Field]:
    """Return the columns of a table that a plan uses, by name."""
    return plan.used_fields.get(table, {})


def transform(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Rebuild a plan bottom-up."""
    inputs = tuple(transform(child, change) for child in plan.inputs)
    return change(plan.with_inputs(inputs) if inputs else plan)


def column(id: str) -> Any:
    """Return a reference to a column of a plan."""
    return exp.Column(this=exp.Identifier(this=id, quoted=True))
