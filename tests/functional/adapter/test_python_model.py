"""Python models: dbt-spark runs them through the Databricks job API only."""

import pytest
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonIncrementalTests,
    BasePythonModelTests,
)
from dbt.tests.adapter.python_model.test_spark import BasePySparkTests

databricks_only = pytest.mark.skip(reason="dbt-spark submits Python models to Databricks only")


@databricks_only
class TestPythonModel(BasePythonModelTests):
    pass


@databricks_only
class TestPythonIncrementalModel(BasePythonIncrementalTests):
    pass


@databricks_only
class TestPySpark(BasePySparkTests):
    pass
