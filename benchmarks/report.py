"""Figures as ratios: what people compare."""

from collections import defaultdict
from collections.abc import Mapping
from statistics import median
from typing import Any

from benchmarks.project import AUTO, FULL, HANDWRITTEN, INCREMENTAL, TABLE

Medians = dict[tuple[str, str, str], dict[str, float]]


def medians(figures: Mapping[str, Any]) -> Medians:
    """Return the medians of seconds, jobs and megabytes per workload, query and variant."""
    series: dict[tuple[str, str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for entry in figures["rounds"]:
        query, variant = entry["model"].split("__")
        series[entry["workload"], query, variant].append(entry)
    return {
        key: {
            "seconds": median(e["seconds"] for e in entries),
            "jobs": median(e["jobs"] for e in entries),
            "megabytes": median(e["bytes_read"] for e in entries) / 1e6,
        }
        for key, entries in series.items()
    }


def summary(figures: Mapping[str, Any]) -> str:
    """Return a table in Markdown: one line per workload and query."""
    found = medians(figures)
    lines = [
        "| changes | query | `auto`, s | `incremental` | `full` | `table` | by hand | "
        "`table` / `auto` | by hand / `auto` | `auto` / best | jobs | MB read | by `table` |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for workload, query in dict.fromkeys(key[:2] for key in found):
        of = {variant: found.get((workload, query, variant)) for variant in _ALL}
        auto, table = of[AUTO], of[TABLE]
        if auto is None or table is None:
            continue
        seconds = [f"{one['seconds']:.1f}" if one else "–" for one in of.values()]
        lines.append(
            f"| {workload} | `{query}` | {' | '.join(seconds)} | "
            f"{_ratio(table, auto)} | {_ratio(of[HANDWRITTEN], auto)} | {_auto(of)} | "
            f"{auto['jobs']:.0f} | {auto['megabytes']:.0f} | {table['megabytes']:.0f} |"
        )
    return "\n".join(lines)


_ALL = (AUTO, INCREMENTAL, FULL, TABLE, HANDWRITTEN)


def _ratio(other: Mapping[str, float] | None, auto: Mapping[str, float]) -> str:
    return f"{other['seconds'] / auto['seconds']:.1f}×" if other else "–"


def _auto(of: Mapping[str, Mapping[str, float] | None]) -> str:
    """Compare the choice of `auto` with the better of both modes."""
    auto, incremental, full = of[AUTO], of[INCREMENTAL], of[FULL]
    if auto is None or incremental is None or full is None:
        return "–"
    return f"{auto['seconds'] / min(incremental['seconds'], full['seconds']):.2f}"
