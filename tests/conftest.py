"""What all tests share: dbt's project fixtures on one embedded Spark per process."""

import pytest

pytest_plugins = ["dbt.tests.fixtures.project"]


@pytest.fixture(scope="session", autouse=True)
def embedded_home(tmp_path_factory: pytest.TempPathFactory):
    """Keep warehouse, metastore and logs of the whole test process in one place."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SPARK_DYNAMIC_HOME", str(tmp_path_factory.mktemp("spark")))
        # A person's own settings must not reach the tests.
        environment.delenv("DBT_PROFILES_DIR", raising=False)
        yield


# The data are tiny, but there are many of them: further tasks and generated code cost more than
# they gain, and so do the processes that Hadoop starts for `chmod` and `readlink`.
SMALL_AND_MANY = {
    # The embedded metastore is opened by the tests that run processes of their own.
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    "spark.driver.extraJavaOptions": (
        "-XX:+UseSerialGC -Xms1500m -Xmn800m -XX:MetaspaceSize=300m -Dderby.system.durability=test"
    ),
}


@pytest.fixture(scope="class")
def dbt_profile_target():
    return {
        "type": "spark_dynamic",
        "threads": 2,
        "server_side_parameters": dict(SMALL_AND_MANY),
    }
