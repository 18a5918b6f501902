"""Variables in a text: Spark puts the values of settings in the place of `${name}`.

It does so before it parses, wherever the name stands, and in the values again. What a query means
is the text with the values in it, so the engine reads that one.
"""

import re
from collections.abc import Mapping
from typing import Final

# As Spark finds them, with the letters and spaces that Java knows.
_REFERENCE: Final = re.compile(r"\$\{(?:(\w+?):)?(\S+?)\}", re.ASCII)
_OF_SETTINGS: Final = (None, "spark", "sparkconf", "hivevar", "hiveconf")
# They stand for what the machine of the server says, which is not known here.
_OF_SERVER: Final = ("env", "system")
SWITCH: Final = "spark.sql.variable.substitute"
# Spark shows this instead of a value that looks like a secret.
_HIDDEN: Final = "*********(redacted)"


def substituted(text: str, values: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return a text with values in the place of variables, and what the variables are.

    What is not known here is left to Spark.

    >>> substituted("'${region}' ${hiveconf:no} ${env:HOME}", {"region": "eu"})
    ("'eu'  ${env:HOME}", {'region': 'eu', 'no': ''})
    """
    used: dict[str, str] = {}
    if not _is_on(values):
        return text, used
    return _substituted(text, values, used, ()), used


def _substituted(
    text: str, values: Mapping[str, str], used: dict[str, str], outer: tuple[str, ...]
) -> str:
    def value_of(match: re.Match[str]) -> str:
        prefix, name = match.groups()
        if prefix not in _OF_SETTINGS or name in outer:
            return match.group()
        value = values.get(name)
        if value == _HIDDEN or (value is None and name.startswith("spark.")):
            # Spark refuses those of its own that are not set.
            return match.group()
        used[name] = value or ""
        return _substituted(used[name], values, used, (*outer, name))

    return _REFERENCE.sub(value_of, text)


def left_to_spark(text: str, settings: Mapping[str, str]) -> list[str]:
    """Return the variables of a text that Spark will put values for.

    >>> left_to_spark("${env:HOME} ${other:x}", {})
    ['${env:HOME}']
    """
    if not _is_on(settings):
        return []
    return [
        match.group()
        for match in _REFERENCE.finditer(text)
        if match.group(1) in _OF_SETTINGS or match.group(1) in _OF_SERVER
    ]


def _is_on(settings: Mapping[str, str]) -> bool:
    return settings.get(SWITCH, "true").lower() != "false"
