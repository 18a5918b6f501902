"""Spark is the judge: a text that we changed means what the original means, or is not used.

Spark explains both texts. They agree if their columns and their optimised plans agree, in the form
of `normal_plan`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.settings import holding
from spark_dynamic.sql.char_columns import PADDING, CharColumns, read_char_columns
from spark_dynamic.sql.normal_plan import normalise
from spark_dynamic.sql.spark_functions import BUILT_IN, CLOCK, VOLATILE
from spark_dynamic.warehouse import Warehouse

_LEAF = re.compile(
    r"^\W*(Relation|RelationV2|HiveTableRelation|LogicalRDD|Streaming\w*)\b(.*)$", re.MULTILINE
)
_NAMED = re.compile(r" ([^\[]+)\[|\s*\[((?:`[^`]+`\.?)+)")
_UNRESOLVED = re.compile(r"'UnresolvedRelation \[([^\]]+)\]")
_LITERAL = re.compile(r"(?<![#\w])-?\d[\d:. -]*")
_FILE_METADATA = re.compile(r"(?<!\w)_metadata\b")
_SAMPLE = re.compile(r"^\W*Sample ", re.MULTILINE)
# Without the branch of its tree, a line goes on with a text that has a line break.
_OPERATOR = re.compile(r"(?:\A|^[ :]*[+:]- )'?(\w+)(?: (\w+))?", re.MULTILINE)
_FUNCTION = re.compile(r"\b((?:[a-z_][\w]*\.)*[a-z_]\w*)\(", re.IGNORECASE)

# In a text as it was parsed, names that are still to be looked up have a mark before them.
_NAME = r"(?:`[^`]+`|\w+)"
_CALL = re.compile(rf"'({_NAME}(?:\.{_NAME})*)\(")
_TABLE_CALL = re.compile(r"'UnresolvedTableValuedFunction \[([^\]]+)\]")
_SQL_TABLE_FUNCTION = re.compile(r"\bSQLFunctionNode ([\w.`]+)")
_SESSION_VARIABLE = re.compile(r"\bvariablereference\((?:system\.)?(?:session\.)?([^=]+)=")
_SPARKS_OWN = ("system.builtin.", "builtin.")
_OF_SESSION = ("system.session.", "session.")

# What Spark's own functions begin with if there is a dot in their names.
_SPARKS = ("system.", PADDING)

_FOR_EXPLAINING = {
    # With it, count(*) over a table is a constant in the plan, and any two counts look alike.
    "spark.databricks.delta.optimizeMetadataQuery.enabled": "false",
    # Long lists of columns are to be shown whole.
    "spark.sql.debug.maxToStringFields": "10000",
}
_FAILED = "EXPLAIN_FAILED"
_WRONG = re.compile(r"^[\w.$]+(?:Exception|Error): (?=\[)", re.MULTILINE)
_WITHOUT_FILES = {
    # It lists the files of every table, which takes jobs and says nothing about the meaning.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.delta.stats.PrepareDeltaScan",
}


@dataclass(frozen=True)
class Explained:
    """What Spark makes of a text."""

    columns: str
    plan: str
    relations: frozenset[TableName]
    unnamed: int
    unpinned: frozenset[TableName]
    functions: frozenset[str]
    operators: tuple[str, ...] = ()
    chars: CharColumns = field(default_factory=dict)
    # The functions that the text itself calls, as they are written there.
    calls: frozenset[str] = frozenset()
    # Variables of the session, whose values are in the plan.
    variables: frozenset[str] = frozenset()


def explain(warehouse: Warehouse, sql: str) -> Explained:
    """Ask Spark for its reading of a query. Raises WarehouseError if it refuses the text."""
    try:
        return _explain(warehouse, sql, _FOR_EXPLAINING | _WITHOUT_FILES)
    except WarehouseError as error:
        if error.condition != _FAILED:
            raise
        # A table with deletion vectors cannot be planned without its files.
        return _explain(warehouse, sql, _FOR_EXPLAINING)


def _explain(warehouse: Warehouse, sql: str, settings: dict[str, str]) -> Explained:
    with holding(warehouse, settings):
        rows = warehouse.rows(f"EXPLAIN EXTENDED {sql}")
    # Plans come as one row, what went wrong as one row a line.
    return read_explanation("\n".join(str(next(iter(row.values()))) for row in rows))


def read_explanation(text: str) -> Explained:
    """Take an EXPLAIN EXTENDED apart."""
    analysed = _section(text, "Analyzed Logical Plan", "Optimized Logical Plan")
    optimised = _section(text, "Optimized Logical Plan", "Physical Plan")
    if not analysed or not optimised:
        # Spark puts what went wrong where the plans should be.
        wrong = _WRONG.search(text)
        raise WarehouseError(_FAILED, text[wrong.end() if wrong else 0 :].strip())
    columns, _, tree = analysed.partition("\n")
    functions = {name.lower() for name in _FUNCTION.findall(tree)}
    functions |= {_plain(name) for name in _SQL_TABLE_FUNCTION.findall(tree)}
    if _SAMPLE.search(tree):
        functions.add("sample")
    if _FILE_METADATA.search(tree):
        # File names and row numbers change when files are merely compacted.
        functions.add("_metadata")
    leaves = [_leaf_name(match) for match in _LEAF.finditer(tree)]
    parsed = _section(text, "Parsed Logical Plan", "Analyzed Logical Plan")
    return Explained(
        columns=columns,
        plan=normalise(optimised),
        relations=frozenset(name for name in leaves if name is not None),
        unnamed=leaves.count(None),
        unpinned=frozenset(_unpinned(parsed)),
        functions=frozenset(functions),
        operators=tuple(_operators(tree)),
        chars=read_char_columns(tree),
        calls=frozenset(_calls(parsed)),
        variables=frozenset(_plain(name) for name in _SESSION_VARIABLE.findall(tree)),
    )


def _calls(parsed: str) -> Iterator[str]:
    """Yield the functions that a text calls, in small letters and without quotes."""
    for match in _CALL.finditer(parsed):
        yield _plain(match.group(1))
    for match in _TABLE_CALL.finditer(parsed):
        yield _plain(match.group(1).replace(", ", "."))


def _plain(name: str) -> str:
    return name.replace("`", "").lower()


def _operators(tree: str) -> Iterator[str]:
    """Yield the name of every node of a plan; joins with their kind."""
    for match in _OPERATOR.finditer(tree):
        name, kind = match.groups()
        yield f"{name} {kind}" if name == "Join" else name


# What a plan of ours can express, and what stands in Spark's plans without a meaning of its own.
_EXPRESSED = {
    "Project", "Filter", "Join Inner", "Join Cross", "Aggregate", "Union", "Relation",
    "SubqueryAlias", "View", "WithCTE", "CTERelationDef", "CTERelationRef", "Sort",
    "ResolvedHint", "UnresolvedHint",
}  # fmt: skip


def beyond_plans(explained: Explained, aggregations: int) -> str:
    """Return what Spark sees in a query that our reading of its text has not; "" if nothing.

    A function that aggregates without our knowing shows as an aggregation too many.
    """
    others = sorted(set(explained.operators) - _EXPRESSED)
    if others:
        return ", ".join(others)
    seen = explained.operators.count("Aggregate")
    return "" if seen == aggregations else f"{seen} aggregations instead of {aggregations}"


def _leaf_name(match: re.Match[str]) -> TableName | None:
    """Return the table that a leaf of a plan reads, if it has a name."""
    named = _NAMED.match(match.group(2))
    if named is None:
        return None
    name = (named.group(1) or named.group(2)).replace("`", "")
    return TableName.of(*name.split("."))


def _unpinned(parsed: str) -> list[TableName]:
    """Return the tables that a text names without a version."""
    return [
        TableName.of(*match.group(1).split(", "))
        for line in parsed.splitlines()
        if "RelationTimeTravel" not in line
        for match in _UNRESOLVED.finditer(line)
    ]


def agree(original: Explained, changed: Explained, volatile: bool) -> bool:
    """Tell whether two texts mean the same to Spark.

    A clock or a random number is a literal in the plan, another one each time.
    """
    plans = [original.plan, changed.plan]
    if volatile:
        plans = [_LITERAL.sub("N", plan) for plan in plans]
    return plans[0] == plans[1]


def volatile_functions(explained: Explained, immutable: tuple[str, ...]) -> list[str]:
    """Return the functions of a plan whose value may change while no table does.

    These are known ones of Spark, and all that are not Spark's own, unless they are declared.
    """
    # A function in a catalog carries its catalog and schema in the plan.
    in_catalog = {
        name for name in explained.functions if "." in name and not name.startswith(_SPARKS)
    }
    found = explained.functions & (CLOCK | VOLATILE)
    others = in_catalog | set(_beside_catalog(explained, in_catalog))
    declared = {name for name in others if _is_declared(name, immutable)}
    variables = {f"the session variable {name}" for name in explained.variables}
    return sorted(found | (others - declared) | variables)


def _beside_catalog(explained: Explained, in_catalog: set[str]) -> Iterator[str]:
    """Yield called functions that are neither Spark's own nor shown with a schema in the plan.

    Such are temporary functions, and those that an extension brings along.
    """
    for call in explained.calls:
        if call.startswith(_SPARKS_OWN) or call in BUILT_IN:
            continue
        of_session = next((p for p in _OF_SESSION if call.startswith(p)), "")
        name = call.removeprefix(of_session)
        is_shown = any(known.endswith(f".{name}") for known in in_catalog)
        if of_session or not is_shown or name in explained.functions:
            yield name


def _is_declared(name: str, immutable: tuple[str, ...]) -> bool:
    return any(name == known or name.endswith(f".{known}") for known in immutable)


def _section(text: str, title: str, following: str) -> str:
    """Return a part of an explanation; if texts in it look like titles, rather too much."""
    _, found, rest = text.partition(f"== {title} ==\n")
    before, end, _ = rest.rpartition(f"\n\n== {following} ==")
    return (before if end else rest).strip("\n") if found else ""
