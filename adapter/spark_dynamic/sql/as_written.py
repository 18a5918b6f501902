"""Functions that sqlglot would write otherwise than it read them.

It gives many functions of Spark another name (`substr`), other arguments (`date_sub`) or other
letters (the unit of `date_trunc`). Spark then plans something else, and Spark is the judge: the
query would be refused. Nothing here has to look into these functions, so they stay as they were
written.
"""

from collections.abc import Callable
from functools import partial

from sqlglot import exp

from spark_dynamic.plan.nodes import Expression

# With three arguments the first one is a unit, which is no column.
_WITH_UNIT = {"date_add", "date_diff", "dateadd", "datediff", "timestampadd", "timestampdiff"}
AS_WRITTEN = frozenset({
    "array_size", "bit_get", "ceiling", "char", "char_length", "character_length", "collate",
    "date_format", "date_sub", "date_trunc", "from_unixtime", "from_utc_timestamp", "getbit",
    "instr", "lcase", "len", "log", "log10", "log2", "mod", "named_struct", "pow", "reduce",
    "sha1", "shiftleft", "shiftright", "signum", "space", "substr", "to_date", "to_timestamp",
    "to_unix_timestamp", "to_utc_timestamp", "trunc", "ucase", "unix_date", "unix_timestamp",
    *_WITH_UNIT,
})  # fmt: skip


def builders() -> dict[str, Callable[[list[Expression]], Expression]]:
    """Return what makes a tree of each function's arguments, by its name in capitals."""
    return {name.upper(): partial(_as_written, name.upper()) for name in AS_WRITTEN}


def _as_written(name: str, arguments: list[Expression]) -> Expression:
    if len(arguments) == 3 and name.lower() in _WITH_UNIT:
        unit, *others = arguments
        arguments = [exp.Var(this=unit.name) if isinstance(unit, exp.Column) else unit, *others]
    return exp.Anonymous(this=name, expressions=arguments)
