import pytest
from fake_shop import small_shop
from fake_warehouse import FakeWarehouse

from spark_dynamic.errors import WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.sql.guard import (
    Explained,
    agree,
    beyond_plans,
    explain,
    read_explanation,
    volatile_functions,
)
from spark_dynamic.sql.normal_plan import normalise
from spark_dynamic.sql.spark_functions import CLOCK

JOINED = """== Parsed Logical Plan ==
'Project [*]
+- 'UnresolvedRelation [sh, v], [], false

== Analyzed Logical Plan ==
a: bigint, count(1): bigint
Aggregate [a#233L], [a#233L, count(1) AS count(1)#243L]
+- Join Inner, (a#233L = id#239L)
   :- SubqueryAlias spark_catalog.sh.v
   :  +- View (`spark_catalog`.`sh`.`v`, [a#233L, b#234])
   :     +- Project [cast(id#235L as bigint) AS a#233L, upper(s#237) AS b#234]
   :        +- Relation spark_catalog.sh.t[id#235L,x#236,s#237] parquet
   +- SubqueryAlias spark_catalog.sh.u
      +- Relation spark_catalog.sh.u[id#239L,x#240,s#241] parquet

== Optimized Logical Plan ==
Aggregate [a#233L], [a#233L, count(1) AS count(1)#243L]
+- Project [a#233L]

== Physical Plan ==
AdaptiveSparkPlan isFinalPlan=false
"""


def test_an_explanation_is_taken_apart() -> None:
    found = read_explanation(JOINED)
    assert found.columns == "a: bigint, count(1): bigint"
    assert found.relations == {TableName("sh", "t"), TableName("sh", "u")}
    assert {"count", "upper", "cast"} <= found.functions
    assert found.plan == ("Aggregate [a#0], [a#0, count(1) AS count(1)#1]\n+- Project [a#0]")


def explained(condition: str) -> Explained:
    """Let Spark explain a filter."""
    return read_explanation(
        JOINED.replace("+- Join Inner, (", f"+- Filter ({condition})\n   +- Join Inner, (")
    )


def test_a_line_break_in_a_text_begins_no_operator() -> None:
    found = explained("a#1 = two\nGenerate lines\n  +indented -too")
    assert found.operators.count("Filter") == 1
    assert beyond_plans(found, 1) == ""
    assert beyond_plans(explained("a#1 = 1)\n   +- Generate explode(a"), 1) == "Generate"


def test_a_text_that_looks_like_a_title_hides_nothing_behind_it() -> None:
    for title in ("Optimized Logical Plan", "Physical Plan", "Anything"):
        found = explained(f"a#1 = x\n\n== {title} ==\nrand(1)")
        assert "rand" in found.functions
        assert len(found.relations) == 2


def test_what_spark_refuses_is_an_error() -> None:
    with pytest.raises(WarehouseError) as error:
        read_explanation("== Parsed Logical Plan ==\n'Project\n\nUNRESOLVED_COLUMN: no x\n")
    assert error.value.condition == "EXPLAIN_FAILED"


def test_what_spark_says_of_a_text_comes_first() -> None:
    said = "[UNRESOLVED_COLUMN] no x\nSQLSTATE: 42703"
    plans = f"== Parsed Logical Plan ==\n'Project\n\norg.apache.spark.sql.XException: {said}\n"
    with pytest.raises(WarehouseError) as error:
        read_explanation(plans)
    assert error.value.report == "UNRESOLVED_COLUMN: no x\nSQLSTATE: 42703"
    assert "no x" in str(error.value)


@pytest.mark.parametrize(
    ("one", "other", "are_equal"),
    [
        ("Project [a#1, b#2]", "Project [a#7, b#9]", True),
        ("Project [a#1L, b#2]", "Project [a#7L, b#9]", True),
        # The same column twice is not two columns.
        ("Project [a#1, a#1]", "Project [a#1, a#2]", False),
        ("Join (a#1 = a#2)\n[a#1]", "Join (a#1 = a#2)\n[a#2]", False),
        ("Filter (a#1 > 2)", "Filter (a#1 > 3)", False),
        ("CTERelationDef 4, false\n[a#1]", "CTERelationDef 9, false\n[a#1]", True),
        ("CTERelationRef 4\nCTERelationRef 5", "CTERelationRef 4\nCTERelationRef 4", False),
        ("x = scalar-subquery#17 [a#1]", "x = scalar-subquery#90 [a#1]", True),
        ("Filter (a#1 = #5)", "Filter (a#1 = #6)", True),
    ],
)
def test_plans_agree_up_to_numbering(one: str, other: str, are_equal: bool) -> None:
    assert (normalise(one) == normalise(other)) is are_equal


