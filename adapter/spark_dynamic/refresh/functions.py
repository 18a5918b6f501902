"""What declared functions mean: their definitions, and all that these reach in turn."""

from collections.abc import Iterable, Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from spark_dynamic.harmless_settings import is_harmless
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.settings import effective
from spark_dynamic.sql.dialect import parsed, tokens
from spark_dynamic.sql.pin import Query
from spark_dynamic.sql.references import table_name
from spark_dynamic.sql.spark_functions import BUILT_IN
from spark_dynamic.warehouse import Warehouse

_BODY = "Body:"
_CONFIGS = "Configs:"
_INDENTED = "               "


def definitions(
    declared: Iterable[str], query: Query, schema: str, cycle: Cycle, warehouse: Warehouse
) -> list[str]:
    """Return the definitions of functions, of those that they call, and of views in between.

    A function may be declared by its name alone, and called with its schema.
    """
    found: dict[str, str] = {}
    waiting = [(name, schema) for name in declared]
    last = {_last(name) for name in declared}
    for text in query.all_texts():
        calls = [call for call in _calls(text) if _last(call) in last]
        waiting += [(name, schema) for call in calls for name in _places(call, schema)]
    while waiting:
        name, inside = waiting.pop()
        if name in found:
            continue
        found[name] = _lasting(cycle.catalog.function_text(warehouse, name))
        body = found[name].partition(f"{_BODY}")[2]
        # A name alone is looked for beside the function; where it was made is not told.
        home = name.split(".")[-2] if "." in name else inside
        for text in _with_views(body, home, cycle, warehouse, found):
            for call in _calls(text):
                waiting += [(called, home) for called in _places(call, home)]
    return [f"{name}\n{text}" for name, text in sorted(found.items()) if text]


def _places(call: str, schema: str) -> list[str]:
    """Return where a function may be that a text calls."""
    return [call] if "." in call else [f"{schema}.{call}", call]


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _with_views(
    text: str, schema: str, cycle: Cycle, warehouse: Warehouse, found: dict[str, str]
) -> Iterator[str]:
    """Yield a text and those of all views that it reads, which are noted as found."""
    yield text
    for table in _tables(text, schema):
        key = f"view {table}"
        relation = None if key in found else cycle.catalog.relation(warehouse, table)
        if relation is not None and relation.view is not None:
            found[key] = relation.view.text
            yield from _with_views(
                relation.view.text, relation.view.schema, cycle, warehouse, found
            )


def _tables(text: str, schema: str) -> Iterator[TableName]:
    """Yield the tables that a body names, if it can be read; also names that are no tables."""
    for whole in (text, f"SELECT {text}"):
        try:
            tree = parsed(whole)
        except Exception:
            # Spark has accepted it: another form of body, or one that only Spark can read.
            continue
        for table in tree.find_all(exp.Table):
            if isinstance(table.this, exp.Identifier):
                yield table_name(table, schema)
        return


def _calls(text: str) -> Iterator[str]:
    """Yield names before a parenthesis that are not Spark's own functions.

    >>> list(_calls("upper(x) || shop.g(h (x))"))
    ['shop.g', 'h']
    """
    try:
        words = tokens(text)
    except Exception:
        return
    for place, word in enumerate(words):
        if word.token_type != TokenType.L_PAREN or place == 0:
            continue
        begin = place - 1
        while begin >= 2 and words[begin - 1].token_type == TokenType.DOT:
            begin -= 2
        name = "".join(part.text for part in words[begin:place]).lower()
        if name.replace(".", "").replace("_", "").isalnum() and name not in BUILT_IN:
            yield name


def _lasting(text: str) -> str:
    """Return a definition without the settings of its creation that change nothing."""
    kept, is_setting = [], False
    for line in text.splitlines():
        is_setting = line.startswith(_CONFIGS) or (is_setting and line.startswith(_INDENTED))
        if not is_setting:
            kept.append(line)
            continue
        key, _, value = line.removeprefix(_CONFIGS).strip().partition("=")
        if not is_harmless(key) and effective({key: value}):
            kept.append(f"{key}={value}")
    return "\n".join(kept)
