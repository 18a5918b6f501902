"""What killed builds leave is found by Spark's own listing, and removed by its file system."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from spark_shop import SparkShop
from spark_warehouse import SparkWarehouse

from dbt.adapters.spark_dynamic.connections import SessionHandle, SparkDynamicCredentials
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.left_directories import left_directories


def test_directories_without_a_table_are_found_and_removed(shop: SparkShop) -> None:
    shop.run("CREATE TABLE m__dyn USING delta AS SELECT 1 AS a")
    facts = shop.session.sql(f"DESCRIBE SCHEMA {shop.schema}").collect()
    [location] = [fact.info_value for fact in facts if fact.info_name == "Location"]
    folder = Path(location.removeprefix("file:"))
    rows = shop.session.sql("SELECT 1 AS a, 2 AS `day`, 3 AS `hour`")
    rows.write.parquet(str(folder / "m__dyn_2"))
    rows.write.partitionBy("day", "hour").parquet(str(folder / "m__dyn_4"))
    rows.write.format("delta").save(str(folder / "m__dyn_5"))
    rows.write.parquet(str(folder / "other__dyn_2"))
    view, warehouse = TableName(shop.schema, "m"), SparkWarehouse(shop.session)
    assert list(left_directories({view: ""}, shop.cycle(), warehouse)) == []

    # The clock of this machine alone does not make them old: the storage's has to agree.
    later = timedelta(days=2)
    assert list(left_directories({view: ""}, shop.cycle(after=later), warehouse)) == []
    now = datetime.now(UTC) + later
    cycle = Cycle("invocation", now, KnownState(written_at=now))
    for root in ("", location, f"{folder}/"):
        found = list(left_directories({view: root}, cycle, warehouse))
        assert {Path(left.path).name: left.has_commits for left in found} == {
            "m__dyn_2": False,
            "m__dyn_4": False,
            "m__dyn_5": True,
        }
    handle = SessionHandle(SparkDynamicCredentials(schema=shop.schema))
    handle._session = shop.session
    for left in found:
        if not left.has_commits:
            handle.remove_directory(left.path)
    assert {path.name for path in folder.iterdir()} == {"m__dyn", "m__dyn_5", "other__dyn_2"}
