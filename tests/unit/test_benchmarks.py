"""The page of the benchmarks shows the figures that were measured, and no others."""

import json
from pathlib import Path

import click
import pytest
from benchmarks import change_queries, engine_time, many_models
from benchmarks.project import QUERIES, write_project
from benchmarks.report import medians, summary

DOCS = Path(__file__).parents[2] / "docs"


def entry(variant: str, seconds: float, round: int = 1) -> dict[str, object]:
    return {
        "model": f"q__{variant}",
        "workload": "inserts, recent",
        "round": round,
        "seconds": seconds,
        "jobs": 10,
        "bytes_read": 2_000_000,
    }


def test_ratios_are_of_medians() -> None:
    rounds = [entry("auto", 2.0), entry("auto", 4.0), entry("auto", 3.0), entry("table", 12.0)]
    rounds += [entry("handwritten", 6.0), entry("incremental", 3.0), entry("full", 2.5)]
    assert medians({"rounds": rounds})["inserts, recent", "q", "auto"]["seconds"] == 3.0
    assert summary({"rounds": rounds}).splitlines()[-1] == (
        "| inserts, recent | `q` | 3.0 | 3.0 | 2.5 | 12.0 | 6.0 "
        "| 4.0× | 2.0× | 1.20 | 10 | 2 | 2 |"
    )


def test_every_query_is_written_in_every_way(tmp_path: Path) -> None:
    write_project(tmp_path / "project", list(QUERIES), tmp_path / "home", "1g")
    assert len(list((tmp_path / "project" / "models").glob("*.sql"))) == 5 * len(QUERIES)


@pytest.mark.parametrize(
    "figures", sorted((DOCS / "benchmarks").glob("*.json")), ids=lambda p: p.name
)
def test_the_page_shows_the_figures(figures: Path) -> None:
    read = json.loads(figures.read_text())
    summaries = {
        "models": many_models.summary,
        "change_queries": change_queries.summary,
        "one_table": change_queries.summary_of_one_table,
        "engine_time": engine_time.summary,
    }
    table = next((of for key, of in summaries.items() if key in read), summary)(read)
    assert table in (DOCS / "benchmarks.md").read_text()


def test_changes_of_one_table_are_compared_key_by_key() -> None:
    def took(shape: str, *seconds: float) -> dict[str, object]:
        return {"rows": 7, "shape": shape, "seconds": list(seconds)}

    inserts, updated = change_queries.INSERTS, change_queries.UPDATED_ROW
    figures = {
        "none": {inserts: took("ADDED_ONLY", 2, 9, 1), updated: took("MINIMIZE", 10)},
        "`unique_key`": {inserts: took("ADDED_ONLY", 1), updated: took("MINIMIZE", 12)},
    }
    lines = change_queries.summary_of_one_table({"one_table": figures}).splitlines()
    assert lines[3] == "| none | with one updated row | `MINIMIZE` | 7 | 10.0 | 5.0 |"
    assert lines[5] == "| `unique_key` | with one updated row | `MINIMIZE` | 7 | 12.0 | 12.0 |"


def test_a_run_with_nothing_to_do_is_compared_with_both_of_dbts_own() -> None:
    rounds = [
        {"nothing": 1.0, "view": 4.0, "held": 1.1, "due": 1.2},
        {"nothing": 9.0, "view": 5.0, "held": 1.2, "due": 1.3},
        {"nothing": 1.0, "view": 5.0, "held": 9.0, "due": 9.0},
    ]
    used = {"nothing": 2.0, "view": 4.0, "held": 2.0, "due": 3.0}
    rounds = [{**entry, "cpu": used} for entry in rounds]
    counts = {"nothing": {}, "view": {"show": 1, "create": 3}, "held": {"show": 1}, "due": {}}
    lines = many_models.summary({"models": 3, "rounds": rounds, "statements": counts}).splitlines()
    assert lines[-2] == "| `held` | 1.2 | 1.20 | 0.24 | 2.0 | 1.00 | 0.50 | 1 |"
    assert lines[-1] == "| `due` | 1.3 | 1.30 | 0.26 | 3.0 | 1.50 | 0.75 | 0 |"


def test_the_projects_of_many_models_differ_in_their_configuration_alone(tmp_path: Path) -> None:
    for kind in many_models.KINDS:
        many_models.write_project(tmp_path / kind, kind, 7, tmp_path)
    texts = [
        [path.read_text() for path in sorted((tmp_path / kind / "models").glob("*.sql"))]
        for kind in many_models.KINDS
    ]
    assert len(texts[0]) == 7 and all(others == texts[0] for others in texts)


def test_some_of_the_kinds_can_be_measured_alone() -> None:
    kinds = many_models.chosen_kinds("nothing, due,held")
    assert kinds == ["nothing", "due", "held"]
    rounds = [{"nothing": 1.0, "held": 1.1, "due": 1.2}]
    figures = {"models": 3, "rounds": rounds, "statements": {kind: {"show": 2} for kind in kinds}}
    lines = many_models.summary(figures).splitlines()
    assert lines[0] == "| 3 models | s | / `nothing` | statements |"
    assert lines[2:] == ["| `nothing` | 1.0 | 1.00 | 2 |", "| `held` | 1.1 | 1.10 | 2 |",
                         "| `due` | 1.2 | 1.20 | 2 |"]  # fmt: skip


@pytest.mark.parametrize("text", ["", "nothing,hold", "held,nothing"])
def test_kinds_that_cannot_be_measured_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="Expected some of nothing, view, held, due"):
        many_models.chosen_kinds(text)
