"""What a run brings to each dynamic table, from what a plan says and what lies above it."""

import pytest

from dbt.adapters.spark_dynamic.forecast import Forecast, Foreseen, Kind, Node

KINDS = {"dyn": Kind.DYNAMIC_TABLE, "table": Kind.TABLE, "view": Kind.VIEW, "eph": Kind.INLINED}
MISSING = Foreseen("ERROR", "SOURCE_MISSING: The table s.stg does not exist.", may_pass=True)
REFUSED = Foreseen("ERROR", "OUTER_JOIN: The query cannot be refreshed incrementally.")
UNRESOLVED = Foreseen("ERROR", "UNRESOLVED_COLUMN: There is no column a.", may_pass=True)
NO_DATA, FULL, INCREMENTAL = Foreseen("NO_DATA"), Foreseen("FULL"), Foreseen("INCREMENTAL")


def waiting(*names: str) -> Foreseen:
    return Foreseen("WAITING", ", ".join(names), waits_for=frozenset(f"s.{n}" for n in names))


class Project:
    """Nodes from lines such as `view shown: totals`; all exist and are selected, unless said."""

    def __init__(self, *lines: str, missing: str = "", left_out: str = "") -> None:
        self._nodes = dict(map(read_node, lines))
        chosen = self._nodes.keys() - left_out.split()
        self._forecast = Forecast(self._nodes, chosen, lambda name: name not in missing.split())

    def __call__(self, **planned: Foreseen) -> dict[str, str]:
        """Return what is said of each table, given what its plan says."""
        return {name: said(self._forecast.next(name, found)) for name, found in planned.items()}

    def edited(self, name: str, planned: Foreseen) -> str:
        return said(self._forecast.next(name, planned, is_edited=True))


def read_node(line: str) -> tuple[str, Node]:
    kind, _, rest = line.partition(" ")
    name, _, reads = rest.partition(":")
    return name, Node(name, f"s.{name}", KINDS[kind], tuple(reads.split()))


def said(found: Foreseen) -> str:
    return f"{found.action} {found.why}".strip()


def on(*names: str) -> str:
    return f"DEPENDS on what {', '.join(names)} will bring"


def test_without_anything_above_the_plan_has_the_last_word() -> None:
    project = Project("dyn a: raw", "dyn b: raw", "dyn c: raw", "dyn d: raw")
    assert project(a=FULL, b=NO_DATA, c=waiting("x"), d=MISSING) == {
        "a": "FULL",
        "b": "NO_DATA",
        "c": "WAITING x",
        "d": said(MISSING),
    }


@pytest.mark.parametrize("between", ["", "view", "eph"])
def test_a_table_below_one_that_is_written_depends_on_it(between: str) -> None:
    lines = [f"{between} shown: totals"] if between else []
    read = "shown" if between else "totals"
    lines += ["dyn totals: raw", f"dyn second: {read}"]
    assert Project(*lines)(totals=INCREMENTAL, second=waiting("totals"))["second"] == on("totals")
    assert Project(*lines)(totals=NO_DATA, second=NO_DATA)["second"] == "NO_DATA"


def test_views_over_views_are_seen_through_and_one_name_is_said_once() -> None:
    project = Project(
        "dyn totals: raw", "view a: totals", "eph b: totals a", "view c: b a", "dyn last: c b"
    )
    assert project(totals=FULL, last=NO_DATA)["last"] == on("totals")


def test_a_table_that_depends_brings_something_itself() -> None:
    project = Project("table stg: raw", "dyn one: stg", "view shown: one", "dyn two: shown")
    assert project(one=NO_DATA, two=NO_DATA) == {"one": on("stg"), "two": on("one")}


def test_a_staging_table_is_written_by_every_run_that_selects_it() -> None:
    lines = ["table stg: raw", "dyn orders: stg"]
    assert Project(*lines)(orders=NO_DATA) == {"orders": on("stg")}
    assert Project(*lines, left_out="stg")(orders=NO_DATA) == {"orders": "NO_DATA"}


def test_rows_do_not_pass_through_a_table_that_is_not_selected() -> None:
    project = Project("dyn one: raw", "table stg: one", "dyn two: stg", left_out="stg")
    assert project(one=FULL, two=NO_DATA)["two"] == "NO_DATA"


@pytest.mark.parametrize("kind", ["table", "view"])
def test_what_the_run_makes_first_is_not_missing(kind: str) -> None:
    lines = [f"{kind} stg: raw", "dyn orders: stg"]
    assert Project(*lines, missing="stg")(orders=MISSING) == {"orders": on("stg")}
    left_out = Project(*lines, missing="stg", left_out="stg")(orders=MISSING)
    assert left_out == {"orders": said(MISSING)}


