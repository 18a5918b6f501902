"""How long after a grid point a run comes: nobody tells the schedule how often dbt is run.

Runs in which nothing is due leave no trace, so the time between runs cannot be looked up. But a
run that finds tables due tells how long they have been: less than the time since the run before.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from spark_dynamic.clock import EPOCH
from spark_dynamic.schedule.causes import Why
from spark_dynamic.schedule.due import Verdict
from spark_dynamic.schedule.situation import Situation
from spark_dynamic.schedule.status import status_of

# So many runs are worth remembering.
SAMPLES: Final = 30
# A sample is left out if it is so many times as long as all others, and there are enough of them.
_GROSS: Final = 3
_ENOUGH: Final = 4
_AT_LEAST: Final = 0.1


def lateness_of(situation: Situation, verdicts: Mapping[str, Verdict]) -> timedelta | None:
    """Return how long after a grid point this run came; None if it made nothing due."""
    due = (
        status_of(situation, name).next_due
        for name, verdict in verdicts.items()
        if verdict.why is Why.CROSSED
    )
    # What was due already when something was last refreshed could not be refreshed then.
    known = (known.data_timestamp for known in situation.known.values())
    newest = max((moment for moment in known if moment), default=EPOCH)
    late = (situation.now - moment for moment in due if moment and moment > newest)
    return max(late, default=None)


def expected_lateness(samples: Iterable[timedelta]) -> timedelta:
    """Return how late runs have to be expected: as late as the latest of the last ones.

    A later one is still to come: of n that are spread evenly, the latest is on average n/(n + 1)
    of what is possible, so much is added for few, and always a tenth. A single run that came after
    a night, or after the machine was down, does not count.

    >>> minute = timedelta(minutes=1)
    >>> expected_lateness([minute, 4 * minute])
    datetime.timedelta(seconds=360)
    >>> expected_lateness([minute] * 9 + [480 * minute])
    datetime.timedelta(seconds=66)
    """
    latest = sorted(list(samples)[-SAMPLES:])
    if len(latest) < 2:
        # One alone may have come after days.
        return timedelta()
    longest = latest[-1]
    if len(latest) >= _ENOUGH and longest > _GROSS * latest[-2]:
        longest = latest[-2]
    return longest * (1 + max(1 / len(latest), _AT_LEAST))