UNION = """Union false, false
:- Project [id#6 AS id#1, n#7L AS n#2L]
:  +- Relation spark_catalog.sh.t[id#6,n#7L] parquet
+- Relation spark_catalog.sh.u[id#3,n#4L] parquet"""


@pytest.mark.parametrize(
    ("projected", "are_equal"),
    [
        ("id#6, n#7L", True),
        ("id#6 AS id#1, n#7L AS n#2L", True),
        ("id#6 AS id#1, n#7L", True),
        # Branches are matched by position.
        ("n#7L AS n#2L, id#6 AS id#1", False),
        ("id#6 AS id#1", False),
        ("id#6 AS id#1, id#6 AS n#2L", False),
    ],
)
def test_copies_of_all_columns_are_the_table(projected: str, are_equal: bool) -> None:
    read = UNION.replace(":  +- Relation", ":- Relation").splitlines()
    plain = "\n".join([read[0], *read[2:]])
    other = UNION.replace("id#6 AS id#1, n#7L AS n#2L", projected)
    assert (normalise(plain) == normalise(other)) is are_equal


def test_the_sides_of_a_join_are_told_apart_by_copies() -> None:
    """Where both come from the same numbers, those of the copy are all there is."""
    one = """Project [%s]
+- Join Inner, (id#6 < id#9)
   :- Relation spark_catalog.sh.t[id#6] parquet
   +- Project [id#6 AS id#9]
      +- Relation spark_catalog.sh.t[id#6] parquet"""
    assert normalise(one % "id#6") != normalise(one % "id#9")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("current_timestamp()", ["current_timestamp"]),
        ("current_date(Some(Etc/UTC))", ["current_date"]),
        ("(now() - a#1)", ["now"]),
        ("rand(42)", ["rand"]),
        ("UUID(Some(1))", ["uuid"]),
        ("upper(a#1)", []),
        ("nowhere(a#1)", []),
        ("spark_catalog.sh.f(a#1)", ["spark_catalog.sh.f"]),
        ("sum(spark_catalog.sh.g(a#1))", ["spark_catalog.sh.g"]),
    ],
)
def test_functions_whose_value_moves_are_found(expression: str, expected: list[str]) -> None:
    text = JOINED.replace("upper(s#237)", expression)
    assert volatile_functions(read_explanation(text), ()) == expected


def test_a_sample_is_volatile() -> None:
    text = JOINED.replace("+- Join Inner", "+- Sample 0.0, 0.1, false, 7\n +- Join Inner")
    assert volatile_functions(read_explanation(text), ()) == ["sample"]


@pytest.mark.parametrize(
    ("declared", "is_volatile"),
    [("f", False), ("sh.f", False), ("spark_catalog.sh.f", False), ("g", True), ("xsh.f", True)],
)
def test_a_function_can_be_declared_immutable(declared: str, is_volatile: bool) -> None:
    found = read_explanation(JOINED.replace("upper(", "spark_catalog.sh.f("))
    assert bool(volatile_functions(found, (declared,))) is is_volatile


