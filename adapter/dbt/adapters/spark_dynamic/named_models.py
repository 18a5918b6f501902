"""Models by the names that people and tests give to operations."""

from collections.abc import Iterable
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from spark_dynamic.names import TableName


def named_model(nodes: Iterable[Any], name: str) -> Any | None:
    """Return the node with a name; None if there is none.

    It may be the name of the relation with its schema, which is always one node's, or else that
    of the model, with or without its package, or else the alias. Two packages may have models of
    one name, and a model may have several versions; nobody says which of them is meant.
    """
    known = list(nodes)
    relation = TableName.parse(name) if "." in name else None
    for has_name in (
        lambda node: relation == relation_of(node),
        lambda node: name in (node.name, f"{node.package_name}.{node.name}"),
        lambda node: node.alias == name,
    ):
        found = [node for node in known if has_name(node)]
        if len(found) > 1:
            names = ", ".join(sorted(str(relation_of(node)) for node in found))
            raise DbtRuntimeError(
                f"MODEL_AMBIGUOUS: '{name}' is the name of several models. "
                f"Expected the whole name of one: {names}."
            )
        if found:
            return found[0]
    return None


def relation_of(node: Any) -> TableName:
    """Return the name that a node has in the warehouse."""
    return TableName.of(node.schema, node.alias)
