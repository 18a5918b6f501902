"""A failing case made small: fewer tables, rows and changes, and less of a query."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import sqlglot
from sqlglot import exp

from fuzz.applied import Applying
from fuzz.batches import Batch
from fuzz.case import Case
from fuzz.check import Failure, NotComparable, check
from fuzz.schemas import Table
from spark_dynamic.plan.nodes import Expression
from spark_dynamic.sql.dialect import SparkDynamic


def shrink(case: Case, duck: Applying, tries: int = 2000) -> Case:
    """Return the smallest case found that fails in the same way."""
    failure = check(case, duck).failure
    assert failure is not None
    progress = True
    while progress and tries > 0:
        progress = False
        for smaller in _smaller(case):
            # A delete of a row that is not there would fail without a bug.
            if not smaller.is_possible():
                continue
            tries -= 1
            if tries <= 0:
                break
            if _fails(smaller, duck, failure):
                case, progress = smaller, True
                break
    return case


def _fails(case: Case, duck: Applying, failure: Failure) -> bool:
    """Tell whether a case fails in that way; what would be looked at later is left out."""
    is_late = failure.kind in ("applied", "crash")
    interpret = is_late or failure.kind.startswith("interpreted")
    try:
        found = check(case, duck, interpret, is_late).failure
    except (NotComparable, Exception):
        return False
    return found is not None and found.first_words() == failure.first_words()


def _smaller(case: Case) -> Iterator[Case]:
    for sql in _smaller_queries(case.sql):
        yield replace(case, sql=sql)
    for name in case.tables:
        if name not in re.findall(r"\w+", case.sql):
            batches = _without(case.batches, name)
            yield replace(case, tables=_without(case.tables, name), batches=batches)
        if name in case.batches:
            yield replace(case, batches=_without(case.batches, name))
            for batch in _smaller_batches(case.batches[name]):
                yield replace(case, batches={**case.batches, name: batch})
        for table in _smaller_tables(case, name):
            yield replace(case, tables={**case.tables, name: table})


def _without(mapping: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key != name}


def _smaller_batches(batch: Batch) -> Iterator[Batch]:
    for place in range(len(batch.changes)):
        yield replace(batch, changes=batch.changes[:place] + batch.changes[place + 1 :])
    for column in batch.bounds:
        yield replace(batch, bounds=tuple(c for c in batch.bounds if c != column))
    if batch.insert_only:
        yield replace(batch, insert_only=False)


def _smaller_tables(case: Case, name: str) -> Iterator[Table]:
    table = case.tables[name]
    batch = case.batches.get(name)
    deleted = [row for weight, row in batch.changes if weight < 0] if batch else []
    for place, row in enumerate(table.rows):
        if row not in deleted:
            yield replace(table, rows=table.rows[:place] + table.rows[place + 1 :])


def _smaller_queries(sql: str) -> Iterator[str]:
    """Yield a query with one part less each time; not all of them make sense."""
    tree = sqlglot.parse_one(sql, dialect=SparkDynamic)
    for query in _smaller_trees(tree):
        text = query.sql(dialect=SparkDynamic)
        if len(text) < len(sql):
            yield text


def _smaller_trees(tree: Expression) -> Iterator[Expression]:
    count = len(list(tree.walk()))
    for number in range(count):
        for change in _CHANGES:
            copy = tree.copy()
            node = list(copy.walk())[number]
            changed = change(copy, node)
            if changed is not None:
                yield changed


def _take_part(tree: Expression, node: Expression) -> Expression | None:
    """Take a subquery, or a branch, for the whole."""
    if isinstance(node, (exp.Select, exp.Union)) and node is not tree:
        whole: Expression = node.copy()
        return whole
    return None


def _drop(tree: Expression, node: Expression) -> Expression | None:
    """Leave out a clause, a join, an item, or a CTE."""
    droppable = (exp.Where, exp.Having, exp.Join, exp.CTE, exp.With)
    listed = isinstance(node.parent, (exp.Select, exp.Group)) and node.arg_key == "expressions"
    if isinstance(node, exp.Filter):
        node.replace(node.this)
        return tree
    if isinstance(node, droppable) or (listed and len(node.parent.expressions) > 1):
        node.pop()
        return tree
    return None


def _left(tree: Expression, node: Expression) -> Expression | None:
    """Put an operand in place of an operator."""
    if isinstance(node, (exp.Connector, exp.Binary, exp.Coalesce, exp.Not, exp.Abs, exp.Union)):
        if node.parent is None:
            return node.this.copy()
        node.replace(node.this)
        return tree
    return None


def _right(tree: Expression, node: Expression) -> Expression | None:
    if isinstance(node, (exp.Connector, exp.Binary, exp.Union)):
        if node.parent is None:
            return node.expression.copy()
        node.replace(node.expression)
        return tree
    return None


_CHANGES = (_take_part, _drop, _left, _right)
