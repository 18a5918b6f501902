"""The page of the benchmarks shows the figures that were measured, and no others."""

import json
from pathlib import Path

import pytest
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
        "| inserts, recent | `q` | 3.0 | 4.0× | 2.0× | 1.20 | 10 | 2 | 2 |"
    )


def test_every_query_is_written_in_every_way(tmp_path: Path) -> None:
    write_project(tmp_path / "project", list(QUERIES), tmp_path / "home", "1g")
    assert len(list((tmp_path / "project" / "models").glob("*.sql"))) == 5 * len(QUERIES)


@pytest.mark.parametrize(
    "figures", sorted((DOCS / "benchmarks").glob("*.json")), ids=lambda p: p.name
)
def test_the_page_shows_the_figures(figures: Path) -> None:
    table = summary(json.loads(figures.read_text()))
    assert table in (DOCS / "benchmarks.md").read_text()
