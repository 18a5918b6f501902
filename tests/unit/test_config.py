from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from spark_dynamic.config import (
    DynamicTableConfig,
    Initialize,
    OnConfigurationChange,
    RefreshMode,
    did_you_mean,
    parse_config,
)
from spark_dynamic.config_values import ConfigProblem


def read(**raw: Any) -> DynamicTableConfig:
    config, problems = parse_config(raw)
    assert problems == []
    return config


def problems_of(raw: Mapping[str, Any]) -> list[str]:
    return [str(problem) for problem in parse_config(raw)[1]]


def test_defaults() -> None:
    assert read() == DynamicTableConfig(
        target_lag=None,
        refresh_mode=RefreshMode.AUTO,
        initialize=Initialize.ON_CREATE,
        on_configuration_change=OnConfigurationChange.APPLY,
        unique_key=(),
        partition_by=(),
        cluster_by=(),
        tblproperties={},
        location_root=None,
        history_retention=timedelta(days=30),
        suspend_after=5,
        immutable_functions=(),
        max_changes_window=timedelta(days=7),
    )


def test_null_is_the_default_and_foreign_keys_are_left_alone() -> None:
    names = list(DynamicTableConfig.__dataclass_fields__)
    nulls = dict.fromkeys([*names, "clustered_by", "liquid_clustered_by", "file_format"])
    assert read(**nulls, materialized="dynamic_table", tags=["a"]) == DynamicTableConfig()


@pytest.mark.parametrize(
    ("config", "value", "field", "expected"),
    [
        ("target_lag", "5 minutes", "target_lag", timedelta(minutes=5)),
        ("target_lag", " 1 HOUR ", "target_lag", timedelta(hours=1)),
        ("target_lag", "downstream", "target_lag", "downstream"),
        ("target_lag", " DOWNSTREAM ", "target_lag", "downstream"),
        ("refresh_mode", "auto", "refresh_mode", RefreshMode.AUTO),
        ("refresh_mode", "FULL", "refresh_mode", RefreshMode.FULL),
        ("refresh_mode", " Incremental ", "refresh_mode", RefreshMode.INCREMENTAL),
        ("initialize", "ON_CREATE", "initialize", Initialize.ON_CREATE),
        ("initialize", "on_schedule", "initialize", Initialize.ON_SCHEDULE),
        ("on_configuration_change", "Apply", "on_configuration_change", "apply"),
        ("on_configuration_change", "continue", "on_configuration_change", "continue"),
        ("on_configuration_change", "FAIL", "on_configuration_change", "fail"),
        ("unique_key", "id", "unique_key", ("id",)),
        ("unique_key", [" a ", "Order Date"], "unique_key", ("a", "Order Date")),
        ("unique_key", [], "unique_key", ()),
        ("partition_by", "day", "partition_by", ("day",)),
        ("partition_by", ("day", "region"), "partition_by", ("day", "region")),
        ("partition_by", ["a, b"], "partition_by", ("a, b",)),
        ("clustered_by", "id", "cluster_by", ("id",)),
        ("clustered_by", ["a", "b", "c", "d"], "cluster_by", ("a", "b", "c", "d")),
        ("liquid_clustered_by", "id", "cluster_by", ("id",)),
        ("liquid_clustered_by", ["a", "b"], "cluster_by", ("a", "b")),
        (
            "tblproperties",
            {"team": "sales", "n": 3, "on": True},
            "tblproperties",
            {"team": "sales", "n": "3", "on": "true"},
        ),
        (
            "tblproperties",
            {"delta.enableChangeDataFeed": True, "delta.appendOnly": "FALSE"},
            "tblproperties",
            {"delta.enableChangeDataFeed": "true", "delta.appendOnly": "FALSE"},
        ),
        ("location_root", " /data/lake ", "location_root", "/data/lake"),
        ("history_retention", "1 hour", "history_retention", timedelta(hours=1)),
        ("history_retention", "2 Weeks", "history_retention", timedelta(days=14)),
        ("suspend_after", 0, "suspend_after", 0),
        ("suspend_after", 12, "suspend_after", 12),
        ("suspend_after", " 3 ", "suspend_after", 3),
        ("immutable_functions", "My_Mask", "immutable_functions", ("my_mask",)),
        ("max_changes_window", "90 minutes", "max_changes_window", timedelta(minutes=90)),
        (
            "immutable_functions",
            ["tools.F", "cat.tools.g", "TOOLS.f"],
            "immutable_functions",
            ("tools.f", "cat.tools.g"),
        ),
    ],
)
def test_good_values(config: str, value: object, field: str, expected: object) -> None:
    assert getattr(read(**{config: value}), field) == expected


