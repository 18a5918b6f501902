"""The adapter that dbt talks to."""

from typing import Any

from dbt.adapters.spark.impl import SparkAdapter
from dbt.adapters.spark_dynamic.connections import SparkDynamicConnectionManager
from dbt.adapters.spark_dynamic.defaults import prefer_delta


class SparkDynamicAdapter(SparkAdapter):
    """dbt-spark with Delta by default and dynamic tables."""

    ConnectionManager = SparkDynamicConnectionManager

    @classmethod
    def get_adapter_run_info(cls, config: Any) -> Any:
        """Name this module; dbt would guess `sparkdynamic` from the class name."""
        from dbt.adapters.base.impl import AdapterTrackingRelationInfo
        from dbt.adapters.spark_dynamic.__version__ import version

        return AdapterTrackingRelationInfo(
            adapter_name="spark_dynamic",
            base_adapter_version=_dbt_adapters_version(),
            adapter_version=version,
            model_adapter_details=cls._get_adapter_specific_run_info(config),
        )

    def pre_model_hook(self, config: Any) -> None:
        """Give a node that dbt is about to build our defaults."""
        prefer_delta(config.model)


def _dbt_adapters_version() -> str:
    from dbt.adapters.__about__ import version

    return str(version)
