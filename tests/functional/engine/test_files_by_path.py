"""Files that a query reads by their path: of a Delta table, and of anything else."""

from pathlib import Path

import pytest
from spark_shop import SparkShop


def write(shop: SparkShop, path: Path, form: str, mode: str = "error") -> None:
    rows = shop.session.sql("SELECT string(id) AS value FROM range(3)").coalesce(1)
    rows.write.format(form).mode(mode).save(str(path))


@pytest.mark.parametrize("form", ["parquet", "json", "csv", "orc", "text", "binaryFile"])
def test_files_are_read_in_full_on_every_run(shop: SparkShop, tmp_path: Path, form: str) -> None:
    path = tmp_path / "Of.V1"
    write(shop, path, "text" if form == "binaryFile" else form)
    columns = "length" if form == "binaryFile" else "*"
    shop.run(f"CREATE VIEW files AS SELECT {columns} FROM {form}.`{path}`")
    shop.model("plain", f"select {columns} from {form}.`{path}` as f", refresh_mode="auto")
    shop.model("behind_a_view", "select count(*) as n from files", refresh_mode="auto")
    for name in ("plain", "behind_a_view"):
        shop.check(name, "FULL")
    write(shop, path, "text" if form == "binaryFile" else form, "append")
    for name in ("plain", "behind_a_view"):
        decision = shop.check(name, "FULL").plan.decision
        assert decision.reason.code == "SOURCE_NOT_DELTA"
        assert f"{form.lower()}.`{path}` is not a Delta table" in str(decision.reason)


def test_a_delta_table_is_followed_by_its_path(shop: SparkShop, tmp_path: Path) -> None:
    path = tmp_path / "Of.V1"
    shop.run("SET spark.databricks.delta.properties.defaults.enableChangeDataFeed=true")
    write(shop, path, "delta")
    shop.run("RESET spark.databricks.delta.properties.defaults.enableChangeDataFeed")
    shop.model("copied", f"select value from delta.`{path}`")
    shop.check("copied", "FULL")
    write(shop, path, "delta", "append")
    shop.check("copied", "INCREMENTAL")
    shop.check("copied", "NO_DATA")


def test_files_that_are_not_there_are_missing(shop: SparkShop, tmp_path: Path) -> None:
    shop.model("lost", f"select * from parquet.`{tmp_path}/nothing`", refresh_mode="auto")
    with pytest.raises(Exception, match="SOURCE_MISSING"):
        shop.refresh("lost")


@pytest.mark.parametrize(
    "sql",
    [
        "select id from range(5)",
        "select x from values (1), (2) as t(x)",
        "select 1 as x",
    ],
)
def test_rows_without_a_table_are_built_once(shop: SparkShop, sql: str) -> None:
    shop.model("fixed", sql, refresh_mode="auto")
    shop.check("fixed", "FULL")
    shop.check("fixed", "NO_DATA")
