"""Each rule's pairs of a query and its delta: as written down, and executed on random rows.

`REWRITE=1 pytest tests/unit/test_delta_fixtures.py` writes the deltas down anew.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from fuzz.applied import Applying
from fuzz.batches import Batch, random_batch
from fuzz.case import SCHEMA, Case
from fuzz.check import RULES, check
from fuzz.duck import Duck, added, duck_sql
from fuzz.schemas import Row, Table, random_row

from spark_dynamic.delta.differentiate import differentiate
from spark_dynamic.delta.facts import Bounds, Changes, Facts, Range
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import Plan, Query, State
from spark_dynamic.plan.types import with_union_types
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.pin import Query as Text
from spark_dynamic.sql.references import find_references
from spark_dynamic.sql.write import Relation, Writer
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "fixtures" / "delta"
HELPERS = {"__init__", "analysis", "differentiate", "facts", "states"}
SPARK_TYPES = {"INTEGER": "int", "VARCHAR": "string"}
# On both sides of all bounds that fixtures name.
NUMBERS = range(12)


@dataclass(frozen=True)
class Fixture:
    """A query over tables with changes; `expected` is its delta, or the code of a refusal."""

    rule: str
    title: str
    schema: str
    changed: str
    unsupported: str
    query: str
    expected: str

    def tables(self) -> dict[str, dict[str, str]]:
        found = re.findall(r"(\w+) \(((?:[^()]|\([^()]*\))*)\)", self.schema)
        return {
            name: dict(re.findall(r"(\w+) (\w+(?:\(\d+,\d+\))?)", columns))
            for name, columns in found
        }

    def facts(self) -> Facts:
        facts = {}
        for name, known in re.findall(r"(\w+)(?: \(([^()]*)\))?(?:, |$)", self.changed):
            ranges = re.findall(r"(?:, |^)(vacant )?(\w+) (\d+)\.\.(\d+)", known)
            facts[TableName(SCHEMA, name)] = Changes(
                "insert_only" in known,
                {column: Bounds(int(a), int(b)) for empty, column, a, b in ranges if not empty},
                vacant=frozenset(Range(*found) for empty, *found in ranges if empty),
            )
        return facts

    def bound(self) -> Query:
        def columns_of(table: TableName) -> tuple[Column, ...]:
            return tuple(Column(*pair) for pair in self.tables()[table.name].items())

        text = Text(self.query, find_references(self.query, SCHEMA), {})
        return bind(text, SCHEMA, columns_of)

    def text(self) -> str:
        heads = [f"-- {key}: {getattr(self, key)}" for key in ("title", "schema")]
        heads += [f"-- {k}: {v}" for k in ("changed", "unsupported") if (v := getattr(self, k))]
        texts = [self.query, *([self.expected] if self.expected else [])]
        return "\n".join([*heads, ";\n\n".join(texts) + ";"])


def fixtures(path: Path) -> list[Fixture]:
    found = []
    for part in re.split(r"^(?=-- title: )", path.read_text(), flags=re.MULTILINE)[1:]:
        heads = dict(re.findall(r"^-- (\w+): (.*)$", part, re.MULTILINE))
        body = re.sub(r"^-- .*\n", "", part, flags=re.MULTILINE).strip()
        query, _, expected = body.removesuffix(";").partition(";\n\n")
        details = [heads.get(key, "") for key in ("title", "schema", "changed", "unsupported")]
        found.append(Fixture(path.stem, *details, query, expected))
    return found


FILES = sorted(FOLDER.glob("*.sql"))
FIXTURES = [fixture for path in FILES for fixture in fixtures(path)]
SUPPORTED = [fixture for fixture in FIXTURES if not fixture.unsupported]


class Named:
    """Each state of a table is a table named after it."""

    def relation(self, table: TableName, state: State) -> Relation:
        return Relation(f"{table.name}_{state.value}", state is State.DELTA)


def delta_sql(fixture: Fixture, duck: Duck) -> str:
    """The delta as Spark is given it."""

    def describe(plan: Plan) -> tuple[Column, ...]:
        found = duck.describe(plan)
        return tuple(Column(c.name, SPARK_TYPES.get(c.type, c.type.lower())) for c in found)

    query = fixture.bound()
    duck.load(random_case(fixture, 0))
    delta = differentiate(with_union_types(query.plan, describe), fixture.facts())
    return Writer(Named()).weighted(delta) if delta is not None else "-- nothing"


def random_case(fixture: Fixture, seed: int) -> Case:
    """Random rows, and random changes of the tables that change; both as the facts say."""
    rng = random.Random(seed)
    facts = fixture.facts()
    values = NUMBERS if any(known.bounds for known in facts.values()) else ()
    tables = {}
    for name, columns in fixture.tables().items():
        rows = [_row(rng, columns, values) for _ in range(rng.randint(0, 8))]
        for vacant in facts.get(TableName(SCHEMA, name), Changes()).vacant:
            place, taken = list(columns).index(vacant.column), _range(vacant)
            rows = [row for row in rows if row[place] not in taken]
        tables[name] = Table(columns, tuple(rows))
    batches: dict[str, Batch] = {}
    for table, known in facts.items():
        if known.bounds:
            batches[table.name] = _bounded(rng, tables[table.name], known)
        while table.name not in batches or known.insert_only > batches[table.name].insert_only:
            batches[table.name] = random_batch(rng, tables[table.name])
    return Case(seed, tables, batches, fixture.query)


def _row(rng: random.Random, columns: Mapping[str, str], numbers: Sequence[int]) -> Row:
    """Return a row; with numbers from a list, if there is one."""
    row = random_row(rng, columns)
    kinds = columns.values()
    return tuple(
        rng.choice(numbers) if numbers and kind == "int" and value is not None else value
        for value, kind in zip(row, kinds, strict=True)
    )


def _range(vacant: Range) -> range:
    return range(int(vacant.low), int(vacant.high) + 1)


def _bounded(rng: random.Random, table: Table, known: Changes) -> Batch:
    """Return inserts that reach from the lower bound of each column to the upper one."""
    assert known.insert_only
    rows = [list(_row(rng, table.columns, NUMBERS)) for _ in range(rng.randint(2, 4))]
    for column, bounds in known.bounds.items():
        between = [rng.randint(bounds.low, bounds.high) for _ in rows[2:]]
        values = rng.sample([bounds.low, bounds.high, *between], len(rows))
        for row, value in zip(rows, values, strict=True):
            row[list(table.columns).index(column)] = value
    return Batch(tuple((1, tuple(row)) for row in rows), True, tuple(known.bounds))


def test_every_delta_is_as_written_down() -> None:
    duck = Duck()
    for path in FILES:
        written = "\n\n".join(
            Fixture(**{**vars(f), "expected": "" if f.unsupported else delta_sql(f, duck)}).text()
            for f in fixtures(path)
        )
        if os.environ.get("REWRITE"):
            path.write_text(written + "\n")
        assert path.read_text() == written + "\n", path.name


@pytest.mark.parametrize("fixture", SUPPORTED, ids=lambda f: f"{f.rule}: {f.title}")
def test_every_delta_makes_the_new_result_of_the_old(fixture: Fixture) -> None:
    duck = Applying()
    for seed in range(15):
        outcome = check(random_case(fixture, seed), duck, apply=seed == 0)
        assert outcome.failure is None, outcome.failure
        assert not outcome.refused


@pytest.mark.parametrize("fixture", SUPPORTED, ids=lambda f: f"{f.rule}: {f.title}")
def test_every_delta_is_right_as_it_is_written(fixture: Fixture) -> None:
    """The text itself is run; the bounds in it are those of the rows."""
    duck, columns = Duck(), fixture.bound().columns
    delta = re.sub(r"\bFROM (\w+)_(old|new|delta)\b", r"FROM \2.\1", fixture.expected)
    for seed in range(25):
        case = random_case(fixture, seed)
        facts = case.facts()
        assert all(facts[t].bounds == c.bounds for t, c in fixture.facts().items() if c.bounds)
        duck.load(case)
        old, new = (duck.text(duck_sql(case.sql), state)[0] for state in (State.OLD, State.NEW))
        change = duck.weighted(duck_sql(delta), columns)[0] if delta else Counter()
        assert added(old, change) == new, case.to_json()


@pytest.mark.parametrize("fixture", SUPPORTED, ids=lambda f: f"{f.rule}: {f.title}")
def test_every_fixture_uses_the_rule_it_stands_under(fixture: Fixture) -> None:
    used = {RULES[type(node)] for node in _nodes(fixture.bound().plan)}
    assert fixture.rule in used


@pytest.mark.parametrize(
    "fixture", [f for f in FIXTURES if f.unsupported], ids=lambda fixture: fixture.title
)
def test_what_has_no_rule_is_refused_by_name(fixture: Fixture) -> None:
    with pytest.raises(NotIncremental) as refused:
        fixture.bound()
    assert refused.value.reason.code == fixture.unsupported


def _nodes(plan: Plan) -> list[Plan]:
    return [plan, *(node for child in plan.inputs for node in _nodes(child))]


# The rule's file, its function, its fixtures and its heading have one name.


def headings() -> dict[str, str]:
    text = (ROOT / "docs" / "operators.md").read_text()
    return dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))


def test_rules_functions_fixtures_and_headings_are_the_same() -> None:
    files = {path.stem for path in (ROOT / "adapter/spark_dynamic/delta").glob("*.py")} - HELPERS
    for name in files:
        module = (ROOT / "adapter/spark_dynamic/delta" / f"{name}.py").read_text()
        assert f"\ndef {name}(" in module
    assert files == set(RULES.values())
    assert files == {path.stem for path in FILES} - {"unsupported"}
    assert files == set(headings())


@pytest.mark.parametrize("rule", sorted(RULES.values()))
def test_the_example_of_a_heading_is_a_fixture(rule: str) -> None:
    blocks = re.findall(r"^```sql\n(.*?)^```$", headings()[rule], re.DOTALL | re.MULTILINE)
    pairs = [(f.query, f.expected) for f in fixtures(FOLDER / f"{rule}.sql")]
    assert len(blocks) == 2
    assert (blocks[0].strip(), blocks[1].strip()) in pairs