@pytest.mark.parametrize(
    ("call", "in_plan", "declared", "expected"),
    [
        ("'upper('s)", "upper(s#1)", (), []),
        ("'system.builtin.upper('s)", "upper(s#1)", (), []),
        ("'mine('s)", "mine(s#1)", (), ["mine"]),
        ("'mine('s)", "itsclass(s#1)", (), ["mine"]),
        ("'mine('s)", "mine(s#1)", ("mine",), []),
        ("'session.mine('s)", "mine(s#1)", (), ["mine"]),
        ("'system.session.`mine`('s)", "mine(s#1)", (), ["mine"]),
        ("'f('s)", "spark_catalog.sh.f(s#1)", (), ["spark_catalog.sh.f"]),
        ("'f('s)", "spark_catalog.sh.f(s#1)", ("sh.f",), []),
        ("'f('s)]\n+- 'Filter 'sh.f('s)", "spark_catalog.sh.f(f(s#1))", ("sh.f",), ["f"]),
        ("'x = mine(s)", "(x#1 = mine(s))", (), []),
        ("'v1", "variablereference(system.session.v1=5)", (), ["the session variable v1"]),
    ],
)
def test_what_is_not_sparks_own_is_found_in_the_text(
    call: str, in_plan: str, declared: tuple[str, ...], expected: list[str]
) -> None:
    text = JOINED.replace("'Project [*]", f"'Project [{call}]").replace("upper(s#237)", in_plan)
    assert volatile_functions(read_explanation(text), declared) == expected


def test_a_table_function_is_found_by_its_node() -> None:
    node = "+- SQLFunctionNode spark_catalog.sh.tf\n +- Join Inner"
    found = read_explanation(JOINED.replace("+- Join Inner", node))
    assert volatile_functions(found, ()) == ["spark_catalog.sh.tf"]
    assert volatile_functions(found, ("sh.tf",)) == []


def test_a_clock_cannot_be_declared_away() -> None:
    found = read_explanation(JOINED.replace("upper(s#237)", "now()"))
    assert volatile_functions(found, ("now",)) == ["now"]
    assert "now" in CLOCK


def test_settings_of_the_session_are_put_back_also_after_an_error() -> None:
    warehouse = FakeWarehouse(small_shop().spark)
    explain(warehouse, "select id from shop.orders")
    with pytest.raises(WarehouseError):
        explain(warehouse, "select id from shop.nothing")
    assert warehouse.settings == {}


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        ("Relation spark_catalog.sh.w[a#1] parquet", TableName("sh", "w")),
        ("HiveTableRelation [`spark_catalog`.`sh`.`w`, org.x.Serde]", TableName("sh", "w")),
        ("LocalRelation [col1#1]", None),
        ("OneRowRelation", None),
    ],
)
def test_every_leaf_that_reads_rows_is_seen(leaf: str, expected: TableName | None) -> None:
    text = JOINED.replace("   +- SubqueryAlias spark_catalog.sh.u", f"   +- {leaf}\n   +- X")
    found = read_explanation(text).relations - read_explanation(JOINED).relations
    assert found == ({expected} if expected else set())


@pytest.mark.parametrize("leaf", ["Relation [a#1] csv", "LogicalRDD [a#1]", "RelationV2[a#1] x.y"])
def test_a_leaf_without_a_name_is_counted(leaf: str) -> None:
    text = JOINED.replace("   +- SubqueryAlias spark_catalog.sh.u", f"   +- {leaf}\n   +- X")
    assert read_explanation(text).unnamed == 1
    assert read_explanation(JOINED).unnamed == 0


def agreed(one: str, other: str, volatile: bool) -> bool:
    texts = [f"== Analyzed Logical Plan ==\na: int\nX\n\n== Optimized Logical Plan ==\n{plan}\n"
             for plan in (one, other)]  # fmt: skip
    return agree(*(read_explanation(text) for text in texts), volatile=volatile)


def test_a_clock_may_tell_another_time_in_both_plans() -> None:
    plans = ("Project [2026-11-16 05:22:34.1 AS t#1]", "Project [2026-11-16 05:22:35 AS t#7]")
    assert agreed(*plans, volatile=True)
    assert not agreed(*plans, volatile=False)
    assert not agreed("Project [now AS t#1]", "Filter [now AS t#1]", volatile=True)


def test_columns_are_told_apart_in_volatile_plans() -> None:
    assert not agreed("Join (a#1 = a#2), 5", "Join (a#1 = a#1), 6", volatile=True)


@pytest.mark.parametrize(
    ("column", "is_volatile"),
    [
        ("_metadata#7.file_path", True),
        ("user_metadata#7", False),
    ],
)
def test_only_the_files_own_metadata_is_volatile(column: str, is_volatile: bool) -> None:
    found = read_explanation(JOINED.replace("upper(s#237)", column))
    assert bool(volatile_functions(found, ())) is is_volatile
