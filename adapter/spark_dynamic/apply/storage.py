"""Storage: the Delta table behind a dynamic table's view, in numbered generations."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from spark_dynamic.apply.unique_key import write_key
from spark_dynamic.config import DynamicTableConfig
from spark_dynamic.errors import EngineError
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.literals import literal
from spark_dynamic.names import TableName, quote
from spark_dynamic.sql.pin import MODEL_PROPERTY
from spark_dynamic.warehouse import Column

HIDDEN = "__dyn_"
_SUFFIX = "__dyn"
# What follows the name of the view in a storage's name: nothing, or a number from 2 on.
_GENERATION = re.compile(r"(?:_([2-9]|[1-9]\d+))?")
# Delta refuses these in column names, and cannot write the changes of a MERGE with a backquote
# in one; the view gives such columns their name back.
_REFUSED = re.compile(r"[ ,;{}()\n\t=`]")
# In the facts of a record: no column of the storage has a length, see `without_length`.
_WITHOUT_LENGTHS = "without_lengths"
_EMPTY_TEXT = (
    "raise_error('EMPTY_TEXT_IN_PARTITION: Delta stores an empty text in a partition column as "
    "NULL. Give it another value, or use clustered_by instead of partition_by.')"
)


def storage_name(view: TableName, generation: int) -> TableName:
    """Return the name of a generation's table.

    >>> str(storage_name(TableName("shop", "revenue"), 1))
    'shop.revenue__dyn'
    >>> str(storage_name(TableName("shop", "revenue"), 2))
    'shop.revenue__dyn_2'
    """
    suffix = _SUFFIX if generation == 1 else f"{_SUFFIX}_{generation}"
    return view.sibling(view.name + suffix)


def is_storage_name(table: TableName) -> bool:
    """Tell whether a table is named as storage; a clone of one carries its properties, too."""
    return re.fullmatch(r".+__dyn(_\d+)?", table.name) is not None


def generations(view: TableName, tables: Iterable[str]) -> list[int]:
    """Return the generations that exist among the tables of a schema, newest first."""
    begin = view.name + _SUFFIX
    rests = (_GENERATION.fullmatch(name, len(begin)) for name in tables if name.startswith(begin))
    return sorted((int(rest.group(1) or 1) for rest in rests if rest), reverse=True)


def generation_of(storage: TableName) -> tuple[TableName, int]:
    """Return the view that a storage belongs to, and which generation it is.

    >>> [generation_of(TableName("shop", name))[1] for name in ("a__dyn", "a__dyn_2")]
    [1, 2]
    """
    name, _, rest = storage.name.rpartition(_SUFFIX)
    return storage.sibling(name), int(rest.lstrip("_") or 1)


def views_with_storage(tables: Iterable[str]) -> set[str]:
    """Return the names of which a generation exists among the tables of a schema.

    >>> sorted(views_with_storage(["a", "a__dyn", "b__dyn_2", "c__dyn_1", "d__dynamic"]))
    ['a', 'b']
    """
    names = (name.rpartition(_SUFFIX) for name in tables if _SUFFIX in name)
    return {view for view, _, rest in names if view and _GENERATION.fullmatch(rest)}


def stored_columns(columns: Iterable[Column]) -> tuple[StoredColumn, ...]:
    """Say what each column of a result is called in storage.

    >>> stored_columns([Column("a b", "int")])
    (StoredColumn(name='a b', stored_as='__dyn_column_1', type='int'),)
    """
    columns = list(columns)
    seen: set[str] = set()
    for column in columns:
        name = column.name.lower()
        if name.startswith(HIDDEN):
            raise EngineError(
                "COLUMN_NAME_RESERVED",
                f"The column {column.name} begins with {HIDDEN}, which is reserved for hidden "
                "columns. Give it another name.",
            )
        if name in seen:
            raise EngineError(
                "COLUMN_NAME_TWICE",
                f"The query has two columns named {column.name}. Give one of them another name.",
            )
        seen.add(name)
    return tuple(
        StoredColumn(
            column.name,
            f"{HIDDEN}column_{i}" if _REFUSED.search(column.name) else column.name,
            column.type,
        )
        for i, column in enumerate(columns, 1)
    )


def view_query(
    columns: Iterable[StoredColumn],
    storage: TableName,
    condition: str = "",
    version: int | None = None,
) -> str:
    """Return the query of the view that users see; `condition` leaves out hidden groups.

    With a version it is what users saw then.
    """
    parts = [
        quote(column.stored_as)
        if column.stored_as == column.name
        else f"{quote(column.stored_as)} AS {quote(column.name)}"
        for column in columns
    ]
    where = f" WHERE {condition}" if condition else ""
    at = "" if version is None else f" VERSION AS OF {version}"
    return f"SELECT {', '.join(parts)} FROM {storage.sql}{at}{where}"


def storage_facts(config: DynamicTableConfig) -> dict[str, Any]:
    """Return what of the config a new generation is needed for; kept in the record."""
    return {
        "partition_by": list(config.partition_by),
        "location_root": config.location_root or "",
    }


def built_facts(config: DynamicTableConfig) -> dict[str, Any]:
    """Return what a record keeps about a storage that is built now."""
    return {**storage_facts(config), _WITHOUT_LENGTHS: True}


def may_have_lengths(facts: Mapping[str, Any], columns: Iterable[StoredColumn]) -> bool:
    """Tell whether a storage may enforce the length of a text, or pad it.

    Older engines stored `varchar(5)` and `char(5)` as such, which no type of a query tells.
    """
    return _WITHOUT_LENGTHS not in facts and any(_has_text(c.type) for c in columns)


def table_properties(config: DynamicTableConfig, model: str) -> dict[str, str]:
    """Return the properties that every storage table has, with the user's own."""
    seconds = int(config.history_retention.total_seconds())
    retention = f"interval {seconds} seconds"
    return {
        **config.tblproperties,
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": "true",
        "delta.deletedFileRetentionDuration": retention,
        "delta.logRetentionDuration": retention,
        **write_key(config.unique_key),
        MODEL_PROPERTY: model,
    }


