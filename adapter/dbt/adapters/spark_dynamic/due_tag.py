"""`--select tag:due`: the warehouse is asked at parse time, and only if the selection names it."""

import json
import re
from collections.abc import Iterable
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest

DUE: Final = "due"
# A tag in a selection: `tag:due`, `+tag:d*+2`, or as selectors.yml writes it.
_TAG: Final = re.compile(r'tag:([^\s,+"]+)|"method": "tag", "value": "([^"]+)"')


def tag_due(manifest: "Manifest") -> None:
    """Tag the models that are due, if this command selects by that tag."""
    from dbt import flags

    get_flags: Any = flags.get_flags
    if not names_due(_selection(get_flags(), manifest)):
        return
    from dbt.adapters.factory import FACTORY

    adapter: Any = FACTORY.lookup_adapter("spark_dynamic")
    with adapter.connection_named("dynamic_tables_due"):
        due = adapter.due_models(manifest)
    for unique_id in due:
        manifest.nodes[unique_id].tags.append(DUE)


def names_due(texts: Iterable[str]) -> bool:
    """Tell whether a selection names the tag, by its name or a pattern.

    >>> names_due(["orders", "+tag:due,marts"]), names_due(["tag:d*"]), names_due(["tag:dues"])
    (True, True, False)
    """
    patterns = (one or other for text in texts for one, other in _TAG.findall(text))
    return any(fnmatch(DUE, pattern) for pattern in patterns)


def _selection(flags: Any, manifest: "Manifest") -> list[str]:
    """Return what a command selects by, as texts."""
    given = [getattr(flags, name, None) or () for name in ("SELECT", "EXCLUDE", "MODELS")]
    texts = [text for texts in given for text in ([texts] if isinstance(texts, str) else texts)]
    name = getattr(flags, "SELECTOR", None)
    can_select = hasattr(flags, "SELECT")
    for selector, body in manifest.selectors.items():
        # dbt has written out selectors within selectors.
        is_default = can_select and not name and not texts and body.get("default")
        if selector == name or is_default:
            texts.append(json.dumps(body))
    return [str(text) for text in texts]
