"""What a query may consist of. A part that is not listed here is refused, never skipped."""

import re

from sqlglot import exp

from spark_dynamic.plan.nodes import Expression
from spark_dynamic.sql.dialect import SparkDynamic
from spark_dynamic.sql.measures import is_aggregate
from spark_dynamic.support import NotIncremental

# The order of rows is no part of a result, and hints do not change it.
_PARTS: dict[type[Expression], set[str]] = {
    exp.Select: {
        "with_", "expressions", "from_", "joins", "where", "group", "having", "order", "sort",
        "hint",
    },
    exp.Union: {"with_", "this", "expression", "order", "sort"},
    exp.Subquery: {"with_", "this", "alias"},
    exp.With: {"expressions"},
    exp.CTE: {"this", "alias"},
    exp.TableAlias: {"this", "columns"},
    exp.Table: {"this", "db", "catalog", "alias"},
    exp.Join: {"this", "on", "using", "kind"},
    exp.Group: {"expressions", "all"},
}  # fmt: skip
_CODES = {
    "distinct": "DISTINCT", "limit": "LIMIT", "offset": "LIMIT", "qualify": "WINDOW_FUNCTION",
    "windows": "WINDOW_FUNCTION", "laterals": "TABLE_FUNCTION", "recursive": "RECURSION",
    "grouping_sets": "GROUPING_SETS", "cube": "GROUPING_SETS", "rollup": "GROUPING_SETS",
    "totals": "GROUPING_SETS",
}  # fmt: skip

_GENERATORS = {
    "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer",
    "stack", "json_tuple", "variant_explode", "variant_explode_outer",
}  # fmt: skip
# Their value depends on the names of their arguments, or they make several rows of one.
_OTHER_FUNCTIONS = {"window", "session_window", "window_time", "arrays_zip", "struct"}
_EXPLODING = (exp.UDTF, exp.Explode, exp.Inline, exp.Stack)
# Names like those that columns of a plan have.
_LIKE_AN_ID = re.compile(r".*_\d+")


def refuse_other_parts(node: Expression) -> None:
    """Refuse a clause with parts that nothing here reads."""
    known = _PARTS[type(node)]
    for key, value in node.args.items():
        if value and key not in known:
            raise NotIncremental(_CODES.get(key, "SYNTAX_NOT_KNOWN"), key.strip("_").upper())


def refuse_other_expressions(expression: Expression) -> None:
    """Refuse an expression that needs more than the columns of one row, or of one group."""
    for node in expression.walk():
        reason = _reason(node)
        if reason is not None:
            raise reason


def refuse_aggregates(expression: Expression, place: str) -> None:
    """Refuse an aggregate where Spark allows none."""
    if any(is_aggregate(node) for node in expression.walk()):
        raise NotIncremental("SYNTAX_NOT_KNOWN", f"an aggregate in {place}")


def _reason(node: Expression) -> NotIncremental | None:
    if isinstance(node, exp.Window):
        return NotIncremental("WINDOW_FUNCTION", node.this.sql(dialect=SparkDynamic))
    if isinstance(node, (exp.Query, exp.Exists)):
        return NotIncremental("SUBQUERY", "")
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, _EXPLODING) or name in _GENERATORS:
        return NotIncremental("TABLE_FUNCTION", name or type(node).__name__.strip("_").lower())
    if isinstance(node, exp.SubqueryPredicate):
        # any(x) is Spark's bool_or(x).
        return NotIncremental("AGGREGATE_FUNCTION", type(node).__name__.lower())
    if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
        return NotIncremental("SYNTAX_NOT_KNOWN", "* inside an expression")
    if name in _OTHER_FUNCTIONS or isinstance(node, exp.ArraysZip):
        return NotIncremental("SYNTAX_NOT_KNOWN", f"the function {name or 'arrays_zip'}")
    if isinstance(node, (exp.Tuple, exp.Struct)) and _has_bare_columns(node):
        return NotIncremental("SYNTAX_NOT_KNOWN", "a struct whose fields are named by columns")
    if isinstance(node, exp.Lambda) and _has_doubtful_parameters(node):
        return NotIncremental("SYNTAX_NOT_KNOWN", "the name of a lambda's parameter")
    return None


def _has_bare_columns(node: Expression) -> bool:
    return any(isinstance(child.unnest(), exp.Column) for child in node.expressions)


def _has_doubtful_parameters(node: exp.Lambda) -> bool:
    """Tell whether a parameter could be taken for a column, or a column for a parameter.

    Spark does not tell `x` from `X`, sqlglot does.
    """
    names = {parameter.name.lower() for parameter in node.expressions}
    columns = {found.name.lower() for found in node.this.find_all(exp.Column) if not found.table}
    return bool(names & columns) or any(_LIKE_AN_ID.fullmatch(name) for name in names)
