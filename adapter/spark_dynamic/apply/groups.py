"""Results that are groups: stored with the state that lets them follow changes.

A changed group is found by its keys and adjusted by what changed in it: counts and exact sums
are added to, extremes only compared. Only what cannot be adjusted is computed again, for the
groups concerned. A group is gone when its row count is 0, whatever its sums are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from sqlglot import exp

from spark_dynamic.apply.measures import (
    COUNT,
    NET,
    Follows,
    MeasureState,
    Stored,
    group_count,
    measure_state,
)
from spark_dynamic.apply.rows import Ranges, between
from spark_dynamic.apply.shape import GroupShape
from spark_dynamic.apply.storage import stored_value, without_length
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.names import TableName, quote
from spark_dynamic.plan.expressions import substitute
from spark_dynamic.plan.fingerprint import MEANINGS
from spark_dynamic.plan.nodes import Expression
from spark_dynamic.plan.types import MeasureType, is_exact
from spark_dynamic.sql.write import WEIGHT, indented, on_one_line

VISIBLE = "__dyn_visible"
_RECOMPUTED, _STALE = "__dyn_recomputed", "__dyn_is_stale"
_OVERFLOW = "raise_error('SUM_OVERFLOW: a sum has more digits than its type')"
_NEGATIVE = "raise_error('GROUP_COUNT_NEGATIVE: more rows left a group than were in it')"
_LOST = "raise_error('GROUP_NOT_FOUND: no row was found of a group that has some')"
_DIFFERENT = "raise_error('GROUP_COUNT_DIFFERENT: a group has other rows than its changes give')"


@dataclass(frozen=True)
class Groups:
    """The storage of groups."""

    shape: GroupShape
    types: Mapping[str, MeasureType]
    columns: tuple[StoredColumn, ...]
    # The columns that files are partitioned by.
    partitions: frozenset[str] = frozenset()

    @property
    def state(self) -> dict[str, object]:
        """What the record keeps: storage of another form cannot be carried on."""
        return {
            "kind": "groups",
            "keys": list(self.keys.values()),
            "columns": [[s.name, s.type, s.follows.value] for s in self.stored],
            "filtered": self.is_filtered,
            # The columns are numbered in that order.
            "meanings": MEANINGS,
        }

    @property
    def is_filtered(self) -> bool:
        """Tell whether some groups are kept without being shown (HAVING)."""
        return bool(self.shape.conditions)

    @cached_property
    def keys(self) -> dict[str, str]:
        """The keys' ids, and the columns that hold them; a key not shown has a hidden one."""
        shown = {
            output.name: column.stored_as
            for output, column in reversed(
                list(zip(self.shape.outputs, self.columns, strict=True))
            )
            if isinstance(output, exp.Column)
        }
        return {
            key.id: shown.get(key.id, f"__dyn_key_{i}")
            for i, key in enumerate(self.shape.aggregate.keys, 1)
        }

    @cached_property
    def _measures(self) -> dict[str, MeasureState]:
        return {
            measure.id: measure_state(i, measure, self.types[measure.id], on_one_line)
            for i, measure in enumerate(self.shape.aggregate.measures, 1)
        }

    @cached_property
    def stored(self) -> list[Stored]:
        """Everything stored per group beside keys and results."""
        return [group_count(), *(s for m in self._measures.values() for s in m.stored)]

    @property
    def extremes(self) -> list[Stored]:
        """The values that a delete may invalidate."""
        return [s for s in self.stored if s.follows in (Follows.LEAST, Follows.GREATEST)]

    @property
    def always_recomputed(self) -> bool:
        """Tell whether every touched group has to be computed again."""
        return any(stored.follows is Follows.RECOMPUTED for stored in self.stored)

    def build(self, rows: str) -> str:
        """Return all groups of the aggregate's input, in the form of the storage."""
        values = {stored.name: quote(stored.name) for stored in self.stored}
        keys = {id: without_length(quote(id), self.types[id].result) for id in self.keys}
        columns = [f"{sql} AS {quote(name)}" for name, sql in self.written(keys, values).items()]
        return f"SELECT {', '.join(columns)} FROM {indented(self.recomputed(rows))}"

    def recomputed(self, rows: str, further: Sequence[str] = ()) -> str:
        """Return keys and state of the groups of some rows, and further aggregates."""
        state = [f"{stored.over_rows} AS {quote(stored.name)}" for stored in self.stored]
        return self._grouped(rows, [*state, *further])

    def changes(self, delta: str, insert_only: bool) -> str:
        """Return per group what has to be added to its state, and what was deleted from it."""
        state = [
            f"{stored.over_changes} AS {quote(stored.name)}"
            for stored in self.stored
            if stored.over_changes
        ]
        if not insert_only:
            state += [f"{s.over_deleted} AS {_deleted(s)}" for s in self.extremes]
        sql = self._grouped(self._with_net(delta, insert_only), state)
        # The one group without keys is there always; no change of it is no row.
        return sql if self.keys else f"{sql}\nHAVING count(*) > 0"

    @property
    def _nets_extremes(self) -> bool:
        return all(is_exact(stored.type) for stored in self.extremes)

    def _with_net(self, delta: str, insert_only: bool) -> str:
        """Add what is left of a group's changes with the same extremes, one against the other.

        An update of other columns leaves nothing. Where something is left, rows with that value
        are there now; else an insert may have been deleted again.
        """
        if not self.extremes:
            return delta
        net = WEIGHT
        if self._nets_extremes and not insert_only:
            keys = [on_one_line(key.expression) for key in self.shape.aggregate.keys]
            values = [stored.argument for stored in self.extremes]
            net = f"sum({WEIGHT}) OVER (PARTITION BY {', '.join([*keys, *values])})"
        return f"SELECT *, {net} AS {NET} FROM {indented(delta)}"

    def _grouped(self, rows: str, state: list[str]) -> str:
        keys = [f"{on_one_line(k.expression)} AS {quote(k.id)}" for k in self.shape.aggregate.keys]
        sql = f"SELECT {', '.join([*keys, *state])} FROM {indented(rows)}"
        if keys:
            by = ", ".join(on_one_line(key.expression) for key in self.shape.aggregate.keys)
            sql += f"\nGROUP BY {by}"
        return sql

    def stale(self, storage: TableName, version: int, changes: str, bounds: Ranges) -> str:
        """Return the keys of the groups that lost what may have been an extreme.

        If a deleted value beats or equals the stored one, only the rows can tell; unless an
        inserted one, which is there for certain, beats or equals it in turn.
        """
        beaten = []
        for stored in self.extremes:
            beats = "<" if _is_least(stored) else ">"
            old, new = f"t.{quote(stored.name)}", f"c.{quote(stored.name)}"
            deleted = f"c.{_deleted(stored)}"
            # Without the net change, what was inserted may be what was deleted.
            than_new = beats if self._nets_extremes else f"{beats}="
            beaten.append(
                f"coalesce({deleted} {beats}= {old}, {deleted} IS NOT NULL) "
                f"AND coalesce({deleted} {than_new} {new}, true)"
            )
        # A group that goes needs nothing; without keys it stays, also with no row in it.
        alive = f"coalesce(t.{COUNT}, 0) + c.{COUNT} <> 0" if self.keys else "true"
        keys = ", ".join(f"c.{quote(id)}" for id in self.keys) or "1 AS one"
        return (
            f"SELECT {keys} FROM {changes} AS c LEFT JOIN (SELECT * FROM {storage.sql} "
            f"VERSION AS OF {version} WHERE {' AND '.join(['true', *between(bounds)])}) AS t "
            f"ON {self._same_keys('t', 'c')}\nWHERE {alive} AND ({' OR '.join(beaten)})"
        )

    def merge(
        self,
        storage: TableName,
        changes: str,
        recomputed: str,
        bounds: Ranges,
        stale: str = "",
    ) -> str:
        """Return the statement that brings all touched groups up to date.

        `changes`, `recomputed` and `stale` are relations; the latter two are empty if no group
        has to be recomputed. If there are `stale` groups, those and no others were.
        """
        source = f"SELECT * FROM {changes}"
        if recomputed:
            source = self._with_recomputed(changes, recomputed, stale)
        new = {s.name: self._new_value(s, bool(recomputed)) for s in self.stored}
        added = {s.name: self._first_value(s, bool(recomputed)) for s in self.stored}
        keys = {id: f"s.{quote(id)}" for id in self.keys}
        # Keys stay as they are stored: one of several equal values, such as 0.0 and -0.0.
        old_keys = {id: f"t.{quote(name)}" for id, name in self.keys.items()}
        updates = {
            name: sql
            for name, sql in self.written(old_keys, new).items()
            if name not in self.keys.values()
        }
        same = " AND ".join(f"t.{quote(s.name)} <=> {new[s.name]}" for s in self.stored)
        assigned = ",\n  ".join(f"{quote(name)} = {sql}" for name, sql in updates.items())
        inserts = self.written(keys, added)
        clauses = [
            f"MERGE INTO {storage.sql} AS t USING {indented(source)} AS s",
            f"ON {' AND '.join([self._same_keys('t', 's'), *between(bounds, 't.')])}",
        ]
        if self.keys:
            gone = f"t.{COUNT} + s.{COUNT} = 0"
            if recomputed:
                gone += f" AND {new[COUNT]} = 0"
            clauses.append(f"WHEN MATCHED AND {gone} THEN DELETE")
        clauses += [
            f"WHEN MATCHED AND NOT ({same}) THEN UPDATE SET\n  {assigned}",
            f"WHEN NOT MATCHED AND ({self._is_something()}) THEN INSERT "
            f"({', '.join(map(quote, inserts))})\n  VALUES ({', '.join(inserts.values())})",
        ]
        return "\n".join(clauses)

    def written(
        self,
        keys: Mapping[str, str],
        state: Mapping[str, str],
        moved: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, str]:
        """Return every column of the storage as SQL over given keys and state.

        `moved` is what is added to the values of some measures.
        """
        values: dict[str, Expression] = {id: exp.Var(this=sql) for id, sql in keys.items()}
        raw: dict[str, Expression] = {name: exp.Var(this=sql) for name, sql in state.items()}
        for id, measure in self._measures.items():
            values[id] = substitute(measure.result, raw)
            if id in moved:
                value = exp.Paren(this=values[id])
                values[id] = exp.Add(this=value, expression=exp.Var(this=moved[id]))
        # In this order, and none after one that does not hold: it may be there to spare them.
        visible = " AND ".join(
            f"coalesce({on_one_line(substitute(condition, values))}, false)"
            for condition in self.shape.conditions
        )
        found = {}
        for output, column in zip(self.shape.outputs, self.columns, strict=True):
            sql = on_one_line(substitute(output, values))
            if self.is_filtered and not isinstance(output, exp.Column):
                sql = f"IF({visible}, {sql}, NULL)"
            found[column.stored_as] = stored_value(sql, column, self.partitions)
        found |= {name: keys[id] for id, name in self.keys.items() if name not in found}
        found |= dict(state)
        if self.is_filtered:
            found[VISIBLE] = visible
        return found

    def _same_keys(self, stored: str, changed: str) -> str:
        pairs = [
            f"{stored}.{quote(name)} <=> {changed}.{quote(id)}" for id, name in self.keys.items()
        ]
        return " AND ".join(pairs) or "true"

    def _with_recomputed(self, changes: str, recomputed: str, stale: str) -> str:
        again = [s for s in self.stored if s.name == COUNT or s.follows is not Follows.ADDED]
        columns = [f"r.{quote(s.name)} AS {_again(s)}" for s in again]
        found, joined = f"r.{COUNT} IS NOT NULL", ""
        if stale:
            keys = ", ".join(quote(id) for id in self.keys)
            marked = f"SELECT {keys + ', ' if keys else ''}true AS {_STALE} FROM {stale}"
            joined = f" LEFT JOIN ({marked}) AS l ON {self._same_ids('l')}"
            found = f"IF(l.{_STALE} AND r.{COUNT} IS NULL, {_LOST}, {found})"
        return (
            f"SELECT c.*, {found} AS {_RECOMPUTED}, {', '.join(columns)}\n"
            f"FROM {changes} AS c LEFT JOIN {recomputed} AS r ON {self._same_ids('r')}{joined}"
        )

    def _same_ids(self, other: str) -> str:
        return " AND ".join(f"c.{quote(id)} <=> {other}.{quote(id)}" for id in self.keys) or "true"

    def _new_value(self, stored: Stored, has_recomputed: bool) -> str:
        old, change = f"t.{quote(stored.name)}", f"s.{quote(stored.name)}"
        match stored.follows:
            case Follows.ADDED:
                total = f"CAST({old} + {change} AS {stored.type})"
                if stored.name == COUNT:
                    total = self._as_recomputed(total, has_recomputed)
                    return f"IF({old} + {change} < 0, {_NEGATIVE}, {total})"
                return _checked(stored, total, f"t.{COUNT}", f"s.{COUNT}")
            case Follows.RECOMPUTED:
                return f"s.{_again(stored)}"
        function = "least" if _is_least(stored) else "greatest"
        return self._or_recomputed(stored, f"{function}({old}, {change})", has_recomputed)

    def _first_value(self, stored: Stored, has_recomputed: bool) -> str:
        """Return the value in a group that was not there before."""
        change = f"s.{quote(stored.name)}"
        if stored.name == COUNT:
            count = self._as_recomputed(change, has_recomputed)
            return f"IF({change} <= 0, {_NEGATIVE}, {count})"
        match stored.follows:
            case Follows.ADDED:
                return _checked(stored, change, f"s.{COUNT}")
            case Follows.RECOMPUTED:
                return f"s.{_again(stored)}"
        return self._or_recomputed(stored, change, has_recomputed)

    def _as_recomputed(self, count: str, has_recomputed: bool) -> str:
        """Refuse a count that is not that of the rows which a group was computed from again."""
        if not has_recomputed:
            return count
        again = f"s.{quote(f'{COUNT}_again')}"
        # Of all groups, one without rows is not found; of some, it may be any of the others.
        differs = f"s.{_RECOMPUTED} AND {again} <> {count}"
        if self.always_recomputed:
            differs = f"coalesce({again}, 0) <> {count}"
        return f"IF({differs}, {_DIFFERENT}, {count})"

    def _or_recomputed(self, stored: Stored, sql: str, has_recomputed: bool) -> str:
        return f"IF(s.{_RECOMPUTED}, s.{_again(stored)}, {sql})" if has_recomputed else sql

    def _is_something(self) -> str:
        """Return the condition that a group that is not stored has any change at all."""
        added = [s.name for s in self.stored if s.follows is Follows.ADDED]
        return " OR ".join(f"s.{quote(name)} <> 0" for name in added)


def _is_least(stored: Stored) -> bool:
    return stored.follows is Follows.LEAST


def _checked(stored: Stored, sql: str, *counts: str) -> str:
    """Refuse a sum that overflowed to NULL.

    Spark evaluates it also for rows that have no partner, which show by their counts.
    """
    if not stored.can_overflow:
        return sql
    there = " AND ".join(f"{count} IS NOT NULL" for count in counts)
    return f"IF({there} AND {sql} IS NULL, {_OVERFLOW}, {sql})"


def _deleted(stored: Stored) -> str:
    return quote(f"{stored.name}_deleted")


def _again(stored: Stored) -> str:
    return quote(f"{stored.name}_again")
