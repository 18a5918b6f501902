"""Aggregate functions: which of them can be kept up to date, and in which form."""

from sqlglot import exp

from spark_dynamic.plan.nodes import Expression
from spark_dynamic.sql.dialect import SparkDynamic
from spark_dynamic.support import NotIncremental

_KNOWN: dict[type[Expression], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}

# What may stand in an aggregate's parentheses beside its argument.
_NO_VALUES = (exp.Star, exp.Order, exp.Limit, exp.HavingMax, exp.IgnoreNulls, exp.RespectNulls)

# Spark's aggregate functions that sqlglot takes for plain ones.
_OTHERS = {
    "every", "some", "bool_and", "bool_or", "try_sum", "try_avg", "std", "mean", "percentile",
    "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope",
    "regr_sxx", "regr_sxy", "regr_syy", "kurtosis", "skewness", "bit_and", "bit_or", "bit_xor",
    "collect_list", "collect_set", "array_agg", "count_min_sketch", "histogram_numeric",
    "hll_sketch_agg", "hll_union_agg", "bitmap_construct_agg", "bitmap_or_agg",
    "bitmap_and_agg", "schema_of_json_agg", "schema_of_variant_agg", "listagg", "string_agg",
    "approx_top_k", "approx_top_k_accumulate", "approx_top_k_combine", "max_by", "min_by",
    "mode", "median", "any_value", "first_value", "last_value", "first", "last", "measure",
    "theta_sketch_agg", "theta_union_agg", "theta_intersection_agg", "kll_sketch_agg_bigint",
    "kll_sketch_agg_float", "kll_sketch_agg_double", "kll_merge_agg_bigint",
    "kll_merge_agg_float", "kll_merge_agg_double", "product", "vector_avg", "vector_sum",
    "tuple_sketch_agg_double", "tuple_sketch_agg_integer", "tuple_union_agg_double",
    "tuple_union_agg_integer", "tuple_intersection_agg_double", "grouping", "grouping_id",
    "tuple_intersection_agg_integer", "st_union_agg", "try_variant_agg",
}  # fmt: skip


def is_aggregate(node: Expression) -> bool:
    """Tell whether a function aggregates; a window function does not."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _OTHERS
    return isinstance(node, exp.AggFunc)


def read_measure(node: Expression) -> tuple[str, Expression | None]:
    """Return function and argument of an aggregate, its FILTER made part of the argument.

    >>> import sqlglot
    >>> read_measure(sqlglot.parse_one("count(*) FILTER (WHERE a > 1)"))[1].sql()
    'CASE WHEN a > 1 THEN 1 END'
    """
    if isinstance(node, exp.Filter):
        function, argument = read_measure(node.this)
        condition = node.expression.this
        return function, _when(condition, argument or exp.Literal.number(1))
    if isinstance(node, exp.CountIf):
        return "count", _when(node.this, exp.Literal.number(1))
    function = _KNOWN.get(type(node), "")
    argument = node.this if isinstance(node.this, exp.Expr) else None
    if not function or node.args.get("expressions") or not isinstance(argument, exp.Expr):
        raise _refused(node)
    if isinstance(argument, exp.Distinct):
        raise NotIncremental("AGGREGATE_DISTINCT", f"{function}(DISTINCT …)")
    if function == "count" and isinstance(argument, (exp.Star, exp.Literal)):
        if any(argument.args.get(key) for key in ("except_", "replace", "rename")):
            # Some columns: it counts the rows in which none of them is NULL.
            raise _refused(node)
        return function, None
    if any(isinstance(part, _NO_VALUES) or is_aggregate(part) for part in argument.walk()):
        raise _refused(node)
    return function, argument


def _when(condition: Expression, value: Expression) -> Expression:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def _refused(node: Expression) -> NotIncremental:
    name = str(node.this) if isinstance(node, exp.Anonymous) else node.sql(dialect=SparkDynamic)
    return NotIncremental("AGGREGATE_FUNCTION", name.partition("(")[0].lower())
