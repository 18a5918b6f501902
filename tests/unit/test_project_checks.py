import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark.impl import SparkConfig
from dbt.artifacts.resources.v1.model import ModelConfig
from dbt.artifacts.resources.v1.seed import SeedConfig
from dbt.artifacts.resources.v1.snapshot import SnapshotConfig
from dbt.cli.main import dbtRunner
from dbt.contracts.graph.manifest import Manifest, ManifestMetadata
from dbt.contracts.graph.nodes import Macro, ModelNode
from dbt.plugins.manager import PluginManager
from tests.unit.model_nodes import model_node

from dbt.adapters.spark_dynamic import project_check
from dbt.adapters.spark_dynamic.config import (
    DynamicTableConfigError,
    SparkDynamicConfig,
    check_project,
    read_config,
)
from dbt_spark_dynamic import SparkDynamicPlugin
from spark_dynamic.config import OWN_CONFIGS
from spark_dynamic.config_values import KNOWN_CONFIGS


def dynamic(name: str, **config: Any) -> ModelNode:
    return model_node(name, {"materialized": "dynamic_table", **config})


def manifest_of(*nodes: ModelNode, adapter_type: str = "spark_dynamic") -> Manifest:
    return Manifest(
        nodes={node.unique_id: node for node in nodes},
        metadata=ManifestMetadata(adapter_type=adapter_type),
    )


def message_of(*nodes: ModelNode) -> str:
    with pytest.raises(DynamicTableConfigError) as error:
        check_project(manifest_of(*nodes))
    return str(error.value)


def test_a_sound_project_passes() -> None:
    check_project(
        manifest_of(
            dynamic(
                "revenue",
                target_lag="5 minutes",
                refresh_mode="INCREMENTAL",
                initialize="on_schedule",
                on_configuration_change="FAIL",
                unique_key=["region"],
                clustered_by="region",
                tblproperties={"team": "sales"},
                location_root="/data",
                history_retention="7 days",
                suspend_after=0,
                immutable_functions=["mask"],
                file_format="delta",
                tags=["hourly"],
                meta={"taget_lag": "not a config"},
                **{"pre-hook": "select 1"},
            ),
            model_node("staging", {"materialized": "table", "taget_lag": "5 minutes"}),
        )
    )


def test_all_problems_of_all_models_are_one_error() -> None:
    revenue = dynamic("revenue", target_lag="5", suspend_after=-1, refreshmode="full")
    orders = dynamic("orders", file_format="parquet")
    assert message_of(revenue, dynamic("fine"), orders) == (
        "Configuration Error\n"
        "  CONFIG_INVALID: Some dynamic tables or streams have invalid configurations:\n"
        "    model.shop.orders (models/orders.sql)\n"
        "      - Invalid value for `file_format`: 'parquet'."
        " Expected 'delta': dynamic tables are Delta tables.\n"
        "    model.shop.revenue (models/revenue.sql)\n"
        "      - Invalid value for `target_lag`: '5'."
        " Expected a duration such as '5 minutes', or 'downstream'.\n"
        "      - Invalid value for `suspend_after`: -1."
        " Expected a whole number of failures, or 0 for never.\n"
        "      - Unknown config `refreshmode`. Did you mean `refresh_mode`?"
    )


def test_a_disabled_model_is_not_checked() -> None:
    check_project(manifest_of(dynamic("old", target_lag="5", enabled=False)))


def test_a_python_model_is_refused() -> None:
    node = model_node("snake", {"materialized": "dynamic_table"}, language="python")
    assert (
        "Invalid value for `language`: 'python'. "
        "Expected 'sql': a dynamic table is defined by a query."
    ) in message_of(node)


@pytest.mark.parametrize(
    "materialized",
    ["dynamic-table", "dynamictable", "Dynamic_Table", "dynamic_tables", "dynamc_table"],
)
def test_a_misspelt_materialization_is_found(materialized: str) -> None:
    sentence = f"Invalid value for `materialized`: '{materialized}'. Expected 'dynamic_table'."
    assert sentence in message_of(model_node("m", {"materialized": materialized}))


def test_other_materializations_are_left_alone() -> None:
    names = ["table", "view", "incremental", "ephemeral", "materialized_view", "dynamic"]
    check_project(manifest_of(*(model_node(name, {"materialized": name}) for name in names)))


def test_a_materialization_of_the_project_is_left_alone() -> None:
    manifest = manifest_of(model_node("m", {"materialized": "dynamic_tables"}))
    name = "materialization_dynamic_tables_default"
    manifest.macros[f"macro.shop.{name}"] = Macro.from_dict(
        {
            "resource_type": "macro",
            "unique_id": f"macro.shop.{name}",
            "name": name,
            "package_name": "shop",
            "path": "macros/m.sql",
            "original_file_path": "macros/m.sql",
            "macro_sql": "",
        }
    )
    check_project(manifest)


