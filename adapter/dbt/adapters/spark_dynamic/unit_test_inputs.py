"""The inputs of a unit test, which are CTEs that dbt puts in front of the finished query.

Whoever asks Spark about a part of the query has to put something in front of that part, too:
here a relation with the same columns for each input.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.catalog import describe_query
from spark_dynamic.names import quote

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter

_NAME = re.compile(r"""["']([^"']+)["']""")


def with_inputs(adapter: "SparkDynamicAdapter", model: Any, sql: str) -> str:
    """Return the query of all of a relation that may read inputs of a unit test."""
    found = {
        name: relation
        for name, relation in _inputs(adapter, model)
        if re.search(rf"\b{re.escape(name)}\b", sql)
    }
    ctes = ", ".join(f"{name} AS (\n{relation}\n)" for name, relation in found.items())
    return f"{f'WITH {ctes} ' if ctes else ''}SELECT * FROM {sql}"


def _inputs(adapter: "SparkDynamicAdapter", model: Any) -> Iterator[tuple[str, str]]:
    """Yield the inputs by the names of their CTEs, each as a query with its columns."""
    if not isinstance(model, Mapping) or model.get("resource_type") != "unit_test":
        return
    manifest: Any = adapter._macro_resolver
    tested = manifest.nodes[model["tested_node_unique_id"]]
    definition = manifest.unit_tests[model["unique_id"]]
    for unique_id in tested.depends_on.nodes:
        source = manifest.sources.get(unique_id)
        node = source or manifest.nodes.get(unique_id)
        for given in definition.given if node else ():
            names = _NAME.findall(given.input)
            if not names or names[-1] != node.name or (source and names[0] != node.source_name):
                continue
            called = f"{node.source_name}__{node.name}" if source else node.identifier
            cte = adapter.Relation.add_ephemeral_prefix(called)
            yield cte, given.rows if isinstance(given.rows, str) else _like(adapter, node, given)


def _like(adapter: "SparkDynamicAdapter", node: Any, given: Any) -> str:
    """Return the relation that an input stands for, with the change columns of the given rows."""
    relation: Any = adapter.Relation.create_from(adapter.config, node)
    deferred = getattr(node, "defer_relation", None)
    if deferred and not adapter.get_relation("", relation.schema, relation.identifier):
        relation = adapter.Relation.create_from(adapter.config, deferred)
    everything = f"SELECT * FROM {relation}"
    known = {c.name.lower() for c in describe_query(DbtWarehouse(adapter), everything)}
    more = "".join(
        f", CAST(NULL AS {type}) AS {quote(name)}"
        for name, type in adapter.change_columns_of(given.rows).items()
        if name not in known
    )
    return f"SELECT *{more} FROM {relation}"
