"""Several queries described at once have the types that Spark gives them one by one."""

from spark_shop import SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.catalog import describe_queries, describe_query

QUERIES = (
    # The same names in all of them, and twice in one.
    "select k, v, v as v from a",
    "with b as (select k as q0, sum(v) as v from a group by k) select * from b order by v limit 1",
    "select named_struct('k', k, 'v', array(v)) as k, "
    "cast(v as decimal(12, 3)) / 7 as v from a -- k",
    "select 1 as k union all select 2.5",
)


def test_they_are_what_they_are_alone(shop: SparkShop) -> None:
    shop.table("a", "k int not null, v bigint", "(1, 1)")
    warehouse = SparkWarehouse(shop.session)
    alone = [describe_query(warehouse, sql) for sql in QUERIES]
    *others, last = QUERIES
    sizes = [len(columns) for columns in alone[:-1]]
    scheduler = shop.session.sparkContext._jsc.sc().dagScheduler()
    jobs, statements = scheduler.numTotalJobs(), len(warehouse.statements)
    assert describe_queries(warehouse, last, list(zip(others, sizes, strict=True))) == alone
    assert scheduler.numTotalJobs() == jobs
    assert len(warehouse.statements) == statements + 1
    assert describe_queries(warehouse, last, []) == alone[-1:]
