"""The picture of the lag over time, as an SVG without any library."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from simulation.clockwork import START, Clockwork
from simulation.projects import Project, Work
from spark_dynamic.duration import format_duration
from spark_dynamic.schedule.graph import Graph, Model
from spark_dynamic.schedule.lag_numbers import Tooth, teeth

MINUTE = timedelta(minutes=1)
# By then it is known how late runs come.
BEGIN, SHOWN = START + 60 * MINUTE, 60 * MINUTE
PAUSE = BEGIN + 33 * MINUTE, BEGIN + 41 * MINUTE
_LEFT, _RIGHT, _TOP, _HEIGHT, _GAP, _WIDTH = 64, 24, 46, 150, 80, 760
_INK, _PALE, _LAG, _TARGET, _PAUSE = "#1f2933", "#d5dae0", "#1d6fb8", "#c0392b", "#fbe9e7"


def shop() -> Clockwork:
    """Two tables, of which the second reads the first; a run every minute, and one pause."""
    graph = Graph(
        {
            "revenue": Model(5 * MINUTE),
            "report": Model(20 * MINUTE, ("revenue",)),
        }
    )
    work = {"revenue": Work(MINUTE / 5, spread=0.5), "report": Work(MINUTE / 3, spread=0.5)}

    class WithPause(Clockwork):
        def comes(self, moment: datetime) -> bool:
            return not PAUSE[0] <= moment < PAUSE[1]

    return WithPause(Project(graph, work)).run_for(BEGIN - START + SHOWN + MINUTE)


def draw(world: Clockwork) -> str:
    """Draw the lag of every table, one above the other."""
    names = world.graph.order
    height = _TOP + len(names) * (_HEIGHT + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" font-family="sans-serif" font-size="13" '
        f'role="img" aria-label="The lag of two tables over an hour, as saw-teeth">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for place, name in enumerate(names):
        parts += _panel(world, name, _TOP + place * (_HEIGHT + _GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(world: Clockwork, name: str, top: int) -> Iterable[str]:
    target, until = world.graph.lags[name], BEGIN + SHOWN
    found = teeth((done.refresh for done in world.done[name]), BEGIN, until)
    highest = 1.1 * max(target, *(tooth.peak for tooth in found))
    bottom = top + _HEIGHT

    def x(moment: datetime) -> float:
        return round(_LEFT + (moment - BEGIN) / SHOWN * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(lag: timedelta) -> float:
        return round(bottom - lag / highest * _HEIGHT, 1)

    reads = "".join(f", reads {upstream}" for upstream in world.graph.upstreams[name])
    yield _text(_LEFT, top - 12, f"{name}: target lag {format_duration(target)}{reads}", bold=True)
    left, right = (x(moment) for moment in PAUSE)
    yield f'<rect x="{left}" y="{top}" width="{right - left}" height="{_HEIGHT}" fill="{_PAUSE}"/>'
    for minute in range(0, 61, 10):
        place = x(BEGIN + minute * MINUTE)
        yield _line(place, top, place, bottom, _PALE)
        yield _text(place, bottom + 18, f"{minute}m", "middle")
    yield _text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 36, "time", "middle")
    yield _text(_LEFT - 8, top - 12, "lag", "end")
    step = 5 * MINUTE if highest > 10 * MINUTE else 2 * MINUTE
    for count in range(int(highest / step) + 1):
        yield _line(_LEFT, y(count * step), _WIDTH - _RIGHT, y(count * step), _PALE)
        yield _text(_LEFT - 8, y(count * step) + 4, format_duration(count * step), "end")
    yield _line(_LEFT, y(target), _WIDTH - _RIGHT, y(target), _TARGET, 'stroke-dasharray="6 4"')
    yield _text(_WIDTH - _RIGHT - 4, y(target) - 6, "target", "end", _TARGET)
    points = " ".join(
        f"{x(moment)},{y(lag)}" for tooth in found for moment, lag in _corners(tooth)
    )
    yield f'<polyline points="{points}" fill="none" stroke="{_LAG}" stroke-width="2"/>'
    yield _text((left + right) / 2, bottom - 8, "no runs", "middle", _TARGET)
    # The first whole tooth, where there is room for words.
    before, after = found[1], found[2]
    if before.end - before.begin > 8 * MINUTE:
        end, low = x(before.end), f"trough {_rounded(after.trough)}"
        yield _text(end + 6, y(before.peak) + 4, f"peak {_rounded(before.peak)}", color=_LAG)
        yield _text(end - 6, y(after.trough), low, "end", _LAG)


def _corners(tooth: Tooth) -> Iterable[tuple[datetime, timedelta]]:
    return (tooth.begin, tooth.trough), (tooth.end, tooth.peak)


def _rounded(lag: timedelta) -> str:
    return format_duration(timedelta(seconds=round(lag.total_seconds())))


def _line(x1: float, y1: float, x2: float, y2: float, color: str, more: str = "") -> str:
    space = " " if more else ""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}"{space}{more}/>'


def _text(
    x: float, y: float, text: str, anchor: str = "start", color: str = _INK, bold: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{color}"{weight}>{text}</text>'
