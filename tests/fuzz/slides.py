"""Windows of net changes that move: what the MERGE leaves is what a change query would show.

A window from one point to another becomes the one between two later points, once by what happened
at both ends, once by comparing it with the whole.
"""

from collections import Counter
from collections.abc import Callable

from fuzz.duck import canonical
from fuzz.history import SCHEMA, DuckWarehouse, duck_text
from fuzz.schemas import Row
from spark_dynamic.apply.net_slide import NetSlide
from spark_dynamic.apply.storage import stored_columns, view_query
from spark_dynamic.catalog import describe_query
from spark_dynamic.changes.layout import Layout
from spark_dynamic.names import TableName

KEPT = TableName(SCHEMA, "kept")
# The changes between two points.
Between = Callable[[dict[str, int], dict[str, int]], str]


def check_slide(
    duck: DuckWarehouse,
    layout: Layout,
    between: Between,
    begins: tuple[dict[str, int], dict[str, int]],
    ends: tuple[dict[str, int], dict[str, int]],
    only_inserts: bool = False,
) -> None:
    """Move a window from its old points to its new ones."""
    old, new = (between(begin, end) for begin, end in zip(begins, ends, strict=True))
    columns = stored_columns(describe_query(duck, old))
    duck.keep(f"{KEPT.name}_v0", duck_text(old))
    stored = view_query(columns, KEPT, version=0)
    wanted = _bag(duck.answer(new))
    at_both_ends = (between(*ends),), (between(*begins),)
    as_a_whole = (new,), (stored,)
    for added, removed in (at_both_ends, as_a_whole):
        if only_inserts and (added, removed) == at_both_ends:
            continue
        slide = NetSlide(added=added, removed=removed, layout=layout, only_inserts=only_inserts)
        statement = slide.statement(KEPT, 0, columns)
        source = statement.partition(" USING (\n")[2].partition("\n) AS s\nON ")[0]
        found = duck.answer(source)
        gone = {row[-2] for row in found if row[-1]}
        left = [row for row in duck.answer(stored) if row[-1] not in gone]
        left += [row[:-1] for row in found if not row[-1]]
        assert _bag(left) == wanted, f"slide\n{statement}"


def _bag(rows: list[Row]) -> Counter[Row]:
    return Counter(canonical(row) for row in rows)
