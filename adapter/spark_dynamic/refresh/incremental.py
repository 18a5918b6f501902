"""An incremental refresh: read what changed, compute what that changes, write it at once."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from spark_dynamic.apply.groups import Groups
from spark_dynamic.apply.rows import Ranges, Rows
from spark_dynamic.changes.interval import Interval
from spark_dynamic.delta.analysis import old_ranges, within
from spark_dynamic.delta.differentiate import differentiate
from spark_dynamic.delta.facts import Bounds, Changes, Facts
from spark_dynamic.errors import WarehouseError
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName, quote
from spark_dynamic.plan.expressions import equal_columns
from spark_dynamic.plan.nodes import (
    Aggregate,
    Field,
    Join,
    Plan,
    Restrict,
    Scan,
    State,
    fields_of,
    scans,
    walk,
)
from spark_dynamic.refresh.maintenance import Maintenance
from spark_dynamic.refresh.measured import Measured, measure
from spark_dynamic.refresh.shape import (
    ADDED_ONLY,
    MINIMAL,
    MINIMIZE,
    facts_of,
    shape_of,
    shape_text,
)
from spark_dynamic.settings import holding
from spark_dynamic.sql.write import LONGEST, WEIGHT, Relation, Writer
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column, Warehouse

_ROWS, _GROUPS, _STALE, _AGAIN = "__dyn_rows", "__dyn_groups", "__dyn_stale", "__dyn_again"
# Up to so many rows, changed and stored, a MERGE takes as long as its fixed costs.
_FEW = 200_000
_FOR_SMALL_MERGES = {
    # Everything is known to be small: planning again after each part takes longer than the part.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # The few files are rewritten, rather than marked in further files.
    "spark.databricks.delta.merge.deletionVectors.persistent": "false",
}
# Up to so many rows, it takes longer to compile code for each expression than to do without it.
_VERY_FEW = 20_000
_FOR_TINY_MERGES = {
    **_FOR_SMALL_MERGES,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Up to so many changed rows are handed to everyone who looks for them.
_BROADCAST = 50_000
# Up to so many deleted rows are listed for Delta, which leaves the others out of its sort, if
# there are so many others for each: a long list takes its time to plan.
_LISTED, _OTHERS = 10_000, 200
_FOR_FEW_CHANGES = {
    # After each part of an adaptive query Spark plans the rest again, and Delta then lists again
    # all files of every table that has deletion vectors.
    "spark.sql.adaptive.enabled": "false",
}
# Up to so many partitions, adaptive planning has none to unite.
_FEW_PARTITIONS = 32
_KEYS = TableName("", "keys")


@dataclass
class Work:
    """What an incremental refresh starts from, and what it finds out on the way."""

    maintenance: Maintenance
    storage: TableName
    # The version of the storage that the refresh is based on.
    version: int
    refresh: int
    intervals: Mapping[TableName, Interval]
    # The versions of all sources at the cut.
    versions: Mapping[TableName, int]
    # Sources whose old version can no longer be read by time travel.
    beyond_travel: frozenset[TableName] = frozenset()
    rows_changed: dict[str, int] = field(default_factory=dict)
    rows_stored: Callable[[], int] = lambda: 0
    # How many rows of the sources changed, as history counts them; None if it does not tell.
    rows_touched: int | None = None
    shape: str = ""


@dataclass(frozen=True)
class Write:
    """The statement that writes, and the settings to run it with."""

    statement: str
    settings: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def incremental_statement(work: Work, warehouse: Warehouse) -> Iterator[Write | None]:
    """Prepare the one statement that writes; None if the changes cancel out.

    What was computed on the way is kept in cached views, which go with the block.
    """
    views = CachedViews(warehouse)
    with holding(warehouse, settings_for(work, warehouse)):
        try:
            yield IncrementalRefresh(work, views, warehouse).statement()
        finally:
            views.drop()


def settings_for(work: Work, warehouse: Warehouse) -> Mapping[str, str]:
    """Return the settings to compute and write the changes with."""
    if work.rows_touched is None or work.rows_touched > _FEW:
        return {}
    [partitions] = warehouse.rows("SET spark.sql.shuffle.partitions")
    return _FOR_FEW_CHANGES if int(partitions["value"]) <= _FEW_PARTITIONS else {}


class CachedViews:
    """Cached views of one session: computed once, with a size that Spark knows."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._names: list[str] = []

    def cache(self, name: str, query: str, *, is_measured: bool = True) -> str:
        """Make a view of a query, and return its name."""
        self._names.append(name)
        self._warehouse.execute(f"DROP VIEW IF EXISTS {name}")
        # The query that measures it fills it, too; Delta takes no source that is not filled yet.
        how = "CACHE LAZY TABLE" if is_measured else "CACHE TABLE"
        self._warehouse.execute(f"{how} {name} AS\n{query}")
        return name

    def drop(self) -> None:
        """Drop all that are left."""
        while self._names:
            # What went wrong before is worth more than that a view stays.
            with suppress(WarehouseError):
                self._warehouse.execute(f"DROP VIEW IF EXISTS {self._names.pop()}")


