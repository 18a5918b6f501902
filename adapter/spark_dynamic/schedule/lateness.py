"""How long after a grid point a run comes: nobody tells the schedule how often dbt is run.

Runs in which nothing is due leave no trace, so the time between runs cannot be looked up. But a
run that finds tables due tells how long they have been: less than the time since the run before.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from spark_dynamic.schedule.causes import Why
from spark_dynamic.schedule.due import Verdict
from spark_dynamic.schedule.situation import Situation
from spark_dynamic.schedule.status import status_of

# So many runs are worth remembering.
SAMPLES: Final = 10


def lateness_of(situation: Situation, verdicts: Mapping[str, Verdict]) -> timedelta | None:
    """Return how long after a grid point this run came; None if it made nothing due."""
    due = (
        status_of(situation, name).next_due
        for name, verdict in verdicts.items()
        if verdict.why is Why.CROSSED
    )
    # Some may have been due for long, and could not be refreshed; the newest point counts.
    return min((situation.now - moment for moment in due if moment), default=None)


def expected_lateness(samples: Iterable[timedelta]) -> timedelta:
    """Return how late runs have to be expected: the second latest of the last ones.

    The latest may have come after a night, or after the machine was down.

    >>> minute = timedelta(minutes=1)
    >>> expected_lateness([minute / 2, 480 * minute, minute, minute / 4])
    datetime.timedelta(seconds=60)
    """
    latest = sorted(list(samples)[-SAMPLES:])
    return latest[-2] if len(latest) > 1 else timedelta()
