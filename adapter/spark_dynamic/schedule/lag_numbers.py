"""How far behind a table was over some time: peak, trough, share of time within its target.

The lag rises by a second each second, and drops when a refresh ends: from the end minus the data
timestamp before (the peak) to the end minus its own (the trough).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from spark_dynamic.schedule.known import Refresh


@dataclass(frozen=True)
class Tooth:
    """The time from the end of one refresh to that of the next: the lag rises."""

    data_timestamp: datetime
    begin: datetime
    end: datetime

    @property
    def trough(self) -> timedelta:
        """The lag at the beginning."""
        return self.begin - self.data_timestamp

    @property
    def peak(self) -> timedelta:
        """The lag just before the end."""
        return self.end - self.data_timestamp

    def within(self, target: timedelta) -> timedelta:
        """Return for how long the lag was at most the target."""
        return max(min(self.end - self.begin, target - self.trough), timedelta())


@dataclass(frozen=True)
class LagNumbers:
    """The lag of a table over some time; the lag at its end counts as a peak."""

    peak: timedelta
    trough: timedelta
    share_within_target: float | None


def teeth(refreshes: Iterable[Refresh], since: datetime, until: datetime) -> list[Tooth]:
    """Return the saw-tooth of a table between two moments; it begins with the first build."""
    found: list[Tooth] = []
    newest, begin = None, since
    for refresh in sorted(refreshes, key=lambda refresh: refresh.ended_at):
        moment = refresh.data_timestamp
        if moment is None or not refresh.is_refresh or refresh.ended_at > until:
            continue
        if newest is not None and moment <= newest:
            # Another run was faster with newer data.
            continue
        end = max(refresh.ended_at, since)
        if newest is not None and end > begin:
            found.append(Tooth(newest, begin, end))
        newest, begin = moment, end
    if newest is not None and until > begin:
        found.append(Tooth(newest, begin, until))
    return found


def lag_numbers(
    refreshes: Iterable[Refresh], target: timedelta | None, since: datetime, until: datetime
) -> LagNumbers | None:
    """Return a table's lag between two moments; None if it was not there yet."""
    found = teeth(refreshes, since, until)
    if not found:
        return None
    share = None
    if target is not None:
        whole = sum((tooth.end - tooth.begin for tooth in found), timedelta())
        share = sum((tooth.within(target) for tooth in found), timedelta()) / whole
    return LagNumbers(
        peak=max(tooth.peak for tooth in found),
        trough=min(tooth.trough for tooth in found),
        share_within_target=share,
    )
