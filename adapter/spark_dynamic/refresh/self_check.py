"""The self-check: is what was computed from changes what the query gives?

Fuzzing covers the rules, not every query that people write. So the first incremental refreshes
of a table are compared with its query where that is cheap, and a few later ones.
"""

from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import Record, Recorded
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.plan import Plan
from spark_dynamic.refresh.verify import verify
from spark_dynamic.warehouse import Warehouse

# So many refreshes after a rebuild are checked, and then one in so many.
FIRST, EVERY = 2, 100
# Above so many rows in the sources, running the query again is not cheap.
CHEAP = 1_000_000


def what_differs(plan: Plan, written: Recorded, cycle: Cycle, warehouse: Warehouse) -> str:
    """Return how a table differs from its query, if it does and was checked at all."""
    if not _is_due(plan, written.record) or not _is_cheap(plan, cycle, warehouse):
        return ""
    try:
        found = verify(plan.request, cycle, warehouse)
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


def _is_due(plan: Plan, record: Record) -> bool:
    if record.refresh_number % EVERY == 0:
        return True
    assert plan.stored is not None
    tail = plan.stored.tail
    before = [r.record for r in (tail.newest, *tail.older) if r is not None]
    since = [r for r in before if r.incarnation == record.incarnation]
    is_whole = len(since) < len(before) or any(r.action != "INCREMENTAL" for r in since)
    return is_whole and sum(r.action == "INCREMENTAL" for r in since) < FIRST


def _is_cheap(plan: Plan, cycle: Cycle, warehouse: Warehouse) -> bool:
    assert plan.cut is not None
    versions = plan.cut.versions()
    tables = plan.analysis.tables()
    return sum(cycle.rows(warehouse, table, versions[table]) for table in tables) <= CHEAP
