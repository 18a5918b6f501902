"""Streams and their consumers in a dbt project, and what is wrong with them at parse time."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from spark_dynamic.config_values import ConfigProblem

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest

STREAM: Final = "changes_stream"
CONSUMERS: Final = ("incremental", "table", "snapshot")
_MACRO: Final = "macro.dbt_spark_dynamic.stream"
_STRATEGIES: Final = (None, "append", "merge")


def consumes(node: Any, macros: Mapping[str, Any]) -> bool:
    """Tell whether a node calls `stream()`, itself or through macros of the project."""
    seen: set[str] = set()
    waiting = list(getattr(node.depends_on, "macros", ()))
    while waiting:
        name = waiting.pop()
        if name == _MACRO:
            return True
        if name not in seen and name in macros:
            seen.add(name)
            waiting += macros[name].depends_on.macros
    return False


def consumers(manifest: "Manifest") -> Iterator[tuple[Any, list[Any]]]:
    """Yield the enabled nodes that consume, each with the streams that it depends on."""
    for _, node in sorted(manifest.nodes.items()):
        kind = str(node.resource_type)
        if kind not in ("model", "snapshot") or not node.config.enabled:
            continue
        if not consumes(node, manifest.macros):
            continue
        depends_on: Any = node.depends_on
        read = (manifest.nodes.get(unique_id) for unique_id in depends_on.nodes)
        yield node, [one for one in read if one is not None and is_stream(one)]


def is_stream(node: Any) -> bool:
    """Tell whether a node is a stream."""
    return str(node.resource_type) == "model" and node.config.materialized == STREAM


def consumer_problems(config: Mapping[str, Any], kind: str) -> list[ConfigProblem]:
    """Return what keeps a node from consuming. `kind` is its resource type."""
    materialized = "snapshot" if kind == "snapshot" else str(config.get("materialized", "view"))
    problems: list[ConfigProblem] = []
    if kind not in ("model", "snapshot"):
        expected = "a model: only models consume, use `ref` to read a stream"
        return [ConfigProblem("stream()", kind, expected)]
    if materialized not in CONSUMERS:
        how = "'incremental', 'table' or 'snapshot' for a model that calls stream()"
        more = {
            "dynamic_table": "; a dynamic table takes a changelog through integrate()",
            STREAM: "; a stream reads other models with ref()",
        }.get(materialized, "; it can read the stream with ref(), which moves nothing")
        problems.append(ConfigProblem("materialized", materialized, how + more))
    if (config.get("file_format") or "delta") != "delta":
        expected = "'delta': a consumer's position is kept in its Delta log"
        problems.append(ConfigProblem("file_format", config["file_format"], expected))
    strategy = config.get("incremental_strategy")
    if materialized == "incremental" and strategy not in _STRATEGIES:
        expected = "'append' or 'merge' for a model that calls stream()"
        problems.append(ConfigProblem("incremental_strategy", strategy, expected))
    deletes = config.get("hard_deletes") or "ignore"
    if materialized == "snapshot" and deletes != "ignore":
        problems.append(ConfigProblem("hard_deletes", deletes, _NO_HARD_DELETES))
    if materialized == "snapshot" and config.get("invalidate_hard_deletes"):
        problems.append(ConfigProblem("invalidate_hard_deletes", True, _NO_HARD_DELETES))
    return problems


_NO_HARD_DELETES: Final = (
    "'ignore' for a snapshot that calls stream(): a batch has only what changed, so all other "
    "rows would count as deleted"
)
