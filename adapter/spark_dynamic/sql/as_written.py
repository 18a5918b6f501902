"""Functions that stay as they were written.

sqlglot gives many functions of Spark another name (`substr`), other arguments (`date_sub`), or
other letters (the unit of `date_trunc`). Spark then plans something else, and is the judge: the
query would be refused. Others it does not know, so that they might aggregate for all it can tell.
All of them make one value of the values of one row, and nothing here has to look into them.
"""

from collections.abc import Callable
from functools import partial

from sqlglot import exp

from spark_dynamic.plan.nodes import Expression

# With three arguments the first one is a unit, which is no column.
_WITH_UNIT = {"date_add", "date_diff", "dateadd", "datediff", "timestampadd", "timestampdiff"}
_OTHERWISE = {
    "array_size", "bit_get", "ceiling", "char", "char_length", "character_length", "collate",
    "date_format", "date_sub", "date_trunc", "from_unixtime", "from_utc_timestamp", "getbit",
    "instr", "lcase", "len", "log", "log10", "log2", "mod", "named_struct", "pow", "reduce",
    "sha1", "shiftleft", "shiftright", "signum", "space", "substr", "to_date", "to_timestamp",
    "to_unix_timestamp", "to_utc_timestamp", "trunc", "ucase", "unix_date", "unix_timestamp",
}  # fmt: skip
_UNKNOWN = {
    "array_repeat", "array_union", "arrays_overlap", "bin", "bround", "btrim", "cardinality",
    "conv", "crc32", "date_part", "datepart", "expm1", "find_in_set", "format_number", "get",
    "hash", "hypot", "isnotnull", "isnull", "json_array_length", "log1p", "make_date",
    "make_dt_interval", "make_timestamp_ltz", "make_timestamp_ntz", "make_ym_interval",
    "map_concat", "map_entries", "map_values", "mask", "nullifzero", "octet_length", "pmod",
    "positive", "printf", "shiftrightunsigned", "timestamp_micros", "timestamp_millis",
    "timestamp_seconds", "to_csv", "to_timestamp_ltz", "to_timestamp_ntz", "to_varchar",
    "try_mod", "try_parse_json", "try_to_binary", "try_to_date", "try_to_number",
    "try_to_timestamp", "try_variant_get", "url_decode", "url_encode", "variant_get",
    "weekday", "xxhash64", "zeroifnull",
}  # fmt: skip
AS_WRITTEN = frozenset(_WITH_UNIT | _OTHERWISE | _UNKNOWN)


def builders() -> dict[str, Callable[[list[Expression]], Expression]]:
    """Return what makes a tree of each function's arguments, by its name in capitals."""
    return {name.upper(): partial(as_written, name.upper()) for name in AS_WRITTEN}


def as_written(name: str, arguments: list[Expression]) -> Expression:
    """Return the call of a function, whose name is in capitals."""
    if len(arguments) == 3 and name.lower() in _WITH_UNIT:
        unit, *others = arguments
        arguments = [exp.Var(this=unit.name) if isinstance(unit, exp.Column) else unit, *others]
    return exp.Anonymous(this=name, expressions=arguments)