DURATION_OR_DOWNSTREAM = "a duration such as '5 minutes', or 'downstream'"
MODES = "'auto', 'full' or 'incremental'"
COLUMNS = "a column name or a list of column names"
RETENTION = "a duration of at least 1 hour, such as '30 days'"
FAILURES = "a whole number of failures, or 0 for never"
FUNCTIONS = "function names such as 'my_function' or 'my_schema.my_function'"
DIRECTORY = "a directory such as '/data/warehouse' or 's3a://bucket/path'"


@pytest.mark.parametrize(
    ("config", "value", "expected"),
    [
        ("target_lag", "5", DURATION_OR_DOWNSTREAM),
        ("target_lag", 5, DURATION_OR_DOWNSTREAM),
        ("target_lag", "-1 minutes", DURATION_OR_DOWNSTREAM),
        ("target_lag", "upstream", DURATION_OR_DOWNSTREAM),
        ("target_lag", "", DURATION_OR_DOWNSTREAM),
        ("target_lag", True, DURATION_OR_DOWNSTREAM),
        ("target_lag", ["5 minutes"], DURATION_OR_DOWNSTREAM),
        ("refresh_mode", "always", MODES),
        ("refresh_mode", "", MODES),
        ("refresh_mode", False, MODES),
        ("initialize", "on-create", "'on_create' or 'on_schedule'"),
        ("initialize", 1, "'on_create' or 'on_schedule'"),
        ("on_configuration_change", "ignore", "'apply', 'continue' or 'fail'"),
        ("unique_key", 5, COLUMNS),
        ("unique_key", "", COLUMNS),
        ("unique_key", ["a", ""], COLUMNS),
        ("unique_key", ["a", 1], COLUMNS),
        ("unique_key", {"a": "b"}, COLUMNS),
        ("unique_key", "a, b", "a list for more than one column, such as ['a', 'b']"),
        ("unique_key", ["a", "A"], "every column only once"),
        ("partition_by", 5, COLUMNS),
        ("partition_by", ["a", "a"], "every column only once"),
        ("clustered_by", True, COLUMNS),
        ("clustered_by", list("abcde"), "at most 4 columns"),
        ("liquid_clustered_by", list("abcde"), "at most 4 columns"),
        ("liquid_clustered_by", "a,b", "a list for more than one column, such as ['a', 'b']"),
        ("tblproperties", "a=b", "a mapping of property names to values"),
        ("tblproperties", ["a"], "a mapping of property names to values"),
        ("tblproperties", {1: "x"}, "property names that are text"),
        ("tblproperties", {" ": "x"}, "property names that are text"),
        ("tblproperties", {"a": None}, "property values that are text, numbers, true or false"),
        ("tblproperties", {"a": ["x"]}, "property values that are text, numbers, true or false"),
        (
            "tblproperties",
            {"Spark_Dynamic.model": "x"},
            "no property that starts with 'spark_dynamic.': the adapter sets these",
        ),
        (
            "tblproperties",
            {"delta.enableChangeDataFeed": False},
            "'true': readers of a dynamic table need its change feed",
        ),
        (
            "tblproperties",
            {"delta.enableDeletionVectors": "False"},
            "'true': small refreshes need deletion vectors",
        ),
        ("tblproperties", {"delta.appendOnly": True}, "'false': a refresh also deletes rows"),
        (
            "tblproperties",
            {"delta.deletedFileRetentionDuration": "interval 7 days"},
            "`history_retention` to be used for this",
        ),
        (
            "tblproperties",
            {"DELTA.logRetentionDuration": "interval 7 days"},
            "`history_retention` to be used for this",
        ),
        (
            "tblproperties",
            {"delta.setTransactionRetentionDuration": "interval 7 days"},
            "no such property: it would let a refresh be applied twice",
        ),
        ("location_root", "", DIRECTORY),
        ("location_root", 5, DIRECTORY),
        ("history_retention", "59 minutes", RETENTION),
        ("history_retention", "forever", RETENTION),
        ("history_retention", 30, RETENTION),
        ("max_changes_window", "0 days", "a duration such as '5 minutes'"),
        ("max_changes_window", 7, "a duration such as '5 minutes'"),
        ("suspend_after", -1, FAILURES),
        ("suspend_after", True, FAILURES),
        ("suspend_after", 2.0, FAILURES),
        ("suspend_after", "-1", FAILURES),
        ("suspend_after", "never", FAILURES),
        ("immutable_functions", "my_function()", FUNCTIONS),
        ("immutable_functions", "a, b", FUNCTIONS),
        ("immutable_functions", ["a", None], FUNCTIONS),
        ("immutable_functions", "a.b.c.d", FUNCTIONS),
        ("immutable_functions", "1st", FUNCTIONS),
        ("file_format", "parquet", "'delta': dynamic tables are Delta tables"),
        ("file_format", 1, "'delta': dynamic tables are Delta tables"),
        ("buckets", 8, "no value: Delta has no buckets, use `clustered_by` alone"),
    ],
)
def test_bad_values(config: str, value: object, expected: str) -> None:
    read_as, problems = parse_config({config: value})
    assert problems == [ConfigProblem(config, value, expected)]
    assert read_as == DynamicTableConfig()


