"""Models as dbt's parser leaves them in the manifest."""

from typing import Any

from dbt.artifacts.resources.v1.model import ModelConfig
from dbt.contracts.files import FileHash
from dbt.contracts.graph.nodes import ModelNode

from dbt.adapters.spark_dynamic.config import SparkDynamicConfig


def model_node(name: str, *levels: dict[str, Any], **more: Any) -> ModelNode:
    """Return a model whose config was merged level by level, the way dbt's parser does it."""
    config = ModelConfig.from_dict({})
    for level in levels:
        config = config.update_from(dict(level), SparkDynamicConfig, validate=False)
    return ModelNode.from_dict(
        {
            "resource_type": "model",
            "unique_id": f"model.shop.{name}",
            "name": name,
            "alias": name,
            "package_name": "shop",
            "path": f"{name}.sql",
            "original_file_path": f"models/{name}.sql",
            "fqn": ["shop", name],
            "database": None,
            "schema": "shop",
            "checksum": FileHash.empty().to_dict(),
            "language": "sql",
            "config": config.finalize_and_validate().to_dict(omit_none=True),
            **more,
        }
    )
