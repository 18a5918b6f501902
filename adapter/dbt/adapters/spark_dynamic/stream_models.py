"""Streams and their consumers in a dbt project, and what is wrong with them at parse time."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dbt.adapters.spark_dynamic.stream_calls import (
    STREAM_MACRO,
    is_named,
    named_streams,
    reached_macros,
)
from spark_dynamic.config_values import ConfigProblem

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest

STREAM: Final = "changes_stream"
CONSUMERS: Final = ("incremental", "table", "snapshot")
_STRATEGIES: Final = (None, "append", "merge")


@dataclass(frozen=True)
class Consuming:
    """A node that consumes, and which streams."""

    node: Any
    streams: list[Any]
    # Whether it consumes all of these; it may only read some of them.
    is_certain: bool

    def consumes(self, stream: Any, taken: Collection[str] | None) -> bool:
        """Tell whether a stream is consumed; `taken` are those of its record, if it has one."""
        if taken is not None and stream.unique_id in taken:
            return True
        return stream in self.streams and (self.is_certain or taken is None)


def consumes(node: Any, macros: Mapping[str, Any]) -> bool:
    """Tell whether a node calls `stream()`, itself or through macros of the project."""
    return STREAM_MACRO in reached_macros(node, macros)


def consumers(manifest: "Manifest") -> Iterator[Consuming]:
    """Yield the enabled nodes that consume."""
    for _, node in sorted(manifest.nodes.items()):
        kind = str(node.resource_type)
        if kind not in ("model", "snapshot") or not node.config.enabled:
            continue
        if not consumes(node, manifest.macros):
            continue
        depends_on: Any = node.depends_on
        read = (manifest.nodes.get(unique_id) for unique_id in depends_on.nodes)
        streams = [one for one in read if one is not None and is_stream(one)]
        names = named_streams(node, manifest.macros)
        if names is not None:
            streams = [one for one in streams if is_named(one, names)]
        yield Consuming(node, streams, names is not None)


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
