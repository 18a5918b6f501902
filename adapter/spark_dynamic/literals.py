"""Python values as Spark SQL, exactly."""

import datetime
from decimal import Decimal
from typing import Any

# What a reader may take for the end of a line, or not show at all. As escapes they stay what they
# are, however a statement is laid out.
ESCAPES = {
    chr(code): f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
}
# Spark would put the value of a variable in place of `${…}`, also inside of a text.
_ESCAPED = str.maketrans({**ESCAPES, "\\": "\\\\", "'": "\\'", "$": "\\u0024"})


def literal(value: Any) -> str:
    """Write a value.

    >>> literal("O'Brien"), literal(None), literal(Decimal("1.50")), literal([1, 2])
    ("'O\\\\'Brien'", 'NULL', '1.50', 'array(1, 2)')

    >>> print(literal("two\\nlines"))
    'two\\u000alines'
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
    return f"'{str(value).translate(_ESCAPED)}'"