class IncrementalRefresh:
    """Finds the one statement of a refresh."""

    def __init__(self, work: Work, views: CachedViews, warehouse: Warehouse) -> None:
        self._work = work
        self._views = views
        self._warehouse = warehouse
        self._deltas: dict[TableName, str] = {}
        self._travels = False
        self._is_net = False
        self._keys = ""

    def statement(self) -> Write | None:
        """Return the statement that writes; None if the changes cancel out."""
        target = self._work.maintenance.target
        plan = self._work.maintenance.plan
        facts = facts_of(plan, self._work.intervals)
        delta = differentiate(plan, facts)
        if delta is not None and (_combines(delta) or _repeats_changes(delta)):
            facts = self._read_changes(facts)
            delta = differentiate(plan, facts)
        if delta is None:
            return None
        shape = shape_of(delta, facts, self._work.maintenance.rows_of)
        appends = shape == ADDED_ONLY and isinstance(target, Rows)
        loses = shape != ADDED_ONLY and _has_extremes(target)
        self._travels = self._must_travel(delta, appends or loses)
        if appends and not self._travels and _reads_old(delta):
            shape = MINIMIZE
        if self._travels:
            delta = differentiate(plan, self._without_vacant(facts, delta)) or delta
        insert_only, self._is_net = shape == ADDED_ONLY, shape == MINIMAL
        self._work.shape = shape_text(shape, self._work.intervals)
        rows = Writer(self, longest=LONGEST).weighted(delta)
        if isinstance(target, Groups):
            return self._merge_groups(target, rows, insert_only)
        return self._write_rows(target, rows, insert_only)

    # Sources

    def relation(self, table: TableName, state: State) -> Relation:
        """Return where a state of a source is read."""
        if table == _KEYS:
            return Relation(self._keys)
        new = f"{table.sql} VERSION AS OF {self._work.versions[table]}"
        if state is State.NEW:
            return Relation(new)
        interval = self._work.intervals[table]
        if state is State.OLD and self._travels:
            return Relation(interval.before)
        changes = interval.rows(self._columns(table), self._is_net)
        delta = self._deltas.get(table) or f"(\n{changes}\n)"
        if state is State.DELTA:
            return Relation(delta, True)
        names = ", ".join(quote(column.name) for column in self._columns(table))
        return Relation(
            f"(SELECT {names}, 1 AS {WEIGHT} FROM {new} "
            f"UNION ALL SELECT {names}, -{WEIGHT} AS {WEIGHT} FROM {delta})",
            True,
        )

    def _columns(self, table: TableName) -> list[Column]:
        """Return the columns of a source that the query uses."""
        used = fields_of(self._work.maintenance.plan, table)
        return [Column(field.name, field.type) for field in used.values()]

    def _read_changes(self, facts: Facts) -> Facts:
        """Read every source's changes once; those without any are left out from here on."""
        found: dict[TableName, Changes] = {}
        for number, (table, changes) in enumerate(facts.items(), 1):
            rows = self._work.intervals[table].rows(self._columns(table))
            view = self._views.cache(f"__dyn_delta_{number}", rows)
            measured = self._measure(view, self._joined_columns(table))
            self._work.rows_changed[str(table)] = measured.rows
            if measured.rows:
                self._deltas[table] = view
                found[table] = Changes(changes.insert_only, measured.bounds)
        return found

    def _without_vacant(self, facts: Facts, delta: Plan) -> Facts:
        """Find out where a source had no row: what is new often has keys that are new, too.

        An old version is slow to read, since its list of files has to be made first. Of what is
        only added to, the newest version tells as well: it has no other rows there than the new
        ones. So many and one more are looked for.
        """
        found = dict(facts)
        for table, range in sorted(old_ranges(delta), key=str):
            changes, view = facts[table], self._deltas.get(table)
            if not changes.insert_only or view is None:
                continue
            where = f"{quote(range.column)} BETWEEN {range.low} AND {range.high}"
            enough = self._work.rows_changed[str(table)] + 1
            [row] = self._warehouse.rows(
                f"SELECT (SELECT count(*) FROM {view} WHERE {where}) AS added, "
                f"(SELECT count(*) FROM (SELECT 1 FROM {self.relation(table, State.NEW).sql} "
                f"WHERE {where} LIMIT {enough})) AS there"
            )
            if int(row["added"]) == int(row["there"]):
                found[table] = replace(found[table], vacant=found[table].vacant | {range})
        return found

    def _joined_columns(self, table: TableName) -> list[Column]:
        """Return the columns whose bounds hold for columns that they are joined with.

        A text's bounds say nothing about a number or a date that it is compared with.
        """
        plan = self._work.maintenance.plan
        types = {f.id: f.type for scan in scans(plan) for f in scan.fields}
        joined: dict[str, set[str]] = {}
        for node in walk(plan):
            for condition in node.conditions if isinstance(node, Join) else ():
                one, other = equal_columns(condition) or ("", "")
                joined.setdefault(one, set()).add(types.get(other, ""))
                joined.setdefault(other, set()).add(types.get(one, ""))
        found = {
            f.name: Column(f.name, f.type)
            for scan in scans(plan)
            if scan.table == table
            for f in scan.fields
            if f.id in joined and (f.type != "string" or joined[f.id] == {"string"})
        }
        return list(found.values())

    def _must_travel(self, delta: Plan, prefers: bool) -> bool:
        """Tell whether old states are read by time travel, rather than as new minus delta.

        An aggregate needs plain rows. What is only appended stays so with them, and no extreme
        seems to leave that comes back; else the newest versions, whose file lists Spark has at
        hand, are cheaper. Where nothing left any source, what is taken away again was counted
        twice: every row with a positive weight is there, so that extremes can be found among them.
        """
        beyond = self._work.beyond_travel
        if any(isinstance(node, Aggregate) for node in walk(delta)):
            if beyond:
                raise NotIncremental("HISTORY_LOST", ", ".join(sorted(map(str, beyond))))
            return True
        return prefers and not beyond

    def _measure(self, view: str, columns: list[Column], where: str = "") -> Measured:
        return measure(self._warehouse, view, columns, where)

    # Rows

    def _write_rows(self, target: Rows, rows: str, insert_only: bool) -> Write | None:
        work = self._work
        ids = work.maintenance.query.columns
        if insert_only:
            return Write(target.append(work.storage, rows, ids, work.refresh))
        net_rows = target.net if self._is_net else target.consolidated
        net = self._views.cache(_ROWS, net_rows(rows, ids))
        columns = [Column(stored.stored_as, stored.type) for stored in target.narrowing]
        deleted = self._measure(net, columns, f"{WEIGHT} < 0")
        if not deleted.rows and not deleted.others:
            return None
        if not deleted.rows:
            return Write(target.append_net(work.storage, net, work.refresh))
        bounds = _ranges(deleted.bounds)
        changed = deleted.rows + deleted.others
        settings = self._for_merge(changed)
        prefixes: list[int] = []
        # Where everything stored is little, there is nothing to leave out.
        few = deleted.rows <= _LISTED and deleted.rows * _OTHERS <= work.rows_stored()
        if few and not settings:
            prefixes = [int(row["prefix"]) for row in self._warehouse.rows(target.prefixes(net))]
        merge = target.merge(
            work.storage,
            work.version,
            net,
            work.refresh,
            bounds,
            are_few=changed <= _BROADCAST,
            prefixes=prefixes,
        )
        return Write(merge, settings)

    # Groups

    def _merge_groups(self, target: Groups, rows: str, insert_only: bool) -> Write | None:
        work = self._work
        changes = self._views.cache(_GROUPS, target.changes(rows, insert_only))
        keys = self._key_columns(target)
        measured = self._measure(changes, keys)
        if not measured.rows:
            return None
        bounds = {target.keys[id]: bound for id, bound in measured.bounds.items()}
        ranges = _ranges(bounds)
        recomputed = lost = ""
        if target.always_recomputed:
            recomputed = self._recomputed(target, changes, measured.bounds)
        elif target.extremes and not insert_only:
            stale = target.stale(work.storage, work.version, changes, ranges)
            view = self._views.cache(_STALE, stale)
            if self._measure(view, []).rows:
                lost = view
                recomputed = self._recomputed(target, view, measured.bounds)
        merge = target.merge(work.storage, changes, recomputed, ranges, lost)
        return Write(merge, self._for_merge(measured.rows))

    def _key_columns(self, target: Groups) -> list[Column]:
        """Return the keys that are plain columns of a source, whose types are known."""
        types = {f.id: f.type for scan in scans(target.shape.aggregate) for f in scan.fields}
        return [Column(id, types[id]) for id in target.keys if id in types]

    def _recomputed(self, target: Groups, keys: str, bounds: Mapping[str, Bounds]) -> str:
        """Return the state of some groups, computed from the rows they have now."""
        self._keys = keys
        aggregate = target.shape.aggregate
        rows: Plan = within(aggregate.input, dict(bounds))
        if aggregate.keys:
            fields = tuple(Field(f"wanted_{key.id}", key.id, "") for key in aggregate.keys)
            expressions = tuple(key.expression for key in aggregate.keys)
            rows = Restrict(rows, expressions, Scan(_KEYS, fields))
        again = target.recomputed(Writer(self).select(rows).sql)
        return self._views.cache(_AGAIN, again, is_measured=False)

    def _for_merge(self, rows: int) -> Mapping[str, str]:
        """Return the settings that make a MERGE quick, if so many rows are few."""
        # To count what is stored may take a statement: not for a MERGE that is large anyway.
        most = rows if rows > _FEW else max(rows, self._work.rows_stored())
        if most > _FEW:
            return {}
        return _FOR_TINY_MERGES if most <= _VERY_FEW else _FOR_SMALL_MERGES


def _has_extremes(target: Rows | Groups) -> bool:
    return isinstance(target, Groups) and bool(target.extremes)


def _combines(delta: Plan) -> bool:
    return any(isinstance(node, Join | Aggregate) for node in walk(delta))


def _repeats_changes(delta: Plan) -> bool:
    """Tell whether the changes of a source stand in a delta twice."""
    read = [scan.table for scan in scans(delta) if scan.state is State.DELTA]
    return len(set(read)) < len(read)


def _reads_old(delta: Plan) -> bool:
    return any(scan.state is State.OLD for scan in scans(delta))


def _ranges(bounds: Mapping[str, Bounds]) -> Ranges:
    return {name: (literal(b.low), literal(b.high)) for name, b in bounds.items()}
