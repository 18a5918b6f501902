"""The configuration of streams and of the models that consume them, checked at parse time."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.contracts.graph.manifest import Manifest, ManifestMetadata
from dbt.contracts.graph.nodes import ModelNode
from tests.unit.model_nodes import model_node

from dbt.adapters.spark_dynamic.config import DynamicTableConfigError, check_project
from dbt.adapters.spark_dynamic.stream_models import consumer_problems, consumers, consumes
from spark_dynamic.changes.point import DataTimestamp, OtherPosition
from spark_dynamic.changes.read import Mode
from spark_dynamic.changes.stream_config import (
    StreamConfig,
    misspelled_stream_configs,
    parse_stream_config,
)

STREAM_MACRO = "macro.dbt_spark_dynamic.stream"


def read(**raw: Any) -> StreamConfig:
    config, problems = parse_stream_config(raw)
    assert problems == []
    return config


def problems_of(**raw: Any) -> list[str]:
    return [str(problem) for problem in parse_stream_config(raw)[1]]


def stream(name: str, **config: Any) -> ModelNode:
    return model_node(name, {"materialized": "changes_stream", **config})


def consumer(name: str, *macros: str, **config: Any) -> ModelNode:
    depends_on = {"macros": list(macros or [STREAM_MACRO]), "nodes": ["model.shop.people_stream"]}
    return model_node(name, config, depends_on=depends_on)


def macro(text: str) -> Any:
    depends_on = SimpleNamespace(macros=[STREAM_MACRO, "macro.shop.own"])
    return SimpleNamespace(depends_on=depends_on, macro_sql=text)


def manifest_of(*nodes: ModelNode, **macros: Any) -> Manifest:
    found = Manifest(
        nodes={node.unique_id: node for node in nodes},
        metadata=ManifestMetadata(adapter_type="spark_dynamic"),
    )
    found.macros.update(macros)
    return found


def message_of(*nodes: ModelNode) -> str:
    with pytest.raises(DynamicTableConfigError) as error:
        check_project(manifest_of(*nodes))
    return str(error.value)


def test_defaults() -> None:
    assert read() == StreamConfig(Mode.MIN_DELTA, None, None, (), {}, False, None)
    # A table that was made with rows has had them before its first change.
    assert read(at="before the first change").initial_rows
    assert read().initial_rows
    assert not read(at="now").initial_rows
    assert read(at="now", show_initial_rows=True).initial_rows
    assert not read(show_initial_rows="false").initial_rows


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("NOW", "now"),
        ("Before the first change", "before the first change"),
        (7, 7),
        ("7", 7),
        ("2026-01-31", "2026-01-31"),
        ("2 hours", "2 hours"),
        ({"stream": "other"}, OtherPosition("other")),
        ({"stream": "other", "consumer": "c"}, OtherPosition("other", "c")),
        ({"dynamic_table": "totals"}, DataTimestamp("totals")),
    ],
)
def test_points(at: Any, expected: Any) -> None:
    assert read(at=at).at == expected


@pytest.mark.parametrize(
    "at",
    [
        "yesterday",
        -1,
        True,
        {"consumer": "c"},
        {"stream": "s", "x": 1},
        [1],
        {"dynamic_table": ""},
        "2026-13-01",
    ],
)
def test_what_is_no_point(at: Any) -> None:
    [problem] = problems_of(at=at)
    assert problem.startswith("Invalid value for `at`:") and "'before the first change'" in problem


def test_all_problems_at_once() -> None:
    assert read(mode="Redo_Log", max_retention_extension="30 days").mode is Mode.REDO_LOG
    assert read(max_retention_extension="1 week").max_retention_extension == timedelta(days=7)
    assert read(encoding="Upserts").upserts and not read(encoding="changes").upserts
    assert read(row_keys={"a": "id", "b": ["x", "y"]}).row_keys == {"a": ("id",), "b": ("x", "y")}
    found = problems_of(mode="all", show_initial_rows=3, unique_key=5, max_retention_extension="1",
                        row_keys="id", encoding="redo")  # fmt: skip
    assert len(found) == 6
    assert found[0].endswith("Expected one of 'min_delta', 'append_only', 'redo_log'.")


def test_did_you_mean() -> None:
    [found] = misspelled_stream_configs(["show_initial_row", "tags", "partition_by", "owner"])
    assert str(found) == "Unknown config `show_initial_row`. Did you mean `show_initial_rows`?"


def test_a_project_with_streams_is_checked_as_a_whole() -> None:
    sound = [
        stream("people_stream", unique_key="id", at="now"),
        consumer("grown", materialized="incremental", incremental_strategy="merge"),
        consumer("batch", materialized="table"),
    ]
    check_project(manifest_of(*sound))
    text = message_of(
        stream("people_stream", mode="x", show_initial_row=True),
        consumer("shown", materialized="view"),
        consumer("dynamic", materialized="dynamic_table"),
        consumer("parquet", materialized="table", file_format="parquet"),
        model_node("misspelled", {"materialized": "change_stream"}),
    )
    assert text.count("    - ") == 6
    assert "Did you mean `show_initial_rows`?" in text
    assert "it can read the stream with ref(), which moves nothing" in text
    assert "through integrate()" in text
    assert "a consumer's position is kept in its Delta log" in text
    assert "'change_stream'. Expected 'changes_stream'." in text


@pytest.mark.parametrize(
    ("config", "kind", "wrong"),
    [
        ({"materialized": "incremental"}, "model", []),
        ({"materialized": "incremental", "incremental_strategy": "append"}, "model", []),
        (
            {"materialized": "incremental", "incremental_strategy": "insert_overwrite"},
            "model",
            ["incremental_strategy"],
        ),
        ({"materialized": "snapshot"}, "snapshot", []),
        ({"hard_deletes": "ignore"}, "snapshot", []),
        ({"hard_deletes": "invalidate"}, "snapshot", ["hard_deletes"]),
        ({"invalidate_hard_deletes": True}, "snapshot", ["invalidate_hard_deletes"]),
        ({"materialized": "ephemeral"}, "model", ["materialized"]),
        ({}, "test", ["stream()"]),
    ],
)
def test_who_can_consume(config: dict[str, Any], kind: str, wrong: list[str]) -> None:
    assert [problem.config for problem in consumer_problems(config, kind)] == wrong


def test_a_consumer_is_known_by_the_macros_that_it_calls() -> None:
    own = macro("{% macro own() %}{{ stream('people_stream') }}{% endmacro %}")
    node, other = consumer("a", "macro.shop.own"), consumer("b", "macro.shop.unknown")
    assert consumes(node, {"macro.shop.own": own})
    assert not consumes(other, {"macro.shop.own": own})
    people = stream("people_stream")
    manifest = manifest_of(people, node, **{"macro.shop.own": own})
    [found] = consumers(manifest)
    assert (found.node.name, [s.name for s in found.streams]) == ("a", ["people_stream"])


@pytest.mark.parametrize(
    ("text", "expected", "is_certain"),
    [
        ("{{ stream('people_stream') }} {{ ref('items_stream') }}", ["people_stream"], True),
        ("{{ stream('shop', 'items_stream') }}", ["items_stream"], True),
        ("{{ dbt_spark_dynamic.stream(name='items_stream') }}", ["items_stream"], True),
        ("{{ stream('other', 'items_stream') }}", [], True),
        ("{{ stream('people_' ~ 'stream') }}", ["people_stream", "items_stream"], False),
        (
            "{{ stream(one) }} {{ stream('items_stream') }}",
            ["people_stream", "items_stream"],
            False,
        ),
        ("{% broken", ["people_stream", "items_stream"], False),
    ],
)
def test_streams_that_are_only_read_are_not_consumed(
    text: str, expected: list[str], is_certain: bool
) -> None:
    streams = stream("people_stream"), stream("items_stream")
    depends_on = {"macros": [STREAM_MACRO], "nodes": [one.unique_id for one in streams]}
    node = model_node("both", {}, depends_on=depends_on, raw_code=text)
    [found] = consumers(manifest_of(*streams, node))
    assert [one.name for one in found.streams] == expected
    assert found.is_certain is is_certain
    # What a record has is consumed in any case, and tells what the text does not.
    taken = [one.consumes(streams[1], {streams[1].unique_id}) for one in [found]]
    assert taken == [True]
    assert found.consumes(streams[0], {}) is (is_certain and "people_stream" in expected)


@pytest.mark.parametrize(
    ("text", "is_certain"),
    [("{{ stream('people_stream') }}", True), ("{{ stream(name) }}", False), ("", False)],
)
def test_streams_that_a_macro_of_the_project_consumes(text: str, is_certain: bool) -> None:
    own = macro("{% macro own(name) %}" + text + "{% endmacro %}")
    people = stream("people_stream")
    node = consumer("a", "macro.shop.own")
    [found] = consumers(manifest_of(people, node, **{"macro.shop.own": own}))
    assert (found.streams, found.is_certain) == ([people], is_certain)