def test_file_format_delta_is_fine_in_any_case() -> None:
    assert read(file_format=" Delta ") == DynamicTableConfig()


def test_the_sentence_has_a_fixed_pattern() -> None:
    assert problems_of({"target_lag": "5"}) == [
        "Invalid value for `target_lag`: '5'. "
        "Expected a duration such as '5 minutes', or 'downstream'."
    ]
    assert problems_of({"suspend_after": -1}) == [
        "Invalid value for `suspend_after`: -1. "
        "Expected a whole number of failures, or 0 for never."
    ]


def test_a_long_value_is_cut() -> None:
    (sentence,) = problems_of({"target_lag": "x" * 1000})
    assert "x…. Expected" in sentence
    assert len(sentence) < 200


def test_every_problem_is_found_and_good_values_are_kept() -> None:
    config, problems = parse_config(
        {
            "target_lag": "soon",
            "refresh_mode": "lazy",
            "suspend_after": -3,
            "unique_key": "id",
            "file_format": "orc",
            "tblproperties": {
                "delta.enableChangeDataFeed": "false",
                "spark_dynamic.x": "1",
                "team": "sales",
            },
        }
    )
    assert [problem.config for problem in problems] == [
        "file_format",
        "target_lag",
        "refresh_mode",
        "tblproperties",
        "tblproperties",
        "suspend_after",
    ]
    assert problems[3].got == {"delta.enableChangeDataFeed": "false"}
    assert config == DynamicTableConfig(unique_key=("id",), tblproperties={"team": "sales"})


def test_both_names_for_clustering_may_agree() -> None:
    assert read(clustered_by="a", liquid_clustered_by=["a"]).cluster_by == ("a",)


def test_both_names_for_clustering_must_not_differ() -> None:
    assert problems_of({"clustered_by": "a", "liquid_clustered_by": ["b"]}) == [
        "Invalid value for `liquid_clustered_by`: ['b']. "
        "Expected the columns of `clustered_by`, or only one of the two configs."
    ]


@pytest.mark.parametrize("clustering", ["clustered_by", "liquid_clustered_by"])
def test_partitions_and_clustering_exclude_each_other(clustering: str) -> None:
    assert problems_of({"partition_by": "day", clustering: "id"}) == [
        "Invalid value for `partition_by`: 'day'. "
        f"Expected no partitions beside `{clustering}`: a Delta table has one or neither."
    ]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("taget_lag", "target_lag"),
        ("target-lag", "target_lag"),
        ("targetLag", "target_lag"),
        ("TARGET_LAG", "target_lag"),
        ("+target_lag", "target_lag"),
        ("refreshmode", "refresh_mode"),
        ("refresh_mod", "refresh_mode"),
        ("initialise", "initialize"),
        ("on_config_change", "on_configuration_change"),
        ("unique_keys", "unique_key"),
        ("partitioned_by", "partition_by"),
        ("cluster_by", "clustered_by"),
        ("liquid_cluster_by", "liquid_clustered_by"),
        ("tbl_properties", "tblproperties"),
        ("table_properties", "tblproperties"),
        ("location_rot", "location_root"),
        ("history_retension", "history_retention"),
        ("suspended_after", "suspend_after"),
        ("immutable_function", "immutable_functions"),
    ],
)
def test_a_key_close_to_ours_gets_a_suggestion(key: str, meant: str) -> None:
    assert [str(problem) for problem in did_you_mean([key])] == [
        f"Unknown config `{key}`. Did you mean `{meant}`?"
    ]


@pytest.mark.parametrize(
    "key",
    [
        "target_lag",
        "liquid_clustered_by",
        "target_schema",
        "target_database",
        "pre-hook",
        "pre_hook",
        "+full_refresh",
        "buckets",
        "partitions",
        "snowflake_warehouse",
        "refresh_warehouse",
        "immutable_where",
        "primary_key",
        "owner",
        "",
        "+",
    ],
)
def test_other_keys_get_none(key: str) -> None:
    assert did_you_mean([key]) == []


def test_a_key_that_is_not_text_does_no_harm() -> None:
    assert did_you_mean([True, 5]) == []  # type: ignore[list-item]
    assert parse_config({True: 1, 5: 2})[1] == []  # type: ignore[dict-item]
