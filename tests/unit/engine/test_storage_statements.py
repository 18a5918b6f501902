from typing import Any

import pytest
from fake_shop import config

from spark_dynamic.apply.rows import Rows
from spark_dynamic.apply.storage import (
    check_columns,
    create_storage,
    generations,
    overwrite_storage,
    select_for_storage,
    storage_facts,
    storage_name,
    stored_columns,
    table_properties,
    view_query,
)
from spark_dynamic.apply.view import (
    Before,
    Description,
    has_applied,
    show_storage,
    storage_behind,
)
from spark_dynamic.errors import EngineError
from spark_dynamic.names import TableName
from spark_dynamic.warehouse import Column, Relation, ViewText

VIEW = TableName("shop", "revenue")
STORAGE = storage_name(VIEW, 1)
COLUMNS = stored_columns([Column("region", "string"), Column("a b", "int")])


@pytest.mark.parametrize(
    ("number", "name"), [(1, "revenue__dyn"), (2, "revenue__dyn_2"), (13, "revenue__dyn_13")]
)
def test_generations_have_numbers_in_their_names(number: int, name: str) -> None:
    assert storage_name(VIEW, number) == TableName("shop", name)
    assert generations(VIEW, [name]) == [number]


@pytest.mark.parametrize(
    "name",
    ["revenue", "revenue_dyn", "xrevenue__dyn", "revenue__dyn_", "revenue__dyn_02",
     "revenue__dyn_2x", "revenue__dyn_2_3", "revenue__dyn__dyn", "revenue2__dyn"],
)  # fmt: skip
def test_other_names_are_no_generations(name: str) -> None:
    assert generations(VIEW, [name]) == []


def test_the_newest_generation_comes_first() -> None:
    names = ["revenue__dyn", "other__dyn_99", "revenue__dyn_10", "revenue__dyn_9", "revenue"]
    assert generations(VIEW, names) == [10, 9, 1]


def test_a_name_with_pattern_characters_is_taken_literally() -> None:
    assert generations(TableName("s", "a.c"), ["abc__dyn", "a.c__dyn"]) == [1]


@pytest.mark.parametrize(
    "name", ["a b", "a,b", "a;b", "a{b", "a}b", "a(b", "a)b", "a=b", "a\tb", "a`b"]
)
def test_names_that_delta_refuses_are_stored_under_another(name: str) -> None:
    [_, column] = stored_columns([Column("x", "int"), Column(name, "int")])
    assert (column.name, column.stored_as) == (name, "__dyn_column_2")


@pytest.mark.parametrize("name", ["a.b", "select", "ü", "a-b", "Total"])
def test_other_names_are_stored_as_they_are(name: str) -> None:
    [column] = stored_columns([Column(name, "int")])
    assert column.stored_as == name


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["__dyn_x"], "COLUMN_NAME_RESERVED: The column __dyn_x begins with __dyn_"),
        (["__DYN_x"], "COLUMN_NAME_RESERVED: The column __DYN_x"),
        (["a", "b", "A"], "COLUMN_NAME_TWICE: The query has two columns named A"),
    ],
)
def test_these_column_names_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(EngineError, match=message):
        stored_columns(Column(name, "int") for name in names)


def test_the_view_gives_columns_their_names_back() -> None:
    assert view_query(COLUMNS, STORAGE) == (
        "SELECT `region`, `__dyn_column_2` AS `a b` FROM `shop`.`revenue__dyn`"
    )
    assert select_for_storage("select 1", COLUMNS) == (
        "SELECT CAST(`region` AS string) AS `region`, `a b` AS `__dyn_column_2` FROM (\n"
        "select 1\n)"
    )


def created(**raw: Any) -> list[str]:
    return create_storage(STORAGE, config(**raw), "m", COLUMNS, "SELECT 1").split("\n")


def test_a_generation_is_created_and_never_replaced() -> None:
    lines = created()
    assert lines[:2] == ["CREATE TABLE `shop`.`revenue__dyn`", "USING delta"]
    assert lines[2].startswith("TBLPROPERTIES (")
    assert lines[3].startswith("AS SELECT")
    assert "REPLACE" not in "".join(lines) and "IF NOT EXISTS" not in "".join(lines)


def test_layout_and_place_are_part_of_the_statement() -> None:
    assert "PARTITIONED BY (`region`)" in created(partition_by="REGION")
    assert "CLUSTER BY (`region`, `__dyn_column_2`)" in created(clustered_by=["region", "a b"])
    assert "LOCATION '/data/o\\'x/revenue__dyn'" in created(location_root="/data/o'x/")


@pytest.mark.parametrize("key", ["partition_by", "clustered_by", "unique_key"])
def test_an_unknown_column_of_the_config_is_named(key: str) -> None:
    with pytest.raises(EngineError, match=rf"COLUMN_UNKNOWN: {key} names nope, .* region, a b"):
        check_columns(config(**{key: "nope"}), COLUMNS)
    check_columns(config(**{key: "A B"}), COLUMNS)


def test_an_overwrite_is_one_statement() -> None:
    assert overwrite_storage(STORAGE, "SELECT 1") == (
        "INSERT OVERWRITE TABLE `shop`.`revenue__dyn` BY NAME\nSELECT 1"
    )


def test_properties_that_refreshes_need_win_over_the_users() -> None:
    found = table_properties(config(tblproperties={"x": 1}, history_retention="2 days"), "m")
    assert found == {
        "x": "1",
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": "true",
        "delta.deletedFileRetentionDuration": "interval 172800 seconds",
        "delta.logRetentionDuration": "interval 172800 seconds",
        "spark_dynamic.model": "m",
    }