def test_an_ephemeral_model_is_no_relation() -> None:
    project = Project(
        "table stg: raw", "eph inlined: stg", "dyn orders: inlined", missing="inlined stg"
    )
    assert project(orders=MISSING) == {"orders": on("stg")}


def test_a_new_project_is_built_from_top_to_bottom() -> None:
    lines = ["table stg: raw", "dyn one: stg", "view shown: one", "dyn two: shown stg"]
    project = Project(*lines, missing="stg one shown two")
    assert project(one=MISSING, two=MISSING) == {
        "one": on("stg"),
        "two": on("one", "shown", "stg"),
    }


def test_what_nobody_makes_is_missing_whatever_else_is_written() -> None:
    lines = ["table stg: raw", "view shown: raw", "dyn orders: stg shown"]
    # A view of the project that was not selected; then a source, which is no node.
    project = Project(*lines, missing="shown", left_out="shown")
    assert project(orders=MISSING) == {"orders": said(MISSING)}
    assert Project(*lines)(orders=MISSING) == {"orders": said(MISSING)}
    # A dynamic table that is not due is not built either.
    project = Project("table stg: raw", "dyn later: raw", "dyn both: stg later", missing="later")
    held = Foreseen("NOT_DUE", "first build in 2h", is_certain=True)
    assert project(later=held, both=MISSING)["both"] == said(MISSING)


def test_a_refusal_stays_and_what_spark_says_may_pass() -> None:
    lines = ["table stg: raw", "dyn orders: stg"]
    assert Project(*lines)(orders=REFUSED) == {"orders": said(REFUSED)}
    assert Project(*lines)(orders=UNRESOLVED) == {"orders": on("stg")}
    assert Project(*lines, left_out="stg")(orders=UNRESOLVED) == {"orders": said(UNRESOLVED)}


@pytest.mark.parametrize("action", ["FULL", "REINITIALIZE", "INCREMENTAL", "COVERED"])
def test_an_action_that_more_changes_do_not_alter_stays(action: str) -> None:
    planned = Foreseen(action, "why")
    assert Project("table stg: raw", "dyn orders: stg")(orders=planned) == {
        "orders": f"{action} why"
    }


def test_what_was_decided_when_the_run_began_stays() -> None:
    project = Project("table stg: raw", "dyn orders: stg", "dyn last: orders")
    held = Foreseen("WAITING", "for s.x", is_certain=True)
    assert project(orders=held, last=NO_DATA) == {"orders": "WAITING for s.x", "last": "NO_DATA"}


def test_who_waits_for_a_table_that_is_not_refreshed_goes_on_waiting() -> None:
    lines = ["dyn a: raw", "dyn b: raw", "dyn both: a b"]
    assert Project(*lines)(a=FULL, b=FULL, both=waiting("a", "b"))["both"] == on("a", "b")
    project = Project(*lines, left_out="b")
    assert project(a=FULL, both=waiting("a", "b"))["both"] == "WAITING a, b"
    # Without new rows it may still come to a newer cut.
    moved = Foreseen("NO_DATA", moves_record=True)
    assert Project(*lines)(a=moved, b=FULL, both=waiting("a", "b"))["both"] == on("a", "b")


@pytest.mark.parametrize("between", ["view", "eph", "table"])
def test_below_a_table_that_fails_dbt_skips(between: str) -> None:
    project = Project(
        "dyn a: raw", f"{between} b: a", "dyn c: b", "dyn d: c", "dyn e: raw", left_out="b"
    )
    found = project(a=REFUSED, c=NO_DATA, d=FULL, e=FULL)
    skipped = "SKIPPED by dbt, because of a"
    assert found == {"a": said(REFUSED), "c": skipped, "d": skipped, "e": "FULL"}


def test_a_view_with_another_text_may_bring_anything() -> None:
    lines = ["view shown: raw", "dyn orders: shown"]
    assert Project(*lines).edited("orders", NO_DATA) == on("shown")
    assert Project(*lines).edited("orders", INCREMENTAL) == on("shown")
    assert Project(*lines).edited("orders", FULL) == "FULL"
    # It is not made again, or it is the table's own text that has changed.
    assert Project(*lines, left_out="shown").edited("orders", NO_DATA) == "NO_DATA"
    assert Project("eph shown: raw", "dyn orders: shown").edited("orders", NO_DATA) == "NO_DATA"
