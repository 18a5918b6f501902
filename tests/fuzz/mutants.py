"""Bugs planted in the rules: the fuzzer has to find every one of them.

Each mutant replaces one function of the engine by one that is wrong in a way that has
happened, here or elsewhere.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from sqlglot import exp

from fuzz.applied import Applying
from fuzz.case import random_case
from fuzz.check import NotComparable, check
from spark_dynamic.delta import aggregate as aggregates
from spark_dynamic.delta import differentiate, inner_join
from spark_dynamic.delta.states import old
from spark_dynamic.plan import normalise
from spark_dynamic.plan.nodes import Aggregate, Filter, Join, Plan, Project, Restrict, Sum
from spark_dynamic.plan.nodes import column as column_of
from spark_dynamic.sql import bind, write
from spark_dynamic.sql.write import Rows, Writer

Mutant = Callable[[ExitStack], None]


def found_by(mutant: Mutant, seed: int, cases: int, apply: bool = False) -> int | None:
    """Return the number of cases that a mutant survives, or None if it survives all."""
    with planted(mutant):
        duck = Applying()
        for number in range(cases):
            try:
                failure = check(
                    random_case(seed + number), duck, interpret=False, apply=apply
                ).failure
                if failure is not None and (failure.kind != "crash" or mutant in CRASHING):
                    return number
            except NotComparable:
                continue
    return None


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """Have a bug in the engine for a while."""
    with ExitStack() as patches:
        mutant(patches)
        yield


def patch(patches: ExitStack, owner: Any, name: str, value: Any) -> Any:
    """Replace a function; return the right one."""
    right = getattr(owner, name)
    patches.enter_context(mock.patch.object(owner, name, value))
    return right


def equals_instead_of_not_distinct(patches: ExitStack) -> None:
    """A group whose key is NULL is not looked for (`=` for `<=>`)."""

    def restrict(writer: Writer, plan: Restrict) -> Rows:
        rows = right(writer, plan)
        where = tuple(part.replace("IS NOT DISTINCT FROM", "=") for part in rows.where)
        return rows._replace(where=where)

    right = patch(patches, Writer, "_restrict", restrict)


def all_other_sides_new(patches: ExitStack) -> None:
    """What was inserted on both sides meets twice."""
    patch(patches, inner_join, "old", lambda plan, facts: plan)


def all_other_sides_old(patches: ExitStack) -> None:
    """What was inserted on both sides does not meet."""

    def all_old(node: Any, deltas: Any, facts: Any) -> Any:
        members = tuple(old(member, facts) for member in node.members)
        return right(replace(node, members=members), deltas, facts)

    right = patch(patches, differentiate, "inner_join", all_old)


def last_term_dropped(patches: ExitStack) -> None:
    """One changed member of a join is forgotten."""

    def dropped(node: Any, deltas: Any, facts: Any) -> Any:
        delta = right(node, deltas, facts)
        return replace(delta, terms=delta.terms[:-1]) if isinstance(delta, Sum) else delta

    right = patch(patches, differentiate, "inner_join", dropped)


def negate_without_negation(patches: ExitStack) -> None:
    """Old groups are added once more instead of being taken away."""

    def select(writer: Writer, plan: Plan, factor: int, *order: Any) -> str:
        return right(writer, plan, abs(factor), *order)

    right = patch(patches, Writer, "_select", select)


def bounds_of_a_wrong_column(patches: ExitStack) -> None:
    """A member is cut by the bounds of another column than the one that is set equal."""

    def wrong(pairs: Any, bounds: Any, first: Plan, member: Plan) -> Any:
        passed = right(pairs, bounds, first, member)
        other = [column for column in member.columns if column not in passed]
        return dict.fromkeys(other[:1], next(iter(passed.values()))) if passed and other else {}

    right = patch(patches, inner_join, "_passed_on", wrong)


def bounds_too_narrow(patches: ExitStack) -> None:
    """Only the smallest changed key is looked for."""

    def narrow(pairs: Any, bounds: Any, first: Plan, member: Plan) -> Any:
        passed = right(pairs, bounds, first, member)
        return {id: replace(bound, high=bound.low) for id, bound in passed.items()}

    right = patch(patches, inner_join, "_passed_on", narrow)


def union_branch_dropped(patches: ExitStack) -> None:
    """Of several changed branches only the first is seen."""

    def first(node: Any, deltas: Any) -> Any:
        delta = right(node, deltas)
        return delta.terms[0] if isinstance(delta, Sum) else delta

    right = patch(patches, differentiate, "union_all", first)


def union_types_forgotten(patches: ExitStack) -> None:
    """A branch alone has narrower types than the union."""

    def untyped(node: Any, deltas: Any) -> Any:
        return right(replace(node, types=()), deltas)

    right = patch(patches, differentiate, "union_all", untyped)


def scalar_aggregate_with_a_key(patches: ExitStack) -> None:
    """An aggregate without keys has no row where there are no rows."""

    def keyed(writer: Writer, plan: Aggregate, factor: int) -> str:
        return right(writer, plan, factor) + ("" if plan.keys else " HAVING count(*) > 0")

    right = patch(patches, Writer, "_aggregate", keyed)


def weights_not_multiplied(patches: ExitStack) -> None:
    """A join takes the weight of its first weighted member."""

    def unmultiplied(writer: Writer, plan: Join) -> Rows:
        rows = right(writer, plan)
        return rows._replace(weights=rows.weights[:1])

    right = patch(patches, Writer, "_join", unmultiplied)


def filter_not_applied_to_the_delta(patches: ExitStack) -> None:
    """Changed rows come through whether or not they pass."""
    patch(patches, differentiate, "filter", lambda node, delta: delta)


def used_column_pruned(patches: ExitStack) -> None:
    """A filter's columns are not counted as used."""

    def pruned(plan: Plan, needed: set[str]) -> Plan:
        if isinstance(plan, Filter):
            return Filter(right(plan.input, needed), plan.conditions)
        return right(plan, needed)

    right = patch(patches, bind, "without_unused_columns", pruned)
    patch(patches, normalise, "without_unused_columns", pruned)


