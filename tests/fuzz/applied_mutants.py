"""Bugs planted where changes are applied: the fuzzer has to find every one of them as well."""

import re
from contextlib import ExitStack
from dataclasses import replace

from fuzz.mutants import Mutant, patch
from spark_dynamic.apply import identity
from spark_dynamic.apply.groups import Groups
from spark_dynamic.apply.measures import NET
from spark_dynamic.apply.rows import Rows
from spark_dynamic.delta.analysis import old_ranges
from spark_dynamic.delta.facts import Facts
from spark_dynamic.plan.nodes import Plan
from spark_dynamic.refresh import incremental, shape
from spark_dynamic.sql.write import WEIGHT


def _rewritten(patches: ExitStack, owner: type, method: str, pattern: str, wrong: str) -> None:
    """Plant a bug into the SQL that a method returns."""

    def planted(self: object, *arguments: object) -> str:
        return re.sub(pattern, wrong, right(self, *arguments))

    right = patch(patches, owner, method, planted)


def every_copy_of_a_row_is_deleted(patches: ExitStack) -> None:
    """A delete of one row takes all that are equal to it."""
    _rewritten(patches, Rows, "_picks", r"WHERE __dyn_rank <= -__dyn_weight", "WHERE true")


def every_rewrite_is_minimal(patches: ExitStack) -> None:
    """Rows that became equal when a column was left out are not added up."""
    patch(
        patches,
        shape,
        "is_net",
        lambda delta, columns, facts: all(known.net_by is not None for known in facts.values()),
    )


def the_hash_forgets_where_a_null_is(patches: ExitStack) -> None:
    """A row with NULL in another column is taken for the same row."""
    right = patch(patches, identity, "_encoded", lambda *arguments: right(*arguments)[1:])


def a_group_goes_when_its_sum_is_zero(patches: ExitStack) -> None:
    """Rows whose values cancel out are taken for no rows."""

    def planted(self: Groups, *arguments: object) -> str:
        sql: str = right(self, *arguments)
        found = re.search(r"`(__dyn_sum_\d)`", sql)
        gone = f"t.{found[1]} + s.{found[1]} = 0" if found else ""
        clause = r"WHEN MATCHED AND [^\n]* THEN DELETE"
        return re.sub(clause, f"WHEN MATCHED AND {gone} THEN DELETE", sql) if found else sql

    right = patch(patches, Groups, "merge", planted)


def a_null_key_is_never_found(patches: ExitStack) -> None:
    """A group whose key is NULL is stored once more after each change (`=` for `<=>`)."""
    _rewritten(patches, Groups, "_same_keys", "<=>", "=")


def bounds_leave_the_highest_value_out(patches: ExitStack) -> None:
    """The row or group with the highest key is not looked for."""
    right = patch(
        patches,
        incremental,
        "_ranges",
        lambda bounds: {c: (low, low) for c, (low, _) in right(bounds).items()},
    )


def insert_only_claimed_falsely(patches: ExitStack) -> None:
    """Changes that delete are taken for inserts, and appended."""
    patch(patches, shape, "is_insert_only", lambda delta, facts: True)


def a_lost_extreme_is_not_looked_for(patches: ExitStack) -> None:
    """The smallest value stays though its row is gone."""
    _rewritten(patches, Groups, "stale", "\nWHERE ", "\nWHERE false AND ")


def what_is_inserted_is_taken_to_stay(patches: ExitStack) -> None:
    """A largest value that was inserted and deleted again is kept."""
    wrong = f"SELECT *, {WEIGHT} AS {NET} FROM (\n{{}}\n)"
    patch(patches, Groups, "_with_net", lambda self, delta, _: wrong.format(delta))


def an_old_row_is_never_expected(patches: ExitStack) -> None:
    """Where rows are added, none is taken to have been before."""

    def planted(self: object, facts: Facts, delta: Plan) -> Facts:
        ranges = [range for _, range in old_ranges(delta)]
        return {t: replace(changes, vacant=frozenset(ranges)) for t, changes in facts.items()}

    patch(patches, incremental.IncrementalRefresh, "_without_vacant", planted)


APPLIED_MUTANTS: tuple[Mutant, ...] = (
    every_copy_of_a_row_is_deleted,
    the_hash_forgets_where_a_null_is,
    a_group_goes_when_its_sum_is_zero,
    a_null_key_is_never_found,
    bounds_leave_the_highest_value_out,
    a_lost_extreme_is_not_looked_for,
    what_is_inserted_is_taken_to_stay,
    insert_only_claimed_falsely,
    an_old_row_is_never_expected,
)
