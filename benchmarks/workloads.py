"""What changes between two refreshes: one order in a thousand, with its lines.

TPC-H uses eight of every 32 order keys, so that a copy of an order under its key plus 8, 16 or
24 is new and lies beside the original: *spread*. *Recent* keys lie above all others.
"""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from benchmarks.tpch import SCHEMA

_ORIGINAL = "pmod(shiftright({key}, 3), 4) = 0"


@dataclass(frozen=True)
class Workload:
    """Which rows change, and how."""

    recent: bool
    mixed: bool

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"{'mixed' if self.mixed else 'inserts'}, {'recent' if self.recent else 'spread'}"

    def change(self, spark: SparkSession, number: int) -> None:
        """Change the sources; every batch has a number of its own, from 1."""
        share = 3000 if self.mixed else 1000
        self._insert(spark, number, share)
        if self.mixed:
            self._update(spark, number, share)
            self._delete(spark, number, share)

    def _insert(self, spark: SparkSession, number: int, share: int) -> None:
        chosen = _chosen("o_orderkey", share, number)
        key = "o_orderkey + 8"
        if self.recent:
            [(highest,)] = spark.sql(f"SELECT max(o_orderkey) FROM {SCHEMA}.orders").collect()
            key = f"{highest} + 32 * row_number() OVER (ORDER BY o_orderkey)"
        spark.sql(
            "CREATE OR REPLACE TEMP VIEW new_keys AS "
            f"SELECT o_orderkey AS old_key, {key} AS new_key FROM {SCHEMA}.orders WHERE {chosen}"
        )
        spark.sql("CACHE TABLE new_keys")
        for table, column in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
            columns = ", ".join(
                "new_key" if name == column else name
                for name in spark.table(f"{SCHEMA}.{table}").columns
            )
            spark.sql(
                f"INSERT INTO {SCHEMA}.{table} SELECT {columns} FROM {SCHEMA}.{table} "
                f"JOIN new_keys ON {column} = old_key"
            )
        spark.sql("UNCACHE TABLE new_keys")

    def _update(self, spark: SparkSession, number: int, share: int) -> None:
        for table, column, value in (
            ("lineitem", "l_orderkey", "l_extendedprice"),
            ("orders", "o_orderkey", "o_totalprice"),
        ):
            where = self._existing(spark, column, share, number, 1)
            spark.sql(f"UPDATE {SCHEMA}.{table} SET {value} = {value} + 1 WHERE {where}")

    def _delete(self, spark: SparkSession, number: int, share: int) -> None:
        for table, column in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
            where = self._existing(spark, column, share, number, 2)
            spark.sql(f"DELETE FROM {SCHEMA}.{table} WHERE {where}")

    def _existing(self, spark: SparkSession, key: str, share: int, number: int, part: int) -> str:
        """Return a condition for one of three disjoint parts of the orders."""
        if not self.recent:
            return _chosen(key, share, share - 2 * number - part)
        # The newest original orders, in ranges that no other batch touches.
        [(highest,)] = spark.sql(
            f"SELECT max(o_orderkey) FROM {SCHEMA}.orders VERSION AS OF 0"
        ).collect()
        [(orders,)] = spark.sql(f"SELECT count(*) FROM {SCHEMA}.orders VERSION AS OF 0").collect()
        # A quarter of the keys is in use.
        width = 4 * orders // share
        top = highest - (2 * number + part) * width
        return f"{key} > {top} AND {key} <= {top + width} AND {_ORIGINAL.format(key=key)}"


def _chosen(key: str, share: int, number: int) -> str:
    return f"{_ORIGINAL.format(key=key)} AND pmod(xxhash64({key}), {share}) = {number}"


WORKLOADS = tuple(Workload(recent, mixed) for recent in (True, False) for mixed in (False, True))