def test_configs_that_dbt_types_itself_are_reported_like_all_others() -> None:
    text = message_of(
        dynamic("a", on_configuration_change="ignore", unique_key=5, target_lag=5),
        model_node("b", {"materialized": "table", "on_configuration_change": False}),
    )
    assert "`on_configuration_change`: 'ignore'. Expected 'apply', 'continue' or 'fail'." in text
    assert "`unique_key`: 5. Expected a column name or a list of column names." in text
    assert "`target_lag`: 5." in text
    assert "`on_configuration_change`: False. Expected" in text


def test_a_wrong_value_of_the_project_is_reported_though_a_model_overrides_it() -> None:
    project = {"materialized": "dynamic_table", "on_configuration_change": "ignore"}
    text = message_of(model_node("a", project, {"on_configuration_change": "fail"}))
    assert "`on_configuration_change`: 'ignore'." in text


def test_the_last_level_wins() -> None:
    node = model_node(
        "a",
        {"materialized": "dynamic_table", "on_configuration_change": "Continue"},
        {"unique_key": "x", "target_lag": "5"},
        {"on_configuration_change": "FAIL", "unique_key": ("a", "b"), "target_lag": "2 hours"},
    )
    check_project(manifest_of(node))
    assert node.config.on_configuration_change == "fail"
    assert node.config.unique_key == ["a", "b"]
    assert node.config.get("target_lag") == "2 hours"


def test_the_check_before_a_refresh_is_the_same() -> None:
    good = dynamic("good", target_lag="downstream", unique_key="id").to_dict()
    config = read_config(good)
    assert (config.target_lag, config.unique_key) == ("downstream", ("id",))

    bad = dynamic("bad", target_lag="5", on_configuration_change="ignore")
    with pytest.raises(DynamicTableConfigError) as error:
        read_config(bad.to_dict())
    assert str(error.value) == message_of(bad)


def test_the_plugin_reports_the_bare_message() -> None:
    manager = PluginManager([SparkDynamicPlugin(project_name="shop")])
    bad = dynamic("bad", target_lag="5")
    with pytest.raises(DynamicTableConfigError) as error:
        manager.get_manifest_artifacts(manifest_of(bad))
    assert str(error.value) == message_of(bad)
    assert manager.get_manifest_artifacts(manifest_of(dynamic("good"))) == {}


def test_what_dbt_does_not_write_down_is_checked_before_anything_runs(tmp_path: Path) -> None:
    project = "name: shop\nversion: 1.0.0\nconfig-version: 2\nprofile: shop\n"
    (tmp_path / "dbt_project.yml").write_text(
        project + "flags: {send_anonymous_usage_stats: false}"
    )
    target = "{type: spark_dynamic, schema: shop, threads: 1}"
    (tmp_path / "profiles.yml").write_text(f"shop: {{target: a, outputs: {{a: {target}}}}}")
    (tmp_path / "models").mkdir()
    for name in ("one", "two"):
        text = "{{ config(materialized='dynamic_table', target_lag='5') }} select 1 as a"
        (tmp_path / "models" / f"{name}.sql").write_text(text)
    places = [f"--project-dir={tmp_path}", f"--profiles-dir={tmp_path}", f"--log-path={tmp_path}"]
    command = ["--no-write-json", "--log-level=none", "compile", "--no-introspect", *places]
    found = dbtRunner().invoke(command)
    assert isinstance(found.exception, DynamicTableConfigError)
    assert all(f"model.shop.{name}" in str(found.exception) for name in ("one", "two"))


def test_a_project_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Manifest] = []
    monkeypatch.setattr(project_check, "warn_of_lags", told.append)
    first, second = manifest_of(dynamic("good")), manifest_of(dynamic("good"))
    for manifest in (first, first, second):
        project_check.check_once(manifest)
    assert len(told) == 2


def test_the_plugin_leaves_other_adapters_alone() -> None:
    manager = PluginManager([SparkDynamicPlugin(project_name="shop")])
    bad = manifest_of(dynamic("bad", target_lag="5"), adapter_type="spark")
    assert manager.get_manifest_artifacts(bad) == {}


def test_importing_the_plugin_imports_neither_the_adapter_nor_spark() -> None:
    code = (
        "import dbt_spark_dynamic, sys;"
        "print([m for m in sys.modules if m.startswith(('pyspark', 'py4j', 'spark_dynamic',"
        " 'dbt.adapters.spark'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_config_that_dbt_or_dbt_spark_declares_is_known() -> None:
    declared = {
        field.metadata.get("alias", field.name)
        for config in (ModelConfig, SnapshotConfig, SeedConfig, SparkConfig)
        for field in dataclasses.fields(config)
        if not field.name.startswith("_")
    }
    assert declared - KNOWN_CONFIGS - set(OWN_CONFIGS) == set()


def test_our_configs_are_declared_to_dbt() -> None:
    declared = {field.name for field in dataclasses.fields(SparkDynamicConfig)}
    built_in = {field.name for field in dataclasses.fields(ModelConfig)}
    assert set(OWN_CONFIGS) <= declared | built_in
    assert SparkDynamicConfig().file_format == "delta"
