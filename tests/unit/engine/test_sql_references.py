import pytest

from spark_dynamic.names import TableName
from spark_dynamic.sql.pin import Query, ViewQuery, pinned
from spark_dynamic.sql.references import Unreadable, find_references
from spark_dynamic.sql.resolve import resolve
from spark_dynamic.warehouse import Column, Relation, ViewText


def found(sql: str) -> list[tuple[str, str]]:
    """Return each table with the characters of the text that name it."""
    references = find_references(sql, "d").tables
    return [
        (str(reference.table), sql[reference.start : reference.end]) for reference in references
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select * from t", [("d.t", "t")]),
        ("select * from s.t", [("s.t", "s.t")]),
        ("select * from spark_catalog.s.t", [("s.t", "spark_catalog.s.t")]),
        ("select * from other.s.t", [("other.s.t", "other.s.t")]),
        ("select * from S . T", [("s.t", "S . T")]),
        ("from t select a", [("d.t", "t")]),
        ("from t |> where a > 1 |> select a", [("d.t", "t")]),
        ("(select * from t) union all (select * from u)", [("d.t", "t"), ("d.u", "u")]),
        ("select * from t, u x join v using (a)", [("d.t", "t"), ("d.u", "u"), ("d.v", "v")]),
        ("select (select max(a) from u) from t", [("d.u", "u"), ("d.t", "t")]),
        (
            "select 1 from t where exists (select 1 from w where w.id = t.id)",
            [("d.t", "t"), ("d.w", "w")],
        ),
        ("select * from t tablesample (10 percent)", [("d.t", "t")]),
        ("select * from t lateral view explode(a) e as x", [("d.t", "t")]),
        ("select s.t.a from s.t", [("s.t", "s.t")]),
        ("select t.a from t as t", [("d.t", "t")]),
    ],
)
def test_tables_are_found_wherever_they_stand(sql: str, expected: list[tuple[str, str]]) -> None:
    assert found(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select * from `My T`", [("d.my t", "`My T`")]),
        ("select * from s.`a.b`", [("s.`a.b`", "s.`a.b`")]),
        ("select * from `c``d`", [("d.`c``d`", "`c``d`")]),
        ("select * from delta.`/data/T`", [("delta./data/T", "delta.`/data/T`")]),
        ("select 'ünï', `ü` from tä join u", [("d.tä", "tä"), ("d.u", "u")]),
        ("select '𝄞𝄞', a from t", [("d.t", "t")]),
    ],
)
def test_odd_names_keep_their_place(sql: str, expected: list[tuple[str, str]]) -> None:
    assert found(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "-- from x\nselect a from t",
        "select /* from x join y */ a from t",
        "select 'from x' from t",
        "select 'it''s from x' from t",
        r"select 'it\'s from x' from t",
        'select "from x" from t',
        "select r'\\' as a from t",
        "select a from t -- join x",
        "select a /* -- */ from t /* from x */ where b = '/*'",
    ],
)
def test_comments_and_strings_are_no_tables(sql: str) -> None:
    assert found(sql) == [("d.t", "t")]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("with a as (select * from t) select * from a", ["d.t"]),
        # The name inside its own definition is the table.
        ("with a as (select * from a) select * from a", ["d.a"]),
        ("with a as (select 1), b as (select * from a) select * from b", []),
        # A definition sees only those before it.
        ("with b as (select * from a), a as (select 1) select * from b", ["d.a"]),
        ("with a as (select 1) select * from s.a", ["s.a"]),
        ("with a as (with a as (select * from t) select * from a) select * from a", ["d.t"]),
        ("select * from (with a as (select 1) select * from a) x, a", ["d.a"]),
        ("with A as (select 1) select * from a", []),
        ("with `a b` as (select * from t) select * from `A B`", ["d.t"]),
        ("with a as (select 1) select (select count(*) from a) from t", ["d.t"]),
        ("with t(x) as (select * from u) select * from t", ["d.u"]),
        (
            "with recursive r as (select 1 as n union all select n + 1 from r, t) select * from r",
            ["d.t"],
        ),
    ],
)
def test_names_of_ctes_are_no_tables(sql: str, expected: list[str]) -> None:
    assert [table for table, _ in found(sql)] == expected


@pytest.mark.parametrize(
    "sql",
    [
        "select * from t version as of 3",
        "select * from t for version as of 3 as x",
        "select * from t timestamp as of '2026-01-01'",
    ],
)
def test_a_version_in_the_text_stays_the_users(sql: str) -> None:
    assert found(sql) == []
    assert found(f"{sql} join u") == [("d.u", "u")]


@pytest.mark.parametrize(
    "sql", ["select from where", "insert into t select 1", "table t", "select 1; select 2"]
)
def test_what_is_not_one_query_is_unreadable(sql: str) -> None:
    with pytest.raises(Unreadable):
        find_references(sql, "d")


def table(name: str) -> Relation:
    return Relation(TableName.parse(name), (Column("id", "bigint"),), "delta", f"/{name}")


def view(
    name: str, text: str, shown: str, inside: str = "", properties: str = "", **settings: str
) -> Relation:
    columns = tuple(Column(column, "bigint") for column in shown.split())
    captured = {key.replace("_", "."): value for key, value in settings.items()}
    query = ViewText(text, "d", tuple((inside or shown).split()), captured)
    return Relation(TableName.parse(name), columns, "", "", properties, view=query)


