"""What a query reads, and whether Spark agrees that it can be pinned."""

import hashlib
from dataclasses import dataclass, replace

from spark_dynamic.apply.storage import generations, is_storage_name, storage_name
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.frontier.compare import may_touch_columns
from spark_dynamic.frontier.cut import Upstream
from spark_dynamic.frontier.history import between, records
from spark_dynamic.frontier.record import Verdict
from spark_dynamic.names import TableName
from spark_dynamic.refresh.char_check import pads_otherwise
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.failures import failure, watched
from spark_dynamic.refresh.functions import definitions
from spark_dynamic.refresh.request import Request
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.char_columns import all_typed, are_known, find_char_columns
from spark_dynamic.sql.dialect import rendered
from spark_dynamic.sql.encryption import ENCRYPTS, encrypts_alike
from spark_dynamic.sql.guard import (
    Explained,
    agree,
    beyond_plans,
    explain,
    volatile_functions,
)
from spark_dynamic.sql.pin import MODEL_PROPERTY, Query, pinned
from spark_dynamic.sql.references import Unreadable
from spark_dynamic.sql.resolve import resolve
from spark_dynamic.sql.spark_functions import CLOCK
from spark_dynamic.support import NotIncremental, Reason, reason
from spark_dynamic.warehouse import Relation, Warehouse

# How texts are read and judged. A new number makes every stored verdict be given again.
_READING = 7
# Without it, no plan shows which columns are of type char.
_READ_PADDED = "spark.sql.readSideCharPadding"
# Spark's names for errors that another try of the same text would meet again.
_ABOUT_THE_TEXT = (
    "EXPLAIN_FAILED", "PARSE_", "UNRESOLVED_", "AMBIGUOUS_", "UNSUPPORTED_", "INVALID_",
    "DATATYPE_MISMATCH", "MISSING_", "INCOMPATIBLE_",
)  # fmt: skip


@dataclass(frozen=True)
class Analysis:
    """The sources of a query: base tables, dynamic tables, and what has no versions."""

    query: Query | None
    text_hash: str
    bases: tuple[TableName, ...] = ()
    upstreams: tuple[Upstream, ...] = ()
    without_versions: tuple[TableName, ...] = ()
    unreadable: str = ""
    relations: tuple[Relation, ...] = ()
    # The hash that older engines gave, which looked at declared functions alone, if it differs.
    former_hash: str = ""

    def tables(self) -> set[TableName]:
        """Return every table that has versions."""
        return set(self.bases) | {upstream.storage for upstream in self.upstreams}

    @classmethod
    def of_text(cls, text: str, unreadable: str) -> "Analysis":
        """Return what is left to know of a text that could not be read."""
        return cls(None, _hash([text]), unreadable=unreadable)


def analyse(request: Request, cycle: Cycle, warehouse: Warehouse) -> Analysis:
    """Find the sources of a model's query."""

    existing = cycle.catalog.tables(warehouse, request.view)
    own_storage = {storage_name(request.view, g) for g in generations(request.view, existing)}

    def lookup(name: TableName) -> Relation | None:
        if name == request.view or name in own_storage:
            raise EngineError(
                "READS_ITSELF",
                f"The query of {name} reads {name} itself ({{{{ this }}}} or its own name). "
                "A dynamic table is defined by its sources alone; remove the reference.",
            )
        return cycle.catalog.relation(warehouse, name)

    try:
        query = resolve(request.sql, request.schema, lookup, request.settings)
    except Unreadable as error:
        return Analysis.of_text(request.sql, str(error))
    bases, upstreams, others, relations = [], [], [], []
    for table in sorted(query.tables(), key=str):
        relation = cycle.catalog.relation(warehouse, table)
        assert relation is not None
        relations.append(relation)
        if not relation.is_delta:
            others.append(table)
        elif is_storage(relation):
            upstreams.append(upstream_of(table, cycle, warehouse))
        else:
            bases.append(table)
    declared, functions, former_hash = request.config.immutable_functions, list[str](), ""
    if declared:
        functions = definitions(declared, query, request.schema, cycle, warehouse)
        former = [cycle.catalog.function_text(warehouse, name) for name in declared]
        former_hash = _hash([*query.texts(), *former])
    return Analysis(
        query,
        _hash([*query.texts(), *functions]),
        tuple(bases),
        tuple(upstreams),
        tuple(others),
        relations=tuple(relations),
        former_hash=former_hash,
    )


