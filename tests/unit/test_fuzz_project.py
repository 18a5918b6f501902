"""The project that is fuzzed on Delta in every test run has something of everything."""

from fuzz.dml import DML, kind_of
from fuzz.project import CI_SEED, random_project
from fuzz.schemas import STORED


def test_every_kind_of_change_occurs() -> None:
    rounds = random_project(CI_SEED).rounds
    assert {kind_of(statement) for round_ in rounds for statement in round_} == set(DML)


def test_columns_of_every_type_occur() -> None:
    assert random_project(CI_SEED).column_kinds() >= set(STORED) - {"date", "bigint"}