def narrowing_columns(config: DynamicTableConfig) -> frozenset[str]:
    """Return the columns that tell files apart, in lower case; none if no key is declared."""
    if not config.unique_key:
        return frozenset()
    names = (*config.unique_key, *config.partition_by, *config.cluster_by)
    return frozenset(name.lower() for name in names)


def stored_value(sql: str, column: StoredColumn, partitions: frozenset[str]) -> str:
    """Return what is stored of a value.

    Delta takes an empty text in a partition column for NULL, which is another value.

    >>> stored_value("x", StoredColumn("Day", "Day", "date"), frozenset({"day"}))
    'x'
    """
    if column.name.lower() not in partitions or not column.type.startswith("string"):
        return sql
    return f"IF(octet_length({sql}) = 0, {_EMPTY_TEXT}, {sql})"


def without_length(sql: str, type: str) -> str:
    """Return a value of which Spark does not know that it comes from a `char` or `varchar` column.

    A table made from such a column refuses longer texts for good, also when the column of the
    source became longer or the query shows something else. Only a column itself carries its
    length along, these expressions do not. (Simpler ones are simplified too early: Spark then
    complains that the columns of the table to be made are others.)

    >>> [without_length("a", type) for type in ("string", "array<string>", "int")]
    ['CAST(a AS string)', 'transform(array(a), x -> x)[0]', 'a']
    """
    if type == "string":
        return f"CAST({sql} AS string)"
    return f"transform(array({sql}), x -> x)[0]" if _has_text(type) else sql


def _has_text(type: str) -> bool:
    return "string" in type and "collate" not in type


def partition_columns(config: DynamicTableConfig) -> frozenset[str]:
    """Return the columns that a table is partitioned by, in lower case."""
    return frozenset(name.lower() for name in config.partition_by)


def select_for_storage(
    query: str, columns: Iterable[StoredColumn], partitions: frozenset[str] = frozenset()
) -> str:
    """Return a query whose columns are those of storage."""
    values = (
        (stored_value(without_length(quote(c.name), c.type), c, partitions), c.stored_as)
        for c in columns
    )
    parts = [f"{sql} AS {quote(name)}" for sql, name in values]
    return f"SELECT {', '.join(parts)} FROM (\n{query}\n)"


def create_storage(
    storage: TableName,
    config: DynamicTableConfig,
    model: str,
    columns: tuple[StoredColumn, ...],
    select: str,
) -> str:
    """Return the statement that builds a generation. Never OR REPLACE: a second builder fails."""
    clauses = [f"CREATE TABLE {storage.sql}", "USING delta"]
    if config.partition_by:
        clauses.append(f"PARTITIONED BY ({stored_names(config.partition_by, columns)})")
    if config.cluster_by:
        clauses.append(f"CLUSTER BY ({stored_names(config.cluster_by, columns)})")
    if config.location_root:
        path = f"{config.location_root.rstrip('/')}/{storage.name}"
        clauses.append(f"LOCATION {literal(path)}")
    clauses.append(f"TBLPROPERTIES ({properties_sql(table_properties(config, model))})")
    clauses.append(f"AS {select}")
    return "\n".join(clauses)


def insert_rows(storage: TableName, select: str) -> str:
    """Return the statement that adds rows, each value to the column of its name."""
    return f"INSERT INTO {storage.sql} BY NAME\n{select}"


def overwrite_storage(storage: TableName, select: str) -> str:
    """Return the statement that replaces all rows in one commit.

    Columns that the select does not have are left empty.
    """
    return f"INSERT OVERWRITE TABLE {storage.sql} BY NAME\n{select}"


def write_nothing(storage: TableName) -> str:
    """Return a statement whose commit changes no row: what counts is what it carries."""
    return insert_rows(storage, f"SELECT * FROM {storage.sql} LIMIT 0")


def properties_sql(properties: Mapping[str, str]) -> str:
    """Write table properties."""
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())


def check_columns(config: DynamicTableConfig, columns: tuple[StoredColumn, ...]) -> None:
    """Refuse a layout by columns that the query does not return."""
    known = {column.name.lower() for column in columns}
    for config_name, names in (
        ("partition_by", config.partition_by),
        ("clustered_by", config.cluster_by),
        ("unique_key", config.unique_key),
    ):
        missing = [name for name in names if name.lower() not in known]
        if missing:
            raise EngineError(
                "COLUMN_UNKNOWN",
                f"{config_name} names {', '.join(missing)}, which the query does not return. "
                f"It returns {', '.join(column.name for column in columns)}.",
            )


def stored_names(names: Iterable[str], columns: tuple[StoredColumn, ...]) -> str:
    """Write columns of the result by their names in storage."""
    stored_as = {column.name.lower(): column.stored_as for column in columns}
    return ", ".join(quote(stored_as[name.lower()]) for name in names)