def _hash(texts: list[str]) -> str:
    return hashlib.sha256("\x00".join(texts).encode()).hexdigest()


def is_storage(relation: Relation) -> bool:
    """Tell whether a table is what is behind a dynamic table."""
    return MODEL_PROPERTY in relation.properties and is_storage_name(relation.name)


def upstream_of(storage: TableName, cycle: Cycle, warehouse: Warehouse) -> Upstream:
    """Return a dynamic table that is read, with its newest records."""
    view = storage.sibling(storage.name.rpartition("__dyn")[0])
    commits = cycle.catalog.history(warehouse, storage)
    found = records(commits)
    if not found and commits and commits[-1].version > 0:
        found = records(cycle.catalog.history(warehouse, storage, since=0))
    return Upstream(view, storage, tuple(found))


def judge(
    request: Request, analysis: Analysis, known: Verdict | None, cycle: Cycle, warehouse: Warehouse
) -> Verdict:
    """Let Spark compare the pinned text with the original, once per text and settings."""
    settings = ",".join(f"{key}={value}" for key, value in sorted(request.settings.items()))
    declared = ",".join(request.config.immutable_functions)
    columns = _hash([repr((str(r.name), r.columns)) for r in analysis.relations])
    key = _hash([str(_READING), analysis.text_hash, settings, declared, columns])
    newest = {
        table: cycle.catalog.history(warehouse, table)[0].version for table in analysis.tables()
    }
    texts = {
        relation.name: newest[relation.name]
        for relation in analysis.relations
        if relation.name in newest and any("string" in c.type for c in relation.columns)
    }
    chars_at = {str(table): version for table, version in texts.items()}
    if known is not None and known.key == key and _same_chars(known, texts, cycle, warehouse):
        return replace(known, chars_at=chars_at)
    if analysis.query is None:
        return Verdict(key, columns, "TEXT_NOT_READABLE", analysis.unreadable)
    original = explain(warehouse, request.sql)
    try:
        changed = explain(warehouse, pinned(analysis.query, newest))
    except WarehouseError as error:
        # What is not about the text may pass: then the next run asks again.
        lasting = error.condition.startswith(_ABOUT_THE_TEXT)
        return Verdict(key if lasting else "", columns, "PLANS_DIFFER", str(error).splitlines()[0])
    # Views are written out there, so that their calls are seen, too.
    fixed = {ENCRYPTS} if encrypts_alike(analysis.query.all_texts()) else set()
    whole = replace(
        original,
        calls=original.calls | changed.calls,
        functions=original.functions - fixed,
    )
    volatile = tuple(volatile_functions(whole, request.config.immutable_functions))
    if analysis.query.clock_literals():
        volatile = tuple(sorted({*volatile, "current_date"}))
    difference = _difference(analysis, original, changed, bool(volatile))
    if difference:
        return Verdict(key, columns, "PLANS_DIFFER", difference, volatile)
    if volatile:
        at_clock = _answers_clock(analysis.query, newest, original, warehouse)
        return Verdict(key, columns, volatile=volatile, at_clock=at_clock)
    chars = {table: dict(found) for table, found in original.chars.items()}
    if chars:
        columns = _hash([columns, repr(sorted(chars.items()))])
    own = watched(warehouse)
    try:
        text = pinned(analysis.query, newest)
        misread = _misread(request, analysis, original, text, own)
        chars_differ = _char_problem(request, analysis, chars, newest, own)
    except Exception as error:
        # The next engine may have it mended, so the next run asks again.
        return Verdict("", columns, not_incremental=failure(error, own), planning_failed=True)
    return Verdict(
        key,
        columns,
        not_incremental=misread,
        chars=chars,
        chars_differ=chars_differ,
        chars_at=chars_at,
    )


def _answers_clock(
    query: Query, versions: dict[TableName, int], original: Explained, warehouse: Warehouse
) -> bool:
    """Tell whether a text means the same with a moment in the place of all its clocks."""
    if not original.functions & CLOCK or query.clock_literals():
        return False
    try:
        answered = explain(warehouse, pinned(query, versions, warehouse.now()))
    except WarehouseError:
        return False
    if answered.functions & CLOCK or answered.columns != original.columns:
        return False
    return agree(original, answered, True)