def unused_key_pruned(patches: ExitStack) -> None:
    """A group key that nobody reads is left out, so that groups fall together."""

    def pruned(plan: Plan, needed: set[str]) -> Plan:
        if isinstance(plan, Aggregate) and len(plan.keys) > 1:
            plan = replace(
                plan, keys=tuple(k for k in plan.keys if k.id in needed) or plan.keys[:1]
            )
        return right(plan, needed)

    right = patch(patches, bind, "without_unused_columns", pruned)
    patch(patches, normalise, "without_unused_columns", pruned)


def touched_keys_of_new_rows_only(patches: ExitStack) -> None:
    """Groups that only lost rows are not recomputed."""

    def inserted(node: Aggregate, delta: Plan) -> Plan:
        weight = exp.GT(this=column_of(write.WEIGHT), expression=exp.Literal.number(0))
        return right(node, Filter(delta, (weight,)))

    right = patch(patches, aggregates, "touched_keys", inserted)


def old_groups_not_taken_away(patches: ExitStack) -> None:
    """Touched groups are added anew beside their old selves."""

    def added(node: Any, delta: Any, facts: Any) -> Any:
        found = right(node, delta, facts)
        return found.terms[0] if isinstance(found, Sum) else found

    right = patch(patches, differentiate, "aggregate", added)


def projection_of_the_new_state(patches: ExitStack) -> None:
    """A projection hands on its input's rows instead of the changes."""
    patch(
        patches,
        differentiate,
        "project",
        lambda node, delta: Project(node.input, node.outputs),
    )


MUTANTS: tuple[Mutant, ...] = (
    equals_instead_of_not_distinct,
    all_other_sides_new,
    all_other_sides_old,
    last_term_dropped,
    negate_without_negation,
    bounds_of_a_wrong_column,
    bounds_too_narrow,
    union_branch_dropped,
    union_types_forgotten,
    scalar_aggregate_with_a_key,
    weights_not_multiplied,
    filter_not_applied_to_the_delta,
    used_column_pruned,
    unused_key_pruned,
    touched_keys_of_new_rows_only,
    old_groups_not_taken_away,
    projection_of_the_new_state,
)

# SQL that cannot run is loud enough, but only of these mutants it is what we look for.
CRASHING = {used_column_pruned}
