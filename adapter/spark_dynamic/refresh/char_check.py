"""Spark is the judge of padding, too: a query with the padding written out means the same.

It is compared with the query as it is, over sources whose `char(n)` columns are read as plain
texts, of which Spark pads nothing by itself.
"""

from collections.abc import Mapping

from spark_dynamic.apply.storage import without_length
from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName, quote
from spark_dynamic.plan.char_padding import with_padding
from spark_dynamic.plan.nodes import Query, State, fields_of
from spark_dynamic.sql.guard import agree, explain
from spark_dynamic.sql.write import Relation, Writer
from spark_dynamic.warehouse import Warehouse


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
        return not agree(explain(warehouse, as_it_is), explain(warehouse, written), False)
    except WarehouseError:
        return True
