"""A failure of the fuzzer is made small, and can be had again from what is printed."""

import random
from unittest import mock

import pytest
from fuzz import shrink as shrinking
from fuzz.applied import Applied, Applying, Watched
from fuzz.applied_mutants import a_null_key_is_never_found
from fuzz.batches import Batch
from fuzz.case import Case, random_case, read_case
from fuzz.check import Failure, Outcome, check
from fuzz.duck import duck_sql
from fuzz.mutants import Mutant, filter_not_applied_to_the_delta, last_term_dropped, planted
from fuzz.run import run
from fuzz.schemas import Table
from fuzz.shrink import shrink

from spark_dynamic.plan.nodes import State
from spark_dynamic.sql.pin import Query

TABLES = Query.tables


def sizes(case: Case) -> dict[str, int]:
    """What is to become less; no part of it may become more."""
    return {
        "text": len(case.sql),
        "rows": sum(len(table.rows) for table in case.tables.values()),
        "changes": sum(len(batch.changes) for batch in case.batches.values()),
    }


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mutant", "seed"),
    [(last_term_dropped, 9000), (a_null_key_is_never_found, 9101)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_failure_is_printed_as_a_small_case_that_fails_alike(
    mutant: Mutant, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    duck = Applying()
    with planted(mutant):
        [(case, failure)] = run(seed, 400, shrunk=True, most=1).failures
        printed = capsys.readouterr().out
        again = read_case(printed[printed.index("\n{\n") :])
        assert repr(again) == repr(case)
        found = check(again, duck).failure
        # The seed gives the whole case.
        [(whole, at_first)] = run(case.seed, 1).failures
    assert found is not None
    assert found.first_words() == failure.first_words() == at_first.first_words()
    assert printed.startswith(
        f"seed {case.seed}: {found.kind} "
        f"(the whole case: make fuzz-engine CASES=1 CHANGES=0 BUGS=0 SEED={case.seed})\n"
        f"{found.message}\n"
    )
    before, after = sizes(whole), sizes(case)
    assert repr(whole) == repr(random_case(case.seed))
    assert all(after[part] <= before[part] for part in before)
    assert sum(after.values()) < sum(before.values())
    assert after["rows"] + after["changes"] <= 4
    # It is the bug that makes it fail.
    assert check(again, duck).failure is None


def test_no_row_is_deleted_that_is_not_there() -> None:
    """Without the insert before it, the delete alone would fail as well."""
    table = Table({"k": "int"}, ((1,), (1,)))
    batch = Batch(((1, (2,)), (-1, (2,)), (1, (3,))))
    case = Case(1, {"t": table}, {"t": batch}, "SELECT k FROM t WHERE k > 5")
    with planted(filter_not_applied_to_the_delta):
        small = shrink(case, Applying())
    assert small.is_possible()
    assert small.tables["t"].rows == ()
    assert [change for batch in small.batches.values() for change in batch.changes] == [(1, (3,))]


def test_another_failure_is_not_taken_for_the_same() -> None:
    """Here a case without rows fails in another way."""
    table = Table({"k": "int"}, ((1,), (2,), (3,)))
    case = Case(1, {"t": table}, {"t": Batch(((1, (4,)),))}, "SELECT k FROM t WHERE k > 5")

    def judged(case: Case, *_: object) -> Outcome:
        return Outcome(Failure("delta" if case.tables["t"].rows else "plan", ""))

    with mock.patch.object(shrinking, "check", judged):
        small = shrink(case, Applying())
    assert (small.sql, len(small.tables["t"].rows)) == ("SELECT k FROM t", 1)
    assert not small.batches


def written(case: Case) -> list[str]:
    duck = Watched()
    duck.load(case)
    result, _ = duck.text(duck_sql(case.sql), State.NEW)
    assert Applied(case, duck).difference(result) == ""
    return duck.written


def test_a_case_is_refreshed_alike_in_every_process() -> None:
    """Tables are a set, which has another order each time."""
    columns = {"k": "int", "v": "int"}
    rng = random.Random(1)
    for seed in range(4):
        rows = tuple((rng.randint(0, 3), number) for number in range(4))
        tables = {name: Table(columns, rows) for name in ("t1", "t2", "t3")}
        batches = {name: Batch(((-1, rows[0]), (1, (2, 9)))) for name in tables}
        joined = "t1 AS a JOIN t2 AS b ON a.k = b.k JOIN t3 AS c ON b.k = c.k"
        case = Case(seed, tables, batches, f"SELECT a.k, b.v, c.v AS w FROM {joined}")
        found = []
        for is_reversed in (False, True):
            in_order = mock.patch.object(
                Query,
                "tables",
                lambda query, last=is_reversed: sorted(TABLES(query), key=str, reverse=last),
            )
            with in_order:
                found.append(written(case))
        assert found[0] == found[1]
