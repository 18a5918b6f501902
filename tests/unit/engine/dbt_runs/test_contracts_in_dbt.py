"""From the constraints of a dbt contract to those of the stored table."""

from typing import Any

from dbt.contracts.graph.manifest import Manifest, ManifestMetadata
from dbt.contracts.graph.nodes import ModelNode
from fake_dbt import DbtShop
from fake_shop import small_shop
from tests.unit.model_nodes import model_node

from dbt.adapters.spark_dynamic.project import Project
from dbt.adapters.spark_dynamic.requests import unchecked_constraints
from spark_dynamic.apply.constraints import check, not_null


def kept(*of_id: dict[str, Any], of_model: Any = (), enforced: bool = True) -> ModelNode:
    column = {"name": "id", "data_type": "int", "constraints": list(of_id)}
    return model_node(
        "kept",
        {"materialized": "dynamic_table", "contract": {"enforced": enforced}},
        columns={"id": column},
        constraints=list(of_model),
    )


def constraints_of(node: ModelNode) -> Any:
    shop = DbtShop(small_shop(kept="select id from shop.orders"))
    manifest = Manifest(
        nodes={node.unique_id: node}, metadata=ManifestMetadata(adapter_type="spark_dynamic")
    )
    return shop.request(shop.adapter(manifest), "kept").constraints


def mark_of(node: ModelNode) -> str:
    manifest = Manifest(
        nodes={node.unique_id: node}, metadata=ManifestMetadata(adapter_type="spark_dynamic")
    )
    return Project(manifest).tables["shop.kept"].marks.config


NOT_NULL = {"type": "not_null"}
SMALL = {"type": "check", "expression": " id < 9 ", "name": "Small"}
PAIR = {"type": "not_null", "columns": ["id", "a b"]}


def test_what_delta_can_check_is_asked_for() -> None:
    assert constraints_of(kept(NOT_NULL, SMALL)) == (not_null("id"), check("id < 9", "Small"))
    unnamed = {"type": "check", "expression": "id > 0"}
    assert constraints_of(kept(of_model=[PAIR, unnamed])) == (
        not_null("id"),
        not_null("a b"),
        check("id > 0"),
    )
    assert constraints_of(kept(NOT_NULL, enforced=False)) == ()


def test_what_nobody_checks_is_told() -> None:
    node = kept({"type": "primary_key"}, NOT_NULL, of_model=[{"type": "unique"}])
    assert constraints_of(node) == (not_null("id"),)
    assert unchecked_constraints(node.to_dict()) == ["primary_key of column id"]
    assert unchecked_constraints(kept({"type": "unique"}, enforced=False).to_dict()) == []


def test_another_constraint_makes_a_table_due() -> None:
    assert mark_of(kept(NOT_NULL)) == mark_of(kept(NOT_NULL))
    assert mark_of(kept(NOT_NULL)) != mark_of(kept())
    assert mark_of(kept(of_model=[SMALL])) != mark_of(kept())
    # Without a contract it is a remark.
    assert mark_of(kept(NOT_NULL, enforced=False)) == mark_of(kept(enforced=False))
