"""A simulated dbt: runs that come now and then, with some threads, on a simulated warehouse.

What is due is decided by the engine's own schedule. The warehouse keeps no rows, only the data
timestamps at which each table could be read, and refreshes a table at one that all its upstreams
have. Nothing here looks at a real clock.
"""

import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush

from simulation.projects import Project
from spark_dynamic.schedule.causes import Why
from spark_dynamic.schedule.due import Verdict, what_is_due
from spark_dynamic.schedule.known import WAITING, Known, Refresh, noted
from spark_dynamic.schedule.lateness import SAMPLES, expected_lateness, lateness_of
from spark_dynamic.schedule.situation import Asked, Situation
from spark_dynamic.schedule.status import status_of

START = datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC)
_HISTORY = 10
_REBUILT = (Why.EDITED, Why.REQUESTED, Why.RECONFIGURED)


@dataclass(frozen=True)
class Done:
    """A refresh that took place, and what was decided."""

    data_timestamp: datetime
    refresh: Refresh
    verdict: Verdict
    cycle: datetime
    period: timedelta | None
    is_feasible: bool


@dataclass(frozen=True)
class Run:
    """One run that was not skipped."""

    start: datetime
    end: datetime
    refreshed: int
    waiting: tuple[str, ...]
    # Tables that were not even tried, because an upstream failed in this run.
    passed_over: tuple[str, ...]


class Clockwork:
    """The whole simulated world. Its circumstances are methods, to be overridden."""

    def __init__(
        self,
        project: Project,
        seed: int = 0,
        every: timedelta = timedelta(minutes=1),
        threads: int = 8,
    ) -> None:
        self.project, self.graph = project, project.graph
        self.rng = random.Random(seed)
        self.every, self.threads = every, threads
        self.known: dict[str, Known] = {}
        self.done: dict[str, list[Done]] = {name: [] for name in self.graph.order}
        # The data timestamps at which each table can be read, oldest first.
        self.readable: dict[str, dict[datetime, None]] = {n: {} for n in self.graph.order}
        self.runs: list[Run] = []
        # How late runs came, as the state table remembers it.
        self.samples: list[timedelta] = []
        self.skipped: list[datetime] = []
        self.place = {name: place for place, name in enumerate(self.graph.order)}
        self.moment = self._quiet_until = START

    def comes(self, moment: datetime) -> bool:
        """Tell whether the run of a moment takes place at all."""
        return True

    def asks(self, moment: datetime) -> Asked:
        """Return what a run is asked for; this is also the time for people to interfere."""
        return Asked()

    def lateness(self) -> timedelta:
        """Return how long after a grid point a run is expected: as dbt finds it out."""
        return expected_lateness(self.samples)

    def decided(self, situation: Situation, verdicts: dict[str, Verdict]) -> None:
        """Look at what was decided."""

    def fails(self, name: str) -> bool:
        """Tell whether a refresh fails."""
        return False

    def run_for(self, time: timedelta) -> "Clockwork":
        """Let runs come until so much time has passed."""
        until, busy_until = self.moment + time, self.moment
        while self.moment < until:
            if self.moment < busy_until:
                # The run before is still going: this one does not start at all.
                self.skipped.append(self.moment)
            elif self.moment >= self._quiet_until and self.comes(self.moment):
                busy_until = self._run(self.moment)
            self.moment += self.every
        return self

    def _run(self, now: datetime) -> datetime:
        situation = Situation(self.graph, self.known, now, self.asks(now), self.lateness())
        verdicts = what_is_due(situation)
        self.decided(situation, verdicts)
        late = lateness_of(situation, verdicts)
        self.samples = [*self.samples, late][-SAMPLES:] if late is not None else self.samples
        due = {name: verdict for name, verdict in verdicts.items() if verdict.is_due}
        if not due:
            # Nothing changes while nothing is refreshed: runs until then would find the same.
            self._quiet_until = self.next_due(situation)
            return now
        cycle = _Cycle(self, situation, due)
        end = cycle.execute()
        self.known.update(cycle.learned)
        self.runs.append(
            Run(now, end, cycle.refreshed, tuple(cycle.waiting), tuple(cycle.passed_over))
        )
        return end

    def next_due(self, situation: Situation) -> datetime:
        """Return when the next table is due, if nothing else happens."""
        moments = (status_of(situation, name).next_due for name in self.graph.order)
        return min((moment for moment in moments if moment), default=situation.now)

    def cut(self, name: str, verdict: Verdict, now: datetime) -> datetime | None:
        """Choose the data timestamp of a refresh, as `frontier/cut.py` does it; None: it waits."""
        upstreams = self.graph.upstreams[name]
        if all(now in self.readable[u] for u in upstreams):
            return now
        own = self.known[name].data_timestamp if name in self.known else None
        common = set.intersection(*(set(self.readable[u]) for u in upstreams))
        is_rebuilt = verdict.why in _REBUILT
        newer = (m for m in common if own is None or m > own or (is_rebuilt and m == own))
        return max(newer, default=None)

    def keep(self, name: str, done: Done) -> None:
        """Note that a table was refreshed."""
        moments = self.readable[name]
        if done.verdict.why is Why.EDITED:
            # What was read before was another table.
            moments.clear()
        moments[done.data_timestamp] = None
        if len(moments) > _HISTORY:
            del moments[next(iter(moments))]
        self.done[name].append(done)


