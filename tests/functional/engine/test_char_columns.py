"""Columns of type `char(n)`: Spark pads what it reads, and what it compares with them."""

import pytest
from spark_shop import SparkShop

MODELS = {
    "passed": "select id, c, s from t",
    "compared": (
        "select id, c, c = 'ab' as e, c <=> 'ab' as n, c > 'ab' as g, c in ('ab', 'x') as i, "
        "c = 'ab      ' as l, case c when 'ab' then 1 when 'abcdefg' then 2 else 0 end as w, "
        "cast(c as string) = 'ab' as p, nullif(c, 'ab') as f, c between 'ab' and 'ab' as b "
        "from t where c <> 'no'"
    ),
    "joined": "select t.id, u.id as other, t.c from t join u on t.c = u.c",
    "used": "select c, t.id, u.id as other from t join u using (c)",
    "joined_to_text": "select t.id, u.id as other from t join u on t.c = u.s where t.c = 'ab'",
    "grouped": "select c, count(*) as n, max(c) as m from t group by c having c <> 'no'",
    "grouped_by_it": "select c = 'ab' as e, count(*) as n, min(id) as m from t group by c = 'ab'",
    "united": "select * from (select id, c from t union all select id, c from u) where c = 'ab'",
    "and_back": "select * from (select id, c from u union all select id, c from t) where c = 'ab'",
    "texts": "select * from (select id, s from u union all select id, c from t) where s = 'ab'",
    "inside": "select * from (select id, max(c) as c from t group by id) where c = 'ab'",
}


@pytest.fixture
def chars(shop: SparkShop) -> SparkShop:
    shop.table("t", "id int, c char(5), s string", "(1, 'ab', 'x')", "(2, null, 'ab')")
    shop.table("u", "id int, c char(3), s string", "(1, 'ab', 'ab   ')", "(2, 'abc', 'ab')")
    return shop


# Each has another form of comparison; the others are variations.
FEW = ("compared", "joined", "grouped", "united")


@pytest.mark.parametrize("names", [FEW, pytest.param(tuple(MODELS), marks=pytest.mark.nightly)])
def test_comparisons_follow_changes_and_rewrites(chars: SparkShop, names: tuple[str, ...]) -> None:
    for name in names:
        chars.model(name, MODELS[name])
        chars.check(name, "FULL")
    chars.run(
        "insert into t values (3, 'ab', 'y'), (4, 'abc', 'z'), (5, 'no', 'n')",
        "delete from t where id = 1",
        "insert into u values (3, 'ab', 'abc  '), (4, 'x', null)",
    )
    for name in names:
        follow(chars, name)
    # Both versions are compared from here on, and old states are read by time travel.
    chars.run("insert overwrite t select id + 1, if(id = 4, 'ab', c), s from t")
    chars.run("update u set c = 'ab' where id = 4")
    for name in names:
        follow(chars, name)
    chars.check("joined", "NO_DATA")


def follow(chars: SparkShop, name: str) -> None:
    """Refresh; a comparison that is never true may leave nothing to write."""
    assert chars.action(name) in ("INCREMENTAL", "NO_DATA")
    assert chars.difference(name) == []


@pytest.mark.nightly
def test_sources_without_a_change_feed(shop: SparkShop) -> None:
    shop.table("t", "id int, c char(5), s string", "(1, 'ab', 'x')", feed=False)
    shop.table("u", "id int, c char(3), s string", "(1, 'ab', 'ab   ')", feed=False)
    for name in ("compared", "joined", "grouped", "united"):
        shop.model(name, MODELS[name])
        shop.check(name, "FULL")
    shop.run("insert into t values (3, 'ab', 'y'), (4, 'x', 'z')", "delete from t where id = 1")
    for name in ("compared", "joined", "grouped", "united"):
        shop.check(name)


def test_padding_that_is_not_known_is_refused_with_the_reason(chars: SparkShop) -> None:
    chars.table("n", "id int, c struct<a: char(3)>")
    for sql in ("select id from t where c = concat('a', 'b')", "select id, c.a from n"):
        chars.model("m", sql, refresh_mode="auto")
        chars.refresh("m")
        chars.run("insert into t values (9, 'ab', 'x')", "insert into n values (1, struct('x'))")
        outcome = chars.check("m", "FULL")
        assert outcome.plan.decision.reason.code == "CHAR_PADDING"
        chars.run("drop view m", "drop table m__dyn")


def test_a_column_that_is_no_longer_a_char_is_another_one(chars: SparkShop) -> None:
    """Delta stores texts as they came: without the type, nothing is padded any more."""
    chars.model("passed", MODELS["passed"])
    chars.model("compared", MODELS["compared"], refresh_mode="full")
    chars.model("other", "select id from t where s = 'x'")
    for name in ("passed", "compared", "other"):
        chars.check(name, "FULL")
    chars.run("alter table t alter column c type varchar(9)")
    chars.check("passed", "REINITIALIZE")
    chars.check("compared", "FULL")
    chars.check("other", "NO_DATA")
    chars.run("insert into t values (6, 'ab', 'x')")
    chars.check("passed")
