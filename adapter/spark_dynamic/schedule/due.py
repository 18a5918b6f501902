"""What is refreshed in a cycle, at which data timestamp, and why.

A table that is due never mixes cuts. Either all its upstreams have a data timestamp that serves
it, and it takes that one; or it takes its upstreams along, and all of them are refreshed now.
Where neither is possible, because an upstream was not selected or is suspended, the refresh
itself looks for a cut that is valid for all of them (`frontier/cut.py`), or waits.
"""

from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime

from spark_dynamic.schedule.causes import BLOCKED, NOT_REFRESHED, Causes, Why, find_causes, is_gain
from spark_dynamic.schedule.lags import EVERY_RUN, ON_DEMAND
from spark_dynamic.schedule.situation import Situation


@dataclass(frozen=True)
class Verdict:
    """Whether a table is refreshed in this cycle, at which data timestamp, and why."""

    why: Why
    # Now, or an older one that all upstreams have. None: whichever is valid for all of them.
    data_timestamp: datetime | None = None
    waits_for: tuple[str, ...] = ()

    @property
    def is_due(self) -> bool:
        """Tell whether the table is refreshed."""
        return self.why not in NOT_REFRESHED


# Most tables are not due in most cycles.
_NOT_DUE = Verdict(Why.NOT_DUE)


def what_is_due(situation: Situation) -> dict[str, Verdict]:
    """Decide for every selected table whether it is refreshed in this cycle."""
    causes = find_causes(situation)
    moments = _Moments(situation, causes)
    moments.choose()
    verdicts: dict[str, Verdict] = {}
    for name in situation.graph.order:
        if not situation.asked.selects(name):
            continue
        why = causes.whys[name]
        if name in moments.at:
            due = Why.NEEDED if why is Why.NOT_DUE else why
            verdicts[name] = Verdict(due, moments.at[name])
        elif why is Why.NOT_DUE:
            verdicts[name] = _NOT_DUE
        else:
            verdicts[name] = Verdict(why, waits_for=causes.waits_for.get(name, ()))
    return verdicts


class _Moments:
    """Chooses the data timestamp of every table that is refreshed."""

    def __init__(self, situation: Situation, causes: Causes) -> None:
        self._situation = situation
        self._upstreams = situation.graph.upstreams
        self._whys = causes.whys
        # Tables that a consumer needs now, whatever would serve them.
        self._now: set[str] = set()
        self._stuck = self._find_stuck()
        self.at: dict[str, datetime | None] = {}

    def choose(self) -> None:
        """Fill `at`, upstreams first; again, when a consumer has taken some of them along."""
        while True:
            self.at = {}
            for name in self._situation.graph.order:
                if name in self._now or self._is_refreshed(name):
                    self.at[name] = self._moment(name)
            if not self._take_along():
                return

    def _is_refreshed(self, name: str) -> bool:
        return self._whys[name] not in NOT_REFRESHED and self._situation.asked.selects(name)

    def _find_stuck(self) -> Set[str]:
        """Find the tables that cannot be refreshed now, because of themselves or an upstream."""
        stuck: set[str] = set()
        for name in self._situation.graph.order:
            is_held = self._whys[name] in BLOCKED or not self._situation.asked.selects(name)
            if is_held or not stuck.isdisjoint(self._upstreams[name]):
                stuck.add(name)
        return stuck

    def _moment(self, name: str) -> datetime | None:
        now, upstreams = self._situation.now, self._upstreams[name]
        if all(self.at.get(u) == now for u in upstreams):
            return now
        common = set.intersection(*(self._offered_by(u) for u in upstreams))
        served = max((moment for moment in common if self._serves(name, moment)), default=None)
        # A table without lag follows its upstreams; it does not make them faster.
        follows = self._whys[name] is Why.NO_LAG
        return served if served or follows or name in self._stuck else now

    def _offered_by(self, upstream: str) -> set[datetime]:
        """Return the data timestamps at which an upstream can be read by the end of the cycle."""
        known = self._situation.known_of(upstream)
        offered = set() if known.is_edited else set(known.timestamps)
        moment = self.at.get(upstream)
        return offered | {moment} if moment else offered

    def _serves(self, name: str, moment: datetime) -> bool:
        """Tell whether a table is not due again as soon as it has the data of a moment."""
        why, known = self._whys[name], self._situation.known_of(name)
        if not is_gain(moment, known.data_timestamp, why):
            return False
        if known.waited_at and moment <= known.waited_at:
            # It was tried: a source that this table reads is younger, most likely.
            return False
        point, lag = self._situation.last_point(name), self._situation.graph.lags[name]
        if point is not None and moment < point:
            return False
        has_limit = why is Why.MISSING and lag not in (EVERY_RUN, ON_DEMAND)
        return not has_limit or self._situation.now - moment <= lag

    def _take_along(self) -> bool:
        """Mark what has to be refreshed now for its consumers; False if nothing was added."""
        now, before = self._situation.now, len(self._now)
        for name in reversed(self._situation.graph.order):
            # In one go: whoever is taken along takes along what it reads itself.
            if self.at.get(name) == now or name in self._now:
                late = (u for u in self._upstreams[name] if self.at.get(u) != now)
                self._now.update(late)
        return len(self._now) > before
