"""The dbt plugin that looks at the dynamic tables of a project right after parsing.

Every dbt command of the environment imports this module, whatever its adapter, so it
imports nothing of its own until it meets a project of this adapter.
"""

from dbt.contracts.graph.manifest import Manifest
from dbt.plugins.contracts import PluginArtifacts
from dbt.plugins.manager import dbtPlugin


class SparkDynamicPlugin(dbtPlugin):
    """Reports all configuration errors of a project at once, before anything runs.

    It also warns of target lags that cannot mean what they say, and tags what is due.
    """

    def get_manifest_artifacts(self, manifest: Manifest) -> PluginArtifacts:
        """Check the project; there is nothing to write."""
        if manifest.metadata.adapter_type == "spark_dynamic":
            from dbt.adapters.spark_dynamic.due_tag import tag_due
            from dbt.adapters.spark_dynamic.project_check import check_once

            check_once(manifest)
            tag_due(manifest)
        return {}

    # What the decorator dbt_hook does, without its prefix in front of every error text.
    get_manifest_artifacts.is_dbt_hook = True  # type: ignore[attr-defined]


plugins = [SparkDynamicPlugin]
