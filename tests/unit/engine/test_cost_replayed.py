"""The rule by which `auto` chooses, on the recorded times of the benchmark.

Each round has the times of both modes, so that every choice can be replayed with its price.
"""

import json
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

import pytest

from spark_dynamic.refresh.cost import slower_so_far
from spark_dynamic.schedule.known import Known, Refresh, noted

_ROUNDS = json.loads(
    (Path(__file__).parents[3] / "docs" / "benchmarks" / "tpch_1.json").read_text()
)["rounds"]
# The times of every model, one list for each workload, in the order in which they were measured.
_TIMES: dict[str, dict[str, list[float]]] = {}
for _round in _ROUNDS:
    _TIMES.setdefault(_round["model"], {}).setdefault(_round["workload"], []).append(
        _round["seconds"]
    )
_QUERIES = sorted(model.removesuffix("__auto") for model in _TIMES if model.endswith("__auto"))
_START = datetime(2026, 1, 1)


def took(seconds: float, action: str, number: int, inserts_only: bool = False) -> Refresh:
    ended_at = _START + timedelta(seconds=seconds)
    moment = _START + timedelta(hours=number)
    return Refresh(action, _START, ended_at, moment, inserts_only=inserts_only)


@pytest.mark.parametrize("query", _QUERIES)
def test_what_auto_chooses_costs_at_most_a_quarter_more_than_the_better_mode(query: str) -> None:
    full, incremental = _TIMES[f"{query}__full"], _TIMES[f"{query}__incremental"]
    # A build takes about twice as long as a rebuild.
    known = noted(Known(), took(2 * min(full["inserts, recent"]), "FULL", 0))
    for workload, fulls in full.items():
        inserts_only = workload.startswith("inserts")
        chosen = []
        for number, times in enumerate(zip(fulls, incremental[workload], strict=True), 1):
            is_full = slower_so_far(known, inserts_only) is not None
            chosen.append(times[0] if is_full else times[1])
            action = "FULL" if is_full else "INCREMENTAL"
            known = noted(known, took(chosen[-1], action, number, inserts_only))
        better = min(median(fulls), median(incremental[workload]))
        assert median(chosen) <= 1.25 * better, workload
