"""The dynamic tables of a dbt project, as the schedule sees them: read from dbt's manifest."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.events.functions import warn_or_error

from dbt.adapters.spark_dynamic.config import MATERIALIZATION, lenient_config
from dbt.adapters.spark_dynamic.stream_models import STREAM
from spark_dynamic.config import Initialize
from spark_dynamic.names import TableName
from spark_dynamic.schedule.graph import Graph, Model
from spark_dynamic.schedule.lag_warnings import lag_warnings
from spark_dynamic.schedule.remembered import Marks

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest

# What is read through, down to dynamic tables and to tables with versions of their own. Changes
# of a stream are those of its query.
_TRANSPARENT: Final = ("view", "ephemeral", STREAM)
# They decide when a table is refreshed, not what it is.
_ABOUT_TIME: Final = ("target_lag", "initialize", "suspend_after")
# dbt's own configs that are applied to the table beside its rows.
_APPLIED: Final = ("grants", "persist_docs", "contract")


@dataclass(frozen=True)
class ProjectTable:
    """One dynamic table: the model in dbt, and its name in the warehouse."""

    node: Any
    name: TableName
    model: Model
    marks: Marks


class Project:
    """All dynamic tables of a project by `schema.name`, as the state table names them."""

    def __init__(self, manifest: "Manifest") -> None:
        reader = _Reader(manifest)
        found = [reader.table(node) for node in reader.dynamic.values()]
        self.tables: dict[str, ProjectTable] = {str(table.name): table for table in found}
        self.graph = Graph({name: table.model for name, table in self.tables.items()})
        # The schemas that they are in, each with one of them.
        self.schemas = {table.name.schema: table.name for table in self.tables.values()}

    def named(self, ids: Any) -> set[str]:
        """Return the dynamic tables among some of dbt's unique ids."""
        wanted = set(ids)
        return {name for name, t in self.tables.items() if t.node.unique_id in wanted}

    def with_upstreams(self, names: set[str]) -> set[str]:
        """Return tables together with all dynamic tables that they are made of."""
        found: set[str] = set()
        for name in reversed(self.graph.order):
            if name in names or any(reader in found for reader in self.graph.consumers[name]):
                found.add(name)
        return found


# The last project that was read; dbt does not change a manifest once it is parsed.
_last: "tuple[ref[Manifest], Project] | None" = None


def project_of(manifest: "Manifest") -> Project:
    """Return the dynamic tables of a manifest; they are read once, when dbt has parsed it."""
    global _last
    known = _last
    if known is None or known[0]() is not manifest:
        _last = known = ref(manifest), Project(manifest)
    return known[1]


def warn_of_lags(manifest: "Manifest") -> None:
    """Warn of target lags that cannot mean what they say, as dbt warns."""
    for warning in lag_warnings(project_of(manifest).graph):
        warn_or_error(AdapterEventWarning(base_msg=str(warning)))


class _Reader:
    def __init__(self, manifest: "Manifest") -> None:
        self._nodes: Mapping[str, Any] = manifest.nodes
        self._macros: Mapping[str, Any] = manifest.macros
        self.dynamic = {
            unique_id: node
            for unique_id, node in sorted(self._nodes.items())
            if str(node.resource_type) == "model"
            and node.config.enabled
            and node.config.materialized == MATERIALIZATION
        }

    def table(self, node: Any) -> ProjectTable:
        raw = node.config.to_dict(omit_none=True)
        config = lenient_config(raw)
        upstreams, texts = self._reach(node)
        model = Model(
            target_lag=config.target_lag,
            upstreams=tuple(upstreams),
            suspend_after=config.suspend_after,
            is_built_by_schedule=config.initialize is Initialize.ON_SCHEDULE,
        )
        facts = {k: v for k, v in vars(config).items() if k not in _ABOUT_TIME}
        docs = [node.description, {c.name: c.description for c in node.columns.values()}]
        applied = [raw.get(key) for key in _APPLIED]
        if node.config.contract.enforced:
            applied += [node.constraints, {c.name: c.constraints for c in node.columns.values()}]
        described = docs if raw.get("persist_docs") else []
        marks = Marks(definition=short_hash(texts), config=short_hash([facts, applied, described]))
        return ProjectTable(node, _name(node), model, marks)

    def _reach(self, node: Any) -> tuple[list[str], list[str]]:
        """Return the dynamic tables that a model reads, and all texts on the way there."""
        upstreams: dict[str, None] = {}
        texts: dict[str, str] = {node.unique_id: node.raw_code}
        texts.update(self._macro_texts(node))
        waiting = list(node.depends_on.nodes)
        while waiting:
            unique_id = waiting.pop()
            read = self._nodes.get(unique_id)
            if read is None or unique_id in texts:
                continue
            if unique_id in self.dynamic:
                upstreams[str(_name(read))] = None
            elif read.config.materialized in _TRANSPARENT:
                texts[unique_id] = read.raw_code
                texts.update(self._macro_texts(read))
                waiting += read.depends_on.nodes
        return sorted(upstreams), [f"{key}\n{text}" for key, text in sorted(texts.items())]

    def _macro_texts(self, node: Any) -> Iterator[tuple[str, str]]:
        """Yield the texts of the macros that a model calls, and that these call."""
        seen: set[str] = set()
        waiting = list(node.depends_on.macros)
        while waiting:
            unique_id = waiting.pop()
            macro = self._macros.get(unique_id)
            if macro is not None and unique_id not in seen:
                seen.add(unique_id)
                yield unique_id, macro.macro_sql
                waiting += macro.depends_on.macros


def short_hash(facts: object) -> str:
    """Return a short hash of anything that JSON can hold, or that has a text."""
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()[:12]


def _name(node: Any) -> TableName:
    return TableName.of(node.schema, node.alias)
