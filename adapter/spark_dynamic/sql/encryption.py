"""Whether texts encrypt the same value to the same bytes every time."""

from collections.abc import Iterable

from sqlglot import exp

from spark_dynamic.sql.dialect import parsed

ENCRYPTS = "aes_encrypt"
_MODE, _VECTOR = 2, 4


def encrypts_alike(texts: Iterable[str]) -> bool:
    """Tell whether every call is in mode ECB, or is given a vector that is the same for all rows.

    >>> encrypts_alike(["SELECT aes_encrypt(a, k, 'ECB')"])
    True
    >>> encrypts_alike(["SELECT aes_encrypt(a, k)"])
    False
    """
    calls = [
        call.expressions
        for text in texts
        for call in parsed(text).find_all(exp.Anonymous)
        if call.name.lower() == ENCRYPTS
    ]
    return bool(calls) and all(map(_is_alike, calls))


def _is_alike(arguments: list[exp.Expression]) -> bool:
    if any(isinstance(argument, exp.Kwarg) for argument in arguments):
        return False
    mode = arguments[_MODE] if len(arguments) > _MODE else None
    if isinstance(mode, exp.Literal) and mode.name.upper() == "ECB":
        return True
    vector = arguments[_VECTOR] if len(arguments) > _VECTOR else None
    if vector is None or vector.find(exp.Column):
        return False
    # One that is empty is none.
    values = list(vector.find_all(exp.Literal, exp.HexString))
    return bool(values) and all(value.name for value in values)
