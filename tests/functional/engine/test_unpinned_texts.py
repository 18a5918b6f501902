"""A text that cannot be read with certainty runs as it is; readers of its table see the same."""

from spark_shop import SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.config import parse_config
from spark_dynamic.names import TableName
from spark_dynamic.refresh.plan import plan_refresh
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.run import run_plan

# What Spark puts for the variable is not known here.
UNREADABLE = "select a from t where a > 0 and '${system:java.version}' <> ''"


def test_a_reader_sees_what_a_pre_hook_has_written(shop: SparkShop) -> None:
    shop.table("t", "a int", "(1)")
    shop.model("m", UNREADABLE, refresh_mode="auto")
    shop.model("both", "select a from m union all select a from t", refresh_mode="auto")
    cycle, warehouse = shop.cycle(), SparkWarehouse(shop.session)
    config, _ = parse_config({})
    request = Request(
        model="model.shop.m",
        view=TableName.of(shop.schema, "m"),
        sql=UNREADABLE,
        schema=shop.schema,
        config=config,
        settings={"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"},
        engine_version="0.test",
    )
    plan = plan_refresh(request, cycle, warehouse)
    assert plan.verdict.code == "TEXT_NOT_READABLE"
    shop.run("INSERT INTO t VALUES (2)")
    recorded = run_plan(plan, cycle, warehouse).recorded
    assert recorded is not None
    assert {(pin.table.name, pin.version) for pin in recorded.record.frontier} == {("t", 2)}
    assert recorded.record.unknown_sources == {}
    assert shop.action("both", cycle=cycle) == "FULL"
    found = sorted(row.a for row in shop.session.sql("TABLE both").collect())
    assert found == [1, 1, 2, 2]
    # In later runs, too, each of which writes first.
    cycle = shop.cycle()
    plan = plan_refresh(request, cycle, warehouse)
    shop.run("INSERT INTO t VALUES (3)")
    run_plan(plan, cycle, warehouse)
    shop.refresh("both", cycle=cycle)
    found = sorted(row.a for row in shop.session.sql("TABLE both").collect())
    assert found == [1, 1, 2, 2, 3, 3]
