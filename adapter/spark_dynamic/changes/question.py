"""A change query that was read: its sources, its columns, its plan, and what names its rows."""

from dataclasses import dataclass, replace

from spark_dynamic.apply.groups import Groups
from spark_dynamic.apply.identity import row_hash
from spark_dynamic.apply.shape import is_exact
from spark_dynamic.apply.storage import stored_columns
from spark_dynamic.catalog import describe_query
from spark_dynamic.changes.asked import ChangeRead
from spark_dynamic.changes.columns import check_names
from spark_dynamic.changes.layout import Layout, looks_the_same
from spark_dynamic.changes.row_ids import Describe, Identified, Keys, identified, naming_scans
from spark_dynamic.config import DynamicTableConfig
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import Output, Plan, Project, Query, column, scans
from spark_dynamic.plan.types import with_union_types
from spark_dynamic.refresh.analyse import Analysis, always_full, analyse, judge
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.failures import failure, watched
from spark_dynamic.refresh.maintenance import Maintenance, Pinned, maintain
from spark_dynamic.refresh.request import Request
from spark_dynamic.sql.pin import pinned
from spark_dynamic.sql.write import Writer
from spark_dynamic.support import NotIncremental, Reason, reason
from spark_dynamic.warehouse import Column, Warehouse


@dataclass(frozen=True)
class Question:
    """A change query, understood. Its plan has the columns of the layout."""

    read: ChangeRead
    analysis: Analysis
    layout: Layout
    plan: Plan | None
    # Why there is no plan, so that the text itself has to run at both positions.
    why_not: Reason | None = None
    # Of the plan: the same for texts that mean the same. Spark has agreed with how it was read.
    fingerprint: str = ""
    # Whether rows are known to be the same whenever they are computed, to the last digit.
    is_exact: bool = False

    def text_at(self, versions: dict[TableName, int]) -> str:
        """Return the query's own text at some versions, with the columns of the layout."""
        assert self.analysis.query is not None
        return self.layout.of_text(pinned(self.analysis.query, versions))


def sources_of(read: ChangeRead, cycle: Cycle, warehouse: Warehouse) -> Analysis:
    """Find what a change query reads."""
    return analyse(_request(read), cycle, warehouse)


def ask(read: ChangeRead, cycle: Cycle, warehouse: Warehouse) -> Question:
    """Read a change query. Raises EngineError if its changes cannot be told at all."""
    analysis = sources_of(read, cycle, warehouse)
    known = cycle.verdicts.get(analysis.text_hash)
    verdict = judge(_request(read), analysis, known, cycle, warehouse)
    cycle.verdicts[analysis.text_hash] = verdict
    refusal = always_full(analysis, verdict)
    if refusal is not None or analysis.query is None:
        raise not_known(refusal)
    versions = {
        table: cycle.catalog.history(warehouse, table)[0].version for table in analysis.tables()
    }
    columns = stored_columns(describe_query(warehouse, pinned(analysis.query, versions)))
    shown = tuple(Column(stored.name, stored.type) for stored in columns)
    check_names(shown)
    _check_types(shown)
    layout = Layout(shown, _unique_key(read, shown), _label("unique_key", read.unique_key))
    own = watched(warehouse)
    try:
        kept = maintain(analysis, verdict, read.schema, versions, own)
    except NotIncremental as refused:
        return _without_plan(read, analysis, layout, refused.reason)
    except WarehouseError as error:
        # Spark refuses a query that we derived from one that it accepts.
        why = reason("OPERATORS_DIFFER", str(error).splitlines()[0])
        return _without_plan(read, analysis, layout, why)
    except Exception as error:
        why = reason("PLANNING_FAILED", failure(error, own))
        return _without_plan(read, analysis, layout, why)
    writer = Writer(Pinned(versions))
    found = _with_plan(read, analysis, layout, kept.query, writer, warehouse)
    return replace(found, fingerprint=kept.fingerprint, is_exact=_is_exact(kept))


def _is_exact(kept: Maintenance) -> bool:
    """Tell whether groups are the same whenever they are computed.

    Sums of floating-point numbers depend on the order of rows, and of values that are equal and
    look different any one may be shown.
    """
    if not isinstance(kept.target, Groups):
        # Sums of floating-point numbers below other operators have no plan.
        return True
    aggregate, types = kept.target.shape.aggregate, kept.target.types
    added_up = {m.id: m for m in aggregate.measures if m.function in ("sum", "avg")}
    return all(
        is_exact(added_up[id], types[id]) if id in added_up else looks_the_same(types[id].result)
        for id in aggregate.columns
    )


def not_known(why: Reason | None) -> EngineError:
    """Return the error of a query whose changes cannot be told."""
    sentence = f"What changed in this query cannot be told. {why}"
    return EngineError("CHANGES_NOT_KNOWN", sentence, why.remedy if why else "")


def _request(read: ChangeRead) -> Request:
    # No name is read by a query that has none.
    nobody = TableName(read.schema, "")
    config = DynamicTableConfig()
    return Request("changes", nobody, read.sql, read.schema, config, read.settings, "")


def _check_types(columns: tuple[Column, ...]) -> None:
    try:
        row_hash((known.name, known.type) for known in columns)
    except NotIncremental as refused:
        raise not_known(refused.reason) from refused


