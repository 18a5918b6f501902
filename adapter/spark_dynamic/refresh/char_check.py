"""Spark is the judge of padding, too: a query with the padding written out means the same.

It is compared with the query as it is, over sources whose `char(n)` columns are read as plain
texts, of which Spark pads nothing by itself.
"""

import re
from collections.abc import Mapping

from spark_dynamic.apply.storage import without_length
from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName, quote
from spark_dynamic.plan.char_padding import with_padding
from spark_dynamic.plan.nodes import Query, State, fields_of
from spark_dynamic.sql.guard import explain
from spark_dynamic.sql.write import Relation, Writer
from spark_dynamic.warehouse import Warehouse

_NAMED = re.compile(r"readSidePadding\([^()]*\)\) AS ([^#,]+#\d+)")
_PADDED = re.compile(r"(static_invoke\(CharVarcharCodegenUtils\.readSidePadding\([^()]*\)\))")


class _Sources:
    """The sources at their versions, with columns as they are or as plain texts."""

    def __init__(self, query: Query, versions: Mapping[TableName, int], is_plain: bool) -> None:
        self._query = query
        self._versions = versions
        self._is_plain = is_plain

    def relation(self, table: TableName, state: State) -> Relation:
        """Return what a scan reads."""
        source = f"{table.sql} VERSION AS OF {self._versions[table]}"
        columns = [
            f"{without_length(quote(f.name), 'string')} AS {quote(f.name)}"
            if self._is_plain and f.type.startswith("char(")
            else quote(f.name)
            for f in fields_of(self._query.plan, table).values()
        ]
        return Relation(f"(SELECT {', '.join(columns)} FROM {source})")


def pads_otherwise(query: Query, versions: Mapping[TableName, int], warehouse: Warehouse) -> bool:
    """Tell whether Spark pads texts in a query otherwise than is known here."""
    as_it_is = Writer(_Sources(query, versions, is_plain=False)).select(query.plan).sql
    written = Writer(_Sources(query, versions, is_plain=True)).select(with_padding(query).plan).sql
    try:
        plans = [explain(warehouse, sql).plan for sql in (as_it_is, written)]
    except WarehouseError:
        return True
    return len({_without_casts(plan) for plan in plans}) > 1


def _without_casts(plan: str) -> str:
    """Leave out casts of padded columns to string: a plain text needs none.

    >>> read = "static_invoke(CharVarcharCodegenUtils.readSidePadding(c#1, 5))"
    >>> _without_casts(f"Project [cast(c#2 as string), cast(id#0 as string)], {read} AS c#2")[:40]
    'Project [c#2, cast(id#0 as string)], sta'
    """
    padded = {*_PADDED.findall(plan), *_NAMED.findall(plan)}
    for column in sorted(padded):
        plan = plan.replace(f"cast({column} as string)", column)
    return plan