class _Cycle:
    """One run: tables start when their upstreams have ended and a thread is free."""

    def __init__(self, world: Clockwork, situation: Situation, due: dict[str, Verdict]) -> None:
        self._world, self._situation, self._due = world, situation, due
        self._open = {name: sum(u in due for u in world.graph.upstreams[name]) for name in due}
        self._failed: set[str] = set()
        self.learned: dict[str, Known] = {}
        self.refreshed = 0
        self.waiting: list[str] = []
        self.passed_over: list[str] = []

    def execute(self) -> datetime:
        """Refresh all that is due; return when the last one ended."""
        place, clock = self._world.place, self._situation.now
        ready = sorted((place[name], name) for name, count in self._open.items() if not count)
        running: list[tuple[datetime, int, str]] = []
        while ready or running:
            while ready and len(running) < self._world.threads:
                order, name = heappop(ready)
                heappush(running, (self._begin(name, clock), order, name))
            clock, _, name = heappop(running)
            for consumer in self._world.graph.consumers[name]:
                if consumer in self._open:
                    self._open[consumer] -= 1
                    if not self._open[consumer]:
                        heappush(ready, (place[consumer], consumer))
        return clock

    def _begin(self, name: str, start: datetime) -> datetime:
        """Start one refresh; return when it ends."""
        world, verdict = self._world, self._due[name]
        upstreams = world.graph.upstreams[name]
        if any(u in self._failed for u in upstreams):
            # As dbt does it: what depends on an error is passed over.
            self._failed.add(name)
            self.passed_over.append(name)
            return start
        now, before = self._situation.now, self._situation.known_of(name)
        at = world.cut(name, verdict, now)
        if at is None:
            self.waiting.append(name)
            self.learned[name] = noted(before, Refresh(WAITING, start, start))
            return start
        covered = at - before.data_timestamp if before.data_timestamp else timedelta(days=1)
        end = start + world.project.work[name].duration(covered, world.rng)
        failed = world.fails(name)
        waited = start - now if at == now else None
        action = "" if failed else "INCREMENTAL"
        refresh = Refresh(action, start, end, at, not failed, waited)
        after = noted(before, refresh)
        if failed:
            self._failed.add(name)
        else:
            after = replace(after, is_edited=False, is_reconfigured=False)
            pace = self._situation.paces[name]
            world.keep(name, Done(at, refresh, verdict, now, pace.period, pace.is_feasible))
            self.refreshed += 1
        self.learned[name] = after
        return end
