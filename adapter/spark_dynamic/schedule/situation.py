"""Everything that the schedule decides from, when a cycle opens."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from spark_dynamic.schedule.graph import Graph
from spark_dynamic.schedule.grid import last_point
from spark_dynamic.schedule.known import Known
from spark_dynamic.schedule.paces import Pace, find_paces

_UNKNOWN = Known()


@dataclass(frozen=True)
class Asked:
    """What the person or the program that runs dbt asked for."""

    # None: all. A table that is not selected is not refreshed, whoever needs it.
    selected: Set[str] | None = None
    # --full-refresh
    full_refresh: bool = False
    # Refresh everything that is selected, due or not.
    force: bool = False

    def selects(self, name: str) -> bool:
        """Tell whether a table may be refreshed in this run."""
        return self.selected is None or name in self.selected


@dataclass(frozen=True)
class Situation:
    """The project, what is known of its tables, the cycle's clock, and what was asked for."""

    graph: Graph
    known: Mapping[str, Known]
    now: datetime
    asked: Asked = Asked()
    # How long after a grid point a run may come; `lateness.py` finds it out.
    lateness: timedelta = timedelta()
    # There are few different periods, and many tables.
    _points: dict[timedelta, datetime] = field(default_factory=dict, repr=False)

    @cached_property
    def paces(self) -> dict[str, Pace]:
        """How often each table is refreshed."""
        return find_paces(self.graph, self.known, self.lateness)

    def known_of(self, name: str) -> Known:
        """Return what is known of a table; of a new one that is nothing."""
        return self.known.get(name, _UNKNOWN)

    def last_point(self, name: str) -> datetime | None:
        """Return the newest grid point of a table's period, if it has one."""
        period = self.paces[name].period
        if period is None:
            return None
        point = self._points.get(period)
        if point is None:
            point = self._points[period] = last_point(self.now, period)
        return point
