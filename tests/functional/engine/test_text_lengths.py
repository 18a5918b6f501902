"""Texts whose sources have a length: the storage of a query never has one."""

import pytest
from spark_shop import SparkShop

COPY = "select id, s, n from t"
COUNTED = "select s, count(*) as n, max(s) as most from t group by s"
HIDDEN_KEY = "select upper(s) as loud, count(*) as n from t group by s"


@pytest.fixture
def texts(shop: SparkShop) -> SparkShop:
    shop.table("t", "id int, s varchar(5), n struct<a: varchar(3)>")
    shop.run("insert into t values (1, 'one', named_struct('a', 'x')), (2, null, null)")
    return shop


def lengths(shop: SparkShop, table: str) -> set[str]:
    """Return what Spark knows of the lengths of a table's texts; no DESCRIBE of Delta tells."""
    shop.run(f"create or replace temporary view lengths as select * from {table}")
    types = {row["data_type"] for row in shop.session.sql("describe lengths").collect()}
    return {type for type in types if "char" in type}


@pytest.mark.parametrize(
    ("query", "mode"),
    [(COPY, "incremental"), (COPY, "full"), (COUNTED, "incremental"), (HIDDEN_KEY, "incremental")],
)
def test_a_longer_source_column_needs_no_other_storage(
    texts: SparkShop, query: str, mode: str
) -> None:
    texts.model("m", query, refresh_mode=mode)
    texts.check("m", "FULL")
    assert lengths(texts, "m__dyn") == set() and lengths(texts, "m") == set()
    texts.run("alter table t alter column s type varchar(50)")
    texts.check("m", "NO_DATA")
    texts.run("insert into t values (3, 'longer than five', null)")
    assert texts.check("m", mode.upper()).plan.generation == 1


def test_an_edited_query_may_have_longer_texts(texts: SparkShop) -> None:
    texts.model("m", COPY)
    texts.check("m", "FULL")
    texts.model("m", "select id, coalesce(s, 'unknown') as s, n from t")
    assert texts.check("m", "REINITIALIZE").plan.generation == 1
    texts.run("insert into t values (3, null, named_struct('a', 'y'))")
    texts.check("m")


@pytest.mark.parametrize(
    ("query", "mode"),
    [(COPY, "incremental"), (COPY, "auto"), (COUNTED, "full"), (HIDDEN_KEY, "incremental")],
)
def test_storage_of_an_older_engine_is_replaced(
    texts: SparkShop, query: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts.model("m", query, refresh_mode=mode)
    with monkeypatch.context() as older:
        for module in ("storage", "rows", "groups"):
            older.setattr(f"spark_dynamic.apply.{module}.without_length", lambda sql, _: sql)
        older.setattr("spark_dynamic.refresh.new_record.built_facts", _facts_of_older)
        texts.check("m", "FULL")
    assert lengths(texts, "m__dyn") != set()
    texts.run("alter table t alter column s type varchar(50)")
    texts.run("insert into t values (3, 'longer than five', null)")
    outcome = texts.refresh("m")
    assert texts.difference("m") == []
    assert outcome.plan.generation == 2 and lengths(texts, "m__dyn_2") == set()
    texts.check("m", "NO_DATA")


def _facts_of_older(config: object) -> object:
    from spark_dynamic.apply.storage import storage_facts

    return storage_facts(config)  # type: ignore[arg-type]