def test_only_partitions_and_place_need_a_new_generation() -> None:
    plain = storage_facts(config())
    assert storage_facts(config(clustered_by="region", tblproperties={"x": 1})) == plain
    assert storage_facts(config(partition_by="region")) != plain
    assert storage_facts(config(location_root="/x")) != plain


def shown(text: str, properties: str) -> Relation:
    return Relation(VIEW, (), "", "", properties, view=ViewText(text, "shop", (), {}))


def shown_by(existing: Relation | None) -> list[str]:
    return [
        sql.split(" TBLPROPERTIES")[0]
        for sql in show_storage(VIEW, "m", existing, COLUMNS, STORAGE)
    ]


def test_the_view_is_created_or_altered_and_never_replaced() -> None:
    query = view_query(COLUMNS, STORAGE)
    ours = "[a=b, spark_dynamic.model=m]"
    assert shown_by(None) == ["CREATE VIEW `shop`.`revenue`"]
    assert shown_by(shown(query, ours)) == []
    assert shown_by(shown("select 1", ours)) == [f"ALTER VIEW `shop`.`revenue` AS {query}"]
    # A plain view before: it becomes ours.
    assert shown_by(shown(query, "[a=b]")) == ["ALTER VIEW `shop`.`revenue` SET"]


def test_a_table_gives_way_to_the_view() -> None:
    before = Relation(VIEW, (), "delta", "/x")
    assert shown_by(before) == ["DROP TABLE `shop`.`revenue`", "CREATE VIEW `shop`.`revenue`"]


NOTHING = Before()


def described(
    about: Description,
    with_config: bool = True,
    with_docs: bool = True,
    before: Before | None = NOTHING,
) -> list[str]:
    return about.statements(VIEW, "m", STORAGE, COLUMNS, with_config, with_docs, before=before)


def test_what_is_no_longer_asked_for_is_taken_away() -> None:
    before = Before(frozenset({"x", "y", "delta.appendOnly"}), "old", {"region": "where"})
    found = described(Description(config(tblproperties={"y": 2}), None, {}), before=before)
    unset = "UNSET TBLPROPERTIES IF EXISTS ('delta.appendOnly', 'x')"
    assert f"ALTER TABLE {STORAGE.sql} {unset}" in found
    assert f"ALTER TABLE {STORAGE.sql} ALTER COLUMN `region` COMMENT ''" in found
    assert f"ALTER VIEW {VIEW.sql} UNSET TBLPROPERTIES IF EXISTS ('comment')" in found
    assert "'spark_dynamic.tblproperties' = '[\"y\"]'" in found[-1]


def test_comments_that_are_right_stay() -> None:
    before = Before(column_comments={"region": "where", "__dyn_column_2": "spaced"})
    about = Description(config(), None, {"region": "where", "a b": "spaced"})
    assert len(described(about, with_config=False, before=before)) == 1


def test_a_table_that_was_just_built_has_its_properties() -> None:
    found = described(Description(config(tblproperties={"x": 1}), None, {}), before=None)
    assert len(found) == 1 and found[0].startswith("ALTER VIEW")


def test_comments_properties_and_clustering_are_applied() -> None:
    comments = {"A B": "spaced", "gone": "x"}
    found = described(Description(config(clustered_by="A B"), "it's", comments))
    assert "ALTER TABLE `shop`.`revenue__dyn` CLUSTER BY (`__dyn_column_2`)" in found
    comment = "ALTER COLUMN `__dyn_column_2` COMMENT 'spaced'"
    assert [sql for sql in found if "COLUMN" in sql] == [f"ALTER TABLE {STORAGE.sql} {comment}"]
    assert "'comment' = 'it\\'s'" in found[-1]


def test_only_what_has_changed_is_applied() -> None:
    about = Description(config(), "text", {"region": "where"})
    assert described(about, with_config=False, with_docs=False) == []
    config_only = " ".join(described(about, with_docs=False))
    docs_only = " ".join(described(about, with_config=False))
    assert "CLUSTER BY NONE" in config_only and "COMMENT" not in config_only
    assert "COMMENT 'where'" in docs_only and "CLUSTER BY" not in docs_only
    assert about.config_mark in config_only and about.docs_mark not in config_only
    assert about.docs_mark in docs_only and about.config_mark not in docs_only


def test_clustering_is_left_alone_on_a_partitioned_table() -> None:
    found = described(Description(config(partition_by="region"), None, {}))
    assert not [sql for sql in found if "CLUSTER BY" in sql]


@pytest.mark.parametrize(
    "raw",
    [{"tblproperties": {"x": 1}}, {"clustered_by": "region"}, {"history_retention": "1 day"}],
)
def test_configuration_and_comments_have_a_mark_each(raw: dict[str, Any]) -> None:
    plain, other = (Description(config(**given), None, {}) for given in ({}, raw))
    assert other.config_mark != plain.config_mark and other.docs_mark == plain.docs_mark
    for documented in (Description(config(), "c", {}), Description(config(), None, {"a": "b"})):
        assert documented.docs_mark != plain.docs_mark
        assert documented.config_mark == plain.config_mark


def test_a_mark_is_found_on_the_view() -> None:
    assert has_applied(shown("", "[spark_dynamic.docs=abc, x=y]"), "abc")
    assert not has_applied(shown("", "[spark_dynamic.docs=abcd, x=abc]"), "abc")
    assert not has_applied(None, "abc")


def test_the_storage_is_read_off_the_view() -> None:
    second = storage_name(VIEW, 2)
    assert storage_behind(shown(view_query(COLUMNS, second), ""), VIEW) == second
    assert storage_behind(None, VIEW) == STORAGE


def test_a_rebuild_runs_the_text_as_it_was_written() -> None:
    text = "SELECT 'two\nlines' AS region,\n  1 AS `a b`"
    assert f"\n{text}\n" in Rows(COLUMNS).build(text, 1)
