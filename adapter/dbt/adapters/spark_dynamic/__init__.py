"""The dbt adapter `spark_dynamic`: dbt-spark with dynamic tables."""

from pathlib import Path

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.spark_dynamic.connections import SparkDynamicCredentials
from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter

Plugin = AdapterPlugin(
    adapter=SparkDynamicAdapter,
    credentials=SparkDynamicCredentials,
    include_path=str(Path(__file__).parents[2] / "include" / "spark_dynamic"),
    dependencies=["spark"],
)
