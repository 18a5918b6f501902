"""Runs models and measures each: seconds, Spark jobs and bytes read."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.spark_dynamic.demo.dbt_steps import Dbt


@dataclass(frozen=True)
class Counters:
    """What the JVM has done since it started."""

    jobs: int
    bytes_read: int


@dataclass(frozen=True)
class Measured:
    """One run of one model."""

    model: str
    seconds: float
    jobs: int
    bytes_read: int
    action: str
    reason: str


class BenchmarkFailed(Exception):
    """A model failed, or a result is wrong: no figure of it would mean anything."""


def counters(spark: SparkSession) -> Counters:
    """Read the JVM's counters, after everything that was reported has arrived."""
    context: Any = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    executors = context.statusStore().executorList(True)
    read = sum(executors.apply(i).totalInputBytes() for i in range(executors.size()))
    return Counters(context.dagScheduler().numTotalJobs(), read)


def run_model(dbt: Dbt, spark: SparkSession, name: str, *options: str) -> Measured:
    """Run one model in an invocation of its own."""
    before = counters(spark)
    step = dbt.run("run", f"--select={name}", *options)
    if not step.ok:
        raise BenchmarkFailed(f"{name}: {'; '.join(step.complaints)}")
    after = counters(spark)
    [result] = step.results
    response = result.adapter_response
    return Measured(
        name,
        result.execution_time,
        after.jobs - before.jobs,
        after.bytes_read - before.bytes_read,
        response.get("refresh_action", ""),
        response.get("reason", ""),
    )


def differing_rows(spark: SparkSession, one: str, other: str) -> int:
    """Count the rows that only one of two tables has."""
    [(rows,)] = spark.sql(
        f"SELECT count(*) FROM ((TABLE {one} EXCEPT ALL TABLE {other}) "
        f"UNION ALL (TABLE {other} EXCEPT ALL TABLE {one}))"
    ).collect()
    return int(rows)
