"""Python values as Spark SQL, exactly."""

import datetime
from decimal import Decimal
from typing import Any


def literal(value: Any) -> str:
    """Write a value.

    >>> literal("O'Brien"), literal(None), literal(Decimal("1.50")), literal([1, 2])
    ("'O\\\\'Brien'", 'NULL', '1.50', 'array(1, 2)')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case float():
            return f"double('{value!r}')"
        case int():
            return str(value)
        case Decimal():
            return f"{value:f}"
        case datetime.datetime():
            # With an offset the moment is plain; without, only the wall clock is known.
            kind = "timestamp" if value.tzinfo else "timestamp_ntz"
            return f"{kind}'{value.isoformat(sep=' ')}'"
        case datetime.date():
            return f"date'{value.isoformat()}'"
        case dict():
            pairs = ", ".join(f"{literal(k)}, {literal(v)}" for k, v in value.items())
            return f"map({pairs})"
        case list() | tuple():
            return f"array({', '.join(literal(item) for item in value)})"
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    # Spark would put the value of a variable in place of `${…}`, also inside of a text.
    escaped = escaped.replace("$", "\\u0024")
    return f"'{escaped}'"
