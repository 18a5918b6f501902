"""Row ids that travel through a plan: from keys of sources to the rows of the result.

Filter and projection keep their input's id, a join combines those of its members, groups are
named by their keys, and UNION ALL tells its branches apart by a number.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from sqlglot import exp

from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Join,
    Output,
    Plan,
    Project,
    Scan,
    UnionAll,
    column,
)
from spark_dynamic.warehouse import Column

Keys = Mapping[TableName, tuple[Column, ...]]


@dataclass(frozen=True)
class Identified:
    """A plan with further columns, and the ids of those that name a row."""

    plan: Plan
    ids: tuple[str, ...]


def identified(plan: Plan, keys: Keys) -> Identified | None:
    """Let ids travel up a plan; None if a source on the way has no key.

    >>> orders = Scan(TableName("shop", "orders"), (Field("amount_2", "amount", "int"),))
    >>> keys = {orders.table: (Column("id", "int"),)}
    >>> identified(Filter(orders, (exp.true(),)), keys).ids
    ('key_1',)
    >>> identified(orders, {}) is None
    True
    """
    return _Identifier(keys).walk(plan)


class _Identifier:
    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._numbers = count(1)

    def _fresh(self) -> str:
        return f"key_{next(self._numbers)}"

    def walk(self, plan: Plan) -> Identified | None:
        match plan:
            case Scan():
                return self._scan(plan)
            case Filter():
                below = self.walk(plan.input)
                return below and Identified(replace(plan, input=below.plan), below.ids)
            case Project():
                below = self.walk(plan.input)
                return below and Identified(_passing(plan, below), below.ids)
            case Join():
                return self._join(plan)
            case UnionAll():
                return self._union(plan)
            case Aggregate():
                return Identified(plan, tuple(key.id for key in plan.keys))
        raise TypeError(type(plan).__name__)

    def _scan(self, plan: Scan) -> Identified | None:
        keys = self._keys.get(plan.table)
        if keys is None:
            return None
        known = {field.name.lower(): field.id for field in plan.fields}
        added = [
            Field(self._fresh(), key.name, key.type)
            for key in keys
            if key.name.lower() not in known
        ]
        known |= {field.name.lower(): field.id for field in added}
        ids = tuple(known[key.name.lower()] for key in keys)
        return Identified(replace(plan, fields=(*plan.fields, *added)), ids)

    def _join(self, plan: Join) -> Identified | None:
        members = [found for member in plan.members if (found := self.walk(member))]
        if len(members) < len(plan.members):
            return None
        joined = plan.with_inputs(tuple(member.plan for member in members))
        return Identified(joined, tuple(id for member in members for id in member.ids))

    def _union(self, plan: UnionAll) -> Identified | None:
        """Give every branch its number and the ids of all branches, those of others NULL."""
        branches = [found for branch in plan.branches if (found := self.walk(branch))]
        if len(branches) < len(plan.branches):
            return None
        widths = [len(branch.ids) for branch in branches]
        numbered: list[Plan] = []
        for number, (branch, old) in enumerate(zip(branches, plan.branches, strict=True)):
            outputs = [Output(self._fresh(), column(id)) for id in old.columns]
            outputs.append(Output(self._fresh(), exp.Literal.number(number)))
            for other, width in enumerate(widths):
                own = branch.ids if other == number else (None,) * width
                outputs += [
                    Output(self._fresh(), column(id) if id is not None else exp.Null())
                    for id in own
                ]
            numbered.append(Project(branch.plan, tuple(outputs)))
        ids = tuple(self._fresh() for _ in range(1 + sum(widths)))
        return Identified(UnionAll(tuple(numbered), (*plan.ids, *ids)), ids)


def _passing(plan: Project, below: Identified) -> Project:
    shown = set(plan.columns)
    passed = tuple(Output(id, column(id)) for id in below.ids if id not in shown)
    return Project(below.plan, (*plan.outputs, *passed))


def naming_scans(plan: Plan) -> Iterator[Scan]:
    """Yield the scans whose keys name rows of a plan: groups are named by their own."""
    if isinstance(plan, Scan):
        yield plan
    for child in () if isinstance(plan, Aggregate) else plan.inputs:
        yield from naming_scans(child)


Describe = Callable[[Plan], tuple[Column, ...]]


def carrying(plan: Plan, name: str, type: str) -> tuple[Plan, str] | None:
    """Let a column of changed rows travel up a plan without joins and groups.

    Returns the plan and the column's id; None if the plan has another form.
    """
    match plan:
        case Scan():
            field = Field(f"carried_{plan.fields[0].id}", name, type)
            return replace(plan, fields=(*plan.fields, field)), field.id
        case Filter():
            below = carrying(plan.input, name, type)
            return below and (replace(plan, input=below[0]), below[1])
        case Project():
            below = carrying(plan.input, name, type)
            return below and (_passing(plan, Identified(below[0], (below[1],))), below[1])
        case UnionAll():
            return _carrying_union(plan, name, type)
    return None


def _carrying_union(plan: UnionAll, name: str, type: str) -> tuple[Plan, str] | None:
    branches: list[Plan] = []
    for branch in plan.branches:
        found = carrying(branch, name, type)
        if found is None:
            return None
        below, id = found
        outputs = tuple(Output(f"{known}_below", column(known)) for known in branch.columns)
        branches.append(Project(below, (*outputs, Output(f"{id}_below", column(id)))))
    id = f"carried_{plan.ids[0]}"
    types = (*plan.types, type) if plan.types else ()
    return UnionAll(tuple(branches), (*plan.ids, id), types), id
