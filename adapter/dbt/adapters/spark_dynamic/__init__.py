"""The dbt adapter `spark_dynamic`: dbt-spark with dynamic tables."""

from pathlib import Path
from typing import Any

from dbt.adapters.base.plugin import AdapterPlugin

from dbt.adapters.spark_dynamic.connections import SparkDynamicCredentials
from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter

# dbt's protocol for adapters asks for attributes that its own base class types otherwise.
_adapter: Any = SparkDynamicAdapter

Plugin = AdapterPlugin(
    adapter=_adapter,
    credentials=SparkDynamicCredentials,
    include_path=str(Path(__file__).parents[2] / "include" / "spark_dynamic"),
    dependencies=["spark"],
)
