"""One form for Spark's optimised plans that mean the same.

Spark numbers columns, subqueries and expressions that it computes once anew each time, and keeps
some of the renamings that a view brings along, such as those in the first branch of a UNION.
"""

import re
from collections import Counter

_NUMBER = re.compile(r"#\d+L?|(?<=CTERelationRef )\d+|(?<=CTERelationDef )\d+|_common_expr_\d+")
_LEAF = re.compile(r"^[\s:+-]*Relation \S+?\[([^\]]*)\]", re.MULTILINE)
_COPY = re.compile(r"(?<![\w`.])(\w+)(#\d+L?) AS \1(#\d+L?)(?=[,\]])")
_PROJECTED_LEAF = re.compile(
    r"^([\s:+-]*)Project \[([^\]]*)\]\n[\s:]*\+- (Relation \S+?\[([^\]]*)\].*)$", re.MULTILINE
)


def normalise(plan: str) -> str:
    """Number columns and subqueries by first appearance, without columns that are mere copies.

    >>> normalise("Project [a#17L, b#4 AS c#9]\\n+- Scan [a#17L, b#4]")
    'Project [a#0, b#1 AS c#2]\\n+- Scan [a#0, b#1]'

    >>> normalise("Union\\n:- Project [a#7 AS a#9]\\n:  +- Relation t[a#7] parquet\\n+- Range")
    'Union\\n:- Relation t[a#0] parquet\\n+- Range'
    """
    seen: dict[str, str] = {}

    def renumber(match: re.Match[str]) -> str:
        return seen.setdefault(match.group(), f"#{len(seen)}")

    plan = _PROJECTED_LEAF.sub(_without_projection, _without_copies(plan))
    # Whether a join was written with a comma makes no difference.
    return _NUMBER.sub(renumber, plan).replace("Join Cross", "Join Inner")


def _without_copies(plan: str) -> str:
    """Call a copy of a column like the column.

    Only where the column comes from one place in the plan: if it came from two, as in a join of a
    table with itself, the number of the copy could be all that tells its two sides apart.
    """
    columns = [column for leaf in _LEAF.findall(plan) for column in leaf.split(",")]
    places = Counter(column.rpartition("#")[2] for column in columns)
    originals = {
        copy: original
        for _, original, copy in _COPY.findall(plan)
        if places[original.removeprefix("#")] == 1
    }

    def merged(match: re.Match[str]) -> str:
        name, original, copy = match.groups()
        return f"{name}{original}" if copy in originals else match.group()

    plan = _COPY.sub(merged, plan)
    return _NUMBER.sub(lambda match: originals.get(match.group(), match.group()), plan)


def _without_projection(match: re.Match[str]) -> str:
    """Leave out a projection to all columns of a table, in their order."""
    indent, projected, leaf, columns = match.groups()
    return f"{indent}{leaf}" if projected.split(", ") == columns.split(",") else match.group()
