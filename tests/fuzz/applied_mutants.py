"""Bugs planted where changes are applied: the fuzzer has to find every one of them as well."""

import re
from contextlib import ExitStack
from dataclasses import replace
from unittest import mock

from fuzz.mutants import Mutant
from spark_dynamic.apply import identity
from spark_dynamic.apply.groups import Groups
from spark_dynamic.apply.rows import Rows
from spark_dynamic.delta.analysis import old_ranges
from spark_dynamic.delta.facts import Facts
from spark_dynamic.plan.nodes import Plan
from spark_dynamic.refresh import incremental, shape


def _rewritten(patches: ExitStack, owner: type, method: str, pattern: str, wrong: str) -> None:
    """Plant a bug into the SQL that a method returns."""
    right = getattr(owner, method)

    def planted(self: object, *arguments: object) -> str:
        return re.sub(pattern, wrong, right(self, *arguments))

    patches.enter_context(mock.patch.object(owner, method, planted))


def every_copy_of_a_row_is_deleted(patches: ExitStack) -> None:
    """A delete of one copy takes all of them."""
    _rewritten(patches, Rows, "_picks", r"WHERE __dyn_rank <= -__dyn_weight", "WHERE true")


def every_rewrite_is_minimal(patches: ExitStack) -> None:
    """Rows that became equal when a column was left out are not added up."""
    wrong = mock.patch.object(
        shape,
        "is_net",
        lambda delta, columns, facts: all(known.net_by is not None for known in facts.values()),
    )
    patches.enter_context(wrong)


def the_hash_forgets_where_a_null_is(patches: ExitStack) -> None:
    """NULL in another column is the same row."""
    right = identity._encoded
    wrong = mock.patch.object(identity, "_encoded", lambda *arguments: right(*arguments)[1:])
    patches.enter_context(wrong)


def a_group_goes_when_its_sum_is_zero(patches: ExitStack) -> None:
    """Rows whose values cancel out are taken for no rows."""
    right = Groups.merge

    def planted(self: Groups, *arguments: object) -> str:
        sql = right(self, *arguments)  # type: ignore[arg-type]
        found = re.search(r"`(__dyn_sum_\d)`", sql)
        gone = f"t.{found[1]} + s.{found[1]} = 0" if found else ""
        clause = r"WHEN MATCHED AND [^\n]* THEN DELETE"
        return re.sub(clause, f"WHEN MATCHED AND {gone} THEN DELETE", sql) if found else sql

    patches.enter_context(mock.patch.object(Groups, "merge", planted))


def a_null_key_is_never_found(patches: ExitStack) -> None:
    """A group without a key's value is there once more after each change."""
    _rewritten(patches, Groups, "_same_keys", "<=>", "=")


def bounds_leave_the_highest_value_out(patches: ExitStack) -> None:
    """The row or group with the highest key is not looked for."""
    right = incremental._ranges
    wrong = mock.patch.object(
        incremental,
        "_ranges",
        lambda bounds: {c: (low, low) for c, (low, _) in right(bounds).items()},
    )
    patches.enter_context(wrong)


def a_lost_extreme_is_not_looked_for(patches: ExitStack) -> None:
    """The smallest value stays though its row is gone."""
    patches.enter_context(mock.patch.object(Groups, "extremes", property(lambda self: [])))


def an_old_row_is_never_expected(patches: ExitStack) -> None:
    """Wherever rows are added, none was before."""

    def planted(self: object, facts: Facts, delta: Plan) -> Facts:
        ranges = [range for _, range in old_ranges(delta)]
        return {t: replace(changes, vacant=frozenset(ranges)) for t, changes in facts.items()}

    wrong = mock.patch.object(incremental._Refresh, "_without_vacant", planted)
    patches.enter_context(wrong)


APPLIED_MUTANTS: tuple[Mutant, ...] = (
    every_copy_of_a_row_is_deleted,
    the_hash_forgets_where_a_null_is,
    a_group_goes_when_its_sum_is_zero,
    a_null_key_is_never_found,
    bounds_leave_the_highest_value_out,
    a_lost_extreme_is_not_looked_for,
    an_old_row_is_never_expected,
)
