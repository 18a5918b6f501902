"""The self-check: compare an incremental result with the query.

Fuzzing covers the rules, not every query that people write. So the first incremental refreshes
of a table are compared with its query where that is cheap, and a few later ones, also those that
found nothing to write. So is the first build of groups: it is written from the plan, together
with the hidden state, and not from the text as it is.
"""

from spark_dynamic.apply.groups import Groups
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import Record, Recorded
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan
from spark_dynamic.refresh.verify import verify
from spark_dynamic.warehouse import Commit, Warehouse

# So many refreshes after a rebuild are checked, and then one in so many.
FIRST, EVERY = 2, 100
# Above so many rows in the sources, running the query again is not cheap.
CHEAP = 1_000_000

_REBUILDS = ("FULL", "REINITIALIZE")


def what_differs(plan: Plan, written: Recorded, cycle: Cycle, warehouse: Warehouse) -> str:
    """Return how a table differs from its query, if it does and was checked at all."""
    if _touches_twice(written.commit):
        return "several of its stored rows stand for the same one"
    if not _is_due(plan, written.record) or not _is_cheap(plan, cycle, warehouse):
        return ""
    try:
        found = verify(plan.request, cycle, warehouse, plan.maintenance)
    except EngineError as error:
        if error.code != "TOO_MANY_DIFFERENCES":
            raise
        return error.sentence.rstrip(".")
    if found.is_equal:
        return ""
    copies, row = found.differing[0]
    which = "is there but should not be" if copies > 0 else "is missing"
    example = dict(zip(found.columns, row, strict=True))
    return f"{len(found.differing)} rows, of which {example} {which}"


def _touches_twice(commit: Commit) -> bool:
    """Tell whether a MERGE found more rows than it looked for, as Delta counts them."""
    sought, *found = (
        int(commit.metrics.get(f"num{what}", 0))
        for what in ("SourceRows", "TargetRowsInserted", "TargetRowsUpdated", "TargetRowsDeleted")
    )
    return 0 < sought < sum(found)


def _is_due(plan: Plan, record: Record) -> bool:
    tail = plan.stored.tail if plan.stored else None
    before = [r.record for r in (tail.newest, *tail.older) if r is not None] if tail else []
    if not _followed_changes(record):
        is_new = all(r.fingerprint != record.fingerprint for r in before)
        is_new |= any(r.distrusted == record.fingerprint for r in before)
        are_groups = plan.maintenance and isinstance(plan.maintenance.target, Groups)
        return FIRST > 0 and is_new and bool(are_groups)
    if record.refresh_number % EVERY == 0:
        return True
    since = [r for r in before if r.incarnation == record.incarnation]
    # Only if the rebuild is among them are they all the refreshes since then.
    is_whole = len(since) < len(before) or any(r.action in _REBUILDS for r in since)
    return is_whole and sum(map(_followed_changes, since)) < FIRST


def _followed_changes(record: Record) -> bool:
    """Tell whether a refresh computed a delta, even if nothing was left to write."""
    return record.action == "INCREMENTAL" or record.has_empty_delta


def _is_cheap(plan: Plan, cycle: Cycle, warehouse: Warehouse) -> bool:
    assert plan.cut is not None
    versions = plan.cut.versions()
    tables = plan.analysis.tables()
    # A rebuilt table's sources may be others than those of its old record.
    record = plan.record if plan.decision.action not in _REBUILDS else None
    return sum(cycle.rows(warehouse, t, versions[t], record) for t in tables) <= CHEAP