def _misread(
    request: Request, analysis: Analysis, original: Explained, text: str, warehouse: Warehouse
) -> str:
    """Return what shows that the text was not read as Spark reads it, if anything.

    sqlglot's own rendering of the pinned text has to mean the same, and Spark's plan must not
    have an operator that ours has not.
    """
    assert analysis.query is not None
    known = {relation.name: relation.columns for relation in analysis.relations}
    try:
        query = bind(analysis.query, request.schema, lambda table: known[table])
    except NotIncremental:
        # It is refused anyway, with a better reason.
        return ""
    try:
        regenerated = explain(warehouse, rendered(text))
    except (WarehouseError, Unreadable) as error:
        return str(error).splitlines()[0]
    if regenerated.columns != original.columns or not agree(original, regenerated, False):
        return "the text is rendered with another meaning"
    return beyond_plans(original, query.aggregations)


def _same_chars(
    known: Verdict, texts: dict[TableName, int], cycle: Cycle, warehouse: Warehouse
) -> bool:
    """Tell whether the same columns as before are of type char, which no description tells."""
    for table, version in texts.items():
        name = str(table)
        then = known.chars_at.get(name, version)
        if then == version:
            continue
        history = cycle.catalog.history(warehouse, table, since=then)
        since = between(history, then, version)
        if since is not None and not may_touch_columns(since):
            continue
        found = find_char_columns(warehouse, table.sql)
        if found.get(name, {}) != known.chars.get(name, {}):
            return False
    return True


def _char_problem(
    request: Request,
    analysis: Analysis,
    chars: dict[str, dict[str, str]],
    versions: dict[TableName, int],
    warehouse: Warehouse,
) -> str:
    """Return what speaks against refreshing a query over `char(n)` columns, if anything."""
    if request.settings.get(_READ_PADDED, "true").lower() != "true":
        return f"{_READ_PADDED} is off"
    if not chars:
        return ""
    if not are_known(chars):
        return "it reads one inside of another type"
    assert analysis.query is not None
    known = all_typed(analysis.relations, chars)
    try:
        query = bind(analysis.query, request.schema, lambda table: known[table])
    except NotIncremental:
        # It is refused anyway, with a better reason.
        return ""
    return "it compares one" if pads_otherwise(query, versions, warehouse) else ""


def _difference(
    analysis: Analysis, original: Explained, changed: Explained, volatile: bool
) -> str:
    """Return what speaks against letting the pinned text stand for the original, if anything."""
    query = analysis.query
    assert query is not None
    unseen = original.relations - query.tables()
    if unseen:
        return f"it also reads {', '.join(sorted(str(table) for table in unseen))}"
    if original.unnamed != query.path_mentions():
        return "it reads something that has no name"
    missed = changed.unpinned & analysis.tables()
    if missed:
        return f"not every mention of {', '.join(sorted(map(str, missed)))} was found"
    if original.columns != changed.columns:
        return "the columns differ"
    return "" if agree(original, changed, volatile) else "the plans differ"


def is_pinned(analysis: Analysis, verdict: Verdict) -> bool:
    """Tell whether a cut says everything that the rows of a query depend on."""
    fixed = CLOCK if verdict.at_clock else frozenset[str]()
    is_fixed = verdict.passed and set(verdict.volatile) <= fixed
    return is_fixed and not analysis.without_versions


def always_full(analysis: Analysis, verdict: Verdict) -> Reason | None:
    """Return why a query has to be refreshed in full on every run, if it has to."""
    if not verdict.passed:
        return reason(verdict.code, verdict.detail)
    if analysis.without_versions:
        names = ", ".join(str(table) for table in analysis.without_versions)
        return reason("SOURCE_NOT_DELTA", names)
    if verdict.volatile:
        clock = [name for name in verdict.volatile if name in CLOCK]
        only_clock = len(clock) == len(verdict.volatile)
        names = ", ".join(name if " " in name else f"{name}()" for name in verdict.volatile)
        return reason("CLOCK_FUNCTION" if only_clock else "VOLATILE_FUNCTION", names)
    return None
