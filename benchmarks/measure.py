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


def run_models(dbt: Dbt, spark: SparkSession, tag: str, *options: str) -> list[Measured]:
    """Run the models with a tag, one after the other, in one invocation."""
    seen: list[Counters] = []
    step = dbt.run(
        "run", f"--select=tag:{tag}", *options, on_node=lambda name: seen.append(counters(spark))
    )
    seen.append(counters(spark))
    if not step.ok:
        raise BenchmarkFailed(f"{tag}: {'; '.join(step.complaints)}")
    found = []
    for result, before, after in zip(step.results, seen[:-1], seen[1:], strict=True):
        response = result.adapter_response
        found.append(
            Measured(
                result.node.name,
                result.execution_time,
                after.jobs - before.jobs,
                after.bytes_read - before.bytes_read,
                response.get("refresh_action", ""),
                response.get("reason", ""),
            )
        )
    return found


def differing_rows(spark: SparkSession, one: str, other: str) -> int:
    """Count the rows that only one of two tables has; hashes tell quickly that there is none."""
    if _hashed(spark, one) == _hashed(spark, other):
        return 0
    [(rows,)] = spark.sql(
        f"SELECT count(*) FROM ((TABLE {one} EXCEPT ALL TABLE {other}) "
        f"UNION ALL (TABLE {other} EXCEPT ALL TABLE {one}))"
    ).collect()
    return int(rows)


def _hashed(spark: SparkSession, table: str) -> tuple[Any, ...]:
    """Return the number of rows, and sums of hashes of them, in which every copy counts."""
    hashes = ", ".join(
        f"sum(CAST(xxhash64({salt}, *) AS decimal(20))) AS h{salt}" for salt in (1, 2)
    )
    [row] = spark.sql(f"SELECT count(*) AS n, {hashes} FROM {table}").collect()
    return tuple(row)