def read(sql: str, *relations: Relation, **settings: str) -> Query:
    known = {relation.name: relation for relation in relations}
    chosen = {key.replace("_", "."): value for key, value in settings.items()}
    return resolve(sql, "d", known.get, chosen)


def pinned_text(sql: str, *relations: Relation, **versions: int) -> str:
    return pinned(read(sql, *relations), {TableName("d", k): v for k, v in versions.items()})


def test_only_the_names_of_tables_are_replaced() -> None:
    sql = "select  t.a -- t\n, 't' from\tt  join `u` as x on t.id=x.id"
    assert pinned_text(sql, table("d.t"), table("d.u"), t=3, u=4) == (
        "select  t.a -- t\n, 't' from\t`d`.`t` VERSION AS OF 3  join "
        "`d`.`u` VERSION AS OF 4 as x on t.id=x.id"
    )


def test_each_mention_is_pinned() -> None:
    sql = "select * from t a join t b using (id) where a.id in (select id from t)"
    assert pinned_text(sql, table("d.t"), t=7).count("`d`.`t` VERSION AS OF 7") == 3


def test_a_table_without_a_version_is_only_written_out() -> None:
    assert pinned_text("select * from t", table("d.t")) == "select * from `d`.`t`"


def test_a_view_is_written_out_under_its_name() -> None:
    views = view("d.v", "select id from t", "id")
    text = pinned_text("select v.id from v", views, table("d.t"), t=2)
    assert text.startswith("select v.id from (") and text.endswith(") AS `v`")
    assert "select id from `d`.`t` VERSION AS OF 2\n" in text


def test_an_alias_of_a_view_is_kept() -> None:
    views = view("d.v", "select id from t", "id")
    text = pinned_text("select x.id from v as x", views, table("d.t"), t=2)
    assert text.endswith(") as x") and "`v`" not in text


def test_a_view_that_ends_in_a_comment_does_not_swallow_what_follows() -> None:
    views = view("d.v", "select id from t -- all of them", "id")
    text = pinned_text("select id from v where id > 1", views, table("d.t"), t=2)
    assert "-- all of them\n)" in text and text.endswith(") AS `v` where id > 1")


def test_renamed_columns_of_a_view_are_renamed() -> None:
    views = view("d.v", "select id, x from t", "a `b", "id x")
    text = pinned_text("select a from v", views, table("d.t"), t=2)
    assert text == (
        "select a from (SELECT `id` AS `a`, `x` AS ```b` FROM (\n"
        "select id, x from `d`.`t` VERSION AS OF 2\n)) AS `v`"
    )


def test_views_in_views_are_written_out() -> None:
    inner = view("d.inner_v", "select id from t", "id")
    outer = view("d.outer_v", "select id from inner_v", "id")
    query = read("select * from outer_v join t using (id)", inner, outer, table("d.t"))
    assert query.tables() == {TableName("d", "t")}
    text = pinned(query, {TableName("d", "t"): 5})
    assert text.count("`d`.`t` VERSION AS OF 5") == 2
    assert "_v`" in text and "FROM inner_v" not in text


def test_a_view_reads_names_in_its_own_schema() -> None:
    text = ViewText("select id from t", "other", ("id",), {})
    views = Relation(TableName("d", "v"), (Column("id", "bigint"),), "", "", view=text)
    assert read("select id from v", views, table("other.t")).tables() == {TableName("other", "t")}


def test_the_texts_are_those_of_all_views_but_dynamic_tables() -> None:
    plain = view("d.v", "select id from dyn", "id")
    dynamic = view("d.dyn", "select id from dyn__dyn", "id", properties="[spark_dynamic.model=m]")
    query = read("select id from v", plain, dynamic, table("d.dyn__dyn"))
    texts = " ".join(query.texts())
    assert "select id from v" in texts and "select id from dyn" in texts
    assert "dyn__dyn" not in texts


def test_a_missing_table_is_named() -> None:
    with pytest.raises(Exception, match=r"SOURCE_MISSING: The table d\.t does not exist"):
        read("select * from t")


def test_views_that_read_each_other_are_unreadable() -> None:
    with pytest.raises(Unreadable, match="nested too deeply"):
        read(
            "select * from v",
            view("d.v", "select * from w", "id"),
            view("d.w", "select * from v", "id"),
        )


@pytest.mark.parametrize(
    ("created", "now", "is_readable"),
    [("true", "true", True), ("TRUE", "true", True), ("false", "true", False)],
)
def test_a_view_made_under_other_settings_is_not_written_out(
    created: str, now: str, is_readable: bool
) -> None:
    views = view("d.v", "select id from t", "id", spark_sql_ansi_enabled=created)
    if is_readable:
        assert read("select * from v", views, table("d.t"), spark_sql_ansi_enabled=now).views
        return
    with pytest.raises(Unreadable, match="was created with spark.sql.ansi.enabled=false"):
        read("select * from v", views, table("d.t"), spark_sql_ansi_enabled=now)


def test_names_of_utc_are_one_time_zone() -> None:
    views = view("d.v", "select id from t", "id", zone="Etc/UTC")
    assert read("select * from v", views, table("d.t"), zone="UTC").views


def test_a_view_query_keeps_its_relation() -> None:
    views = view("d.v", "select id from t", "id")
    found = read("select * from v", views, table("d.t")).views[TableName("d", "v")]
    assert isinstance(found, ViewQuery) and found.relation is views
