"""Which streams a model passes to `stream()`: dbt does not tell them from those under `ref`."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dbt_common.clients.jinja import get_environment
from dbt_common.exceptions import DbtBaseException
from jinja2 import nodes
from jinja2.exceptions import TemplateError

STREAM_MACRO: Final = "macro.dbt_spark_dynamic.stream"
# What the macro and its parameters are called.
_MACRO: Final = "stream"
_PARAMETERS: Final = ("name", "inner")

# The name of a model, behind that of its package if it was given.
Named = tuple[str, ...]


def reached_macros(node: Any, macros: Mapping[str, Any]) -> dict[str, Any]:
    """Return the macros that a node calls, itself or through others; None for unknown ones."""
    found: dict[str, Any] = {}
    waiting = list(getattr(node.depends_on, "macros", ()))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = macros.get(name)
            waiting += found[name].depends_on.macros if found[name] else ()
    return found


def named_streams(node: Any, macros: Mapping[str, Any]) -> set[Named] | None:
    """Return the names that a node gives to `stream()`; None if the texts alone do not tell."""
    reached = {name: macro for name, macro in reached_macros(node, macros).items() if macro}
    reached.pop(STREAM_MACRO, None)
    texts = [macro.macro_sql for macro in reached.values() if _calls_it(macro)]
    texts += [node.raw_code] if _calls_it(node) else []
    try:
        found = [_given(text) for text in texts]
    except (TemplateError, DbtBaseException):
        return None
    # Where it is called but no call is seen, or a name is computed, others may be meant, too.
    if any(not names or () in names for names in found):
        return None
    return {name for names in found for name in names}


def is_named(node: Any, names: Iterable[Named]) -> bool:
    """Tell whether a stream is among some names."""
    return any(given in ((node.name,), (node.package_name, node.name)) for given in names)


def _calls_it(node: Any) -> bool:
    return STREAM_MACRO in node.depends_on.macros


def _given(text: str) -> list[Named]:
    """Return what each call in a text is given."""
    tree: nodes.Template = get_environment(None, capture_macros=False).parse(text)
    return [
        _constants(call)
        for call in tree.find_all(nodes.Call)
        # With the name of the package in front, or without.
        if _MACRO in (getattr(call.node, "name", None), getattr(call.node, "attr", None))
    ]


def _constants(call: nodes.Call) -> Named:
    """Return the arguments of a call, in the order of `ref`; nothing if one is computed."""
    words = {word.key: word.value for word in call.kwargs}
    parts = [*call.args, *(words[name] for name in _PARAMETERS if name in words)]
    names = [part.value for part in parts if isinstance(part, nodes.Const)]
    return tuple(map(str, names)) if len(names) == len(parts) else ()