def _unique_key(read: ChangeRead, columns: tuple[Column, ...]) -> tuple[tuple[str, str], ...]:
    places = {known.name.lower(): i for i, known in enumerate(columns)}
    unknown = [name for name in read.unique_key if name.lower() not in places]
    if unknown:
        names = ", ".join(known.name for known in columns)
        raise EngineError(
            "COLUMN_UNKNOWN",
            f"unique_key names {', '.join(unknown)}. Expected columns of the query: {names}.",
        )
    found = [places[name.lower()] for name in read.unique_key]
    return tuple((f"c{place}", columns[place].type) for place in found)


def _label(kind: str, names: tuple[str, ...]) -> str:
    return f"{kind} ({', '.join(names)})" if names else ""


def _without_plan(read: ChangeRead, analysis: Analysis, layout: Layout, why: Reason) -> Question:
    if read.row_keys and not layout.keys:
        raise EngineError(
            "ROW_KEYS_NOT_USABLE",
            f"Ids of source rows cannot travel through this query. {why} Name columns of the "
            "result in unique_key instead.",
        )
    return Question(read, analysis, layout, None, why)


def _with_plan(
    read: ChangeRead,
    analysis: Analysis,
    layout: Layout,
    query: Query,
    writer: Writer,
    warehouse: Warehouse,
) -> Question:
    def describe(plan: Plan) -> tuple[Column, ...]:
        return describe_query(warehouse, writer.select(plan).sql)

    outputs = tuple(Output(f"c{i}", column(id)) for i, id in enumerate(query.columns))
    keys = source_keys(read, analysis)
    named = None if layout.keys else identified(query.plan, keys)
    if named is None:
        if read.row_keys and not layout.keys:
            raise _incomplete(query.plan, keys)
        return Question(read, analysis, layout, Project(query.plan, outputs))
    return _named(Question(read, analysis, layout, None), named, outputs, describe)


def _named(
    question: Question,
    named: Identified,
    outputs: tuple[Output, ...],
    describe: Describe,
) -> Question:
    plan = with_union_types(named.plan, describe)
    ids = tuple(Output(f"k{i}", column(id)) for i, id in enumerate(named.ids))
    types = [known.type for known in describe(Project(plan, ids))] if ids else []
    layout = replace(
        question.layout,
        keys=tuple((output.id, type) for output, type in zip(ids, types, strict=True)),
        declared=_declared(question, plan),
        is_named=True,
    )
    return replace(question, layout=layout, plan=Project(plan, (*outputs, *ids)))


def _declared(question: Question, plan: Plan) -> str:
    """Say which keys that somebody declared name the rows of a plan."""
    read, tables = question.read, _tables(question.analysis)
    used = {scan.table for scan in naming_scans(plan)}
    given = sorted(str(name) for name in read.row_keys if tables[name] in used)
    taken = [
        _label(f"unique_key of {view}", key)
        for view, key in read.upstream_keys.items()
        if tables.get(view) in used
    ]
    labels = [_label("row_keys", tuple(given)), *sorted(taken)]
    return " and ".join(label for label in labels if label)


def _tables(analysis: Analysis) -> dict[TableName, TableName]:
    """Return the tables that are read, also by the views of dynamic tables."""
    tables = {table: table for table in analysis.bases}
    for upstream in analysis.upstreams:
        tables |= {upstream.view: upstream.storage, upstream.storage: upstream.storage}
    return tables


def _columns(analysis: Analysis) -> dict[TableName, dict[str, Column]]:
    """Return the columns of all tables by their names in lower case, as views show them."""
    found = {
        relation.name: {column.name.lower(): column for column in relation.columns}
        for relation in analysis.relations
    }
    for upstream in analysis.upstreams:
        stored = found[upstream.storage]
        shown = upstream.records[0].record.columns if upstream.records else ()
        # Some have another name in storage than in the view.
        renamed = {c.name.lower(): stored.get(c.stored_as.lower()) for c in shown}
        stored |= {name: column for name, column in renamed.items() if column is not None}
    return found


def source_keys(read: ChangeRead, analysis: Analysis) -> Keys:
    """Return the declared keys by the tables whose rows they name."""
    tables, known = _tables(analysis), _columns(analysis)
    found: dict[TableName, tuple[Column, ...]] = {}
    for view, keys in read.upstream_keys.items():
        columns = known.get(tables.get(view, view), {})
        if not {key.lower() for key in keys} <= columns.keys():
            raise EngineError(
                "ROW_KEYS_NOT_USABLE",
                f"Rows were named by the unique_key of {view} so far, {', '.join(keys)}, which it "
                "no longer has. Build the stream again.",
            )
        found[tables[view]] = tuple(columns[key.lower()] for key in keys)
    for name, keys in read.row_keys.items():
        if name not in tables:
            read_here = ", ".join(sorted(map(str, tables)))
            raise EngineError(
                "ROW_KEYS_NOT_USABLE",
                f"row_keys names {name}. Expected a table that the query reads: {read_here}.",
            )
        columns = known[tables[name]]
        unknown = [key for key in keys if key.lower() not in columns]
        if unknown or not keys:
            raise EngineError(
                "COLUMN_UNKNOWN",
                f"row_keys names {', '.join(unknown) or 'no column'} of {name}. Expected columns "
                f"of it: {', '.join(dict.fromkeys(c.name for c in columns.values()))}.",
            )
        found[tables[name]] = tuple(columns[key.lower()] for key in keys)
    return found


def _incomplete(plan: Plan, keys: Keys) -> EngineError:
    missing = sorted({str(scan.table) for scan in scans(plan)} - set(map(str, keys)))
    return EngineError(
        "ROW_KEYS_NOT_USABLE",
        f"row_keys has no key of {', '.join(missing)}, so rows that come from there have no id. "
        "Add it, or name columns of the result in unique_key.",
    )
